// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/postern-gate/postern/core"

// Config is what Compile takes: a policy as plain values. Its zero value
// compiles to a policy that denies everything.
type Config struct {
	Roots  []Root
	Layers []Layer
	// Fallback speaks where no layer but a tightening one decides; nil denies.
	Fallback *Layer
	// Lift names built-in entries that do not hold, as "dotenv". What guards
	// postern itself can't be lifted.
	Lift []string
	// Protected are the places of postern's own files beneath roots.
	Protected []Protected
	Links     []Link
}

// Root is a folder that requests may be about.
type Root struct {
	Name  string
	Alias string // a second scheme for patterns, "" for none
	// ReadOnly refuses every change at step 1.
	ReadOnly bool
	// Homes are patterns, as glob takes them, of the home folders beneath the root, whose start-up
	// files run by themselves. The root's own top always counts as one.
	Homes []string
	Pos   core.Position
}

// Protected is a place that is known only at run time: the state directory
// (Entry "postern-state", denied for every action), the policy files and the
// binary (Entry "postern", readable).
type Protected struct {
	Root, Path, Entry string
	// Below is a pattern for what of the place is held, "" for all of it.
	Below string
}

// Layer is one policy file.
type Layer struct {
	// Tighten says that the layer can only make decisions stricter: a
	// project's own file.
	Tighten bool
	// Root limits what the layer says about files to one root.
	Root string

	Deny     []Pattern
	Allow    []Pattern // nil: no opinion; empty: nothing is allowed
	AllowPos core.Position
	Agents   map[string]map[core.Action]Rules
	Rules    map[core.Action]Rules
	Default  *Outcome

	// IfMatch and Confirm are the actions that need an etag and confirm: true;
	// nil means no opinion.
	IfMatch, Confirm []core.Action
}

// Pattern is a pattern as written, with the person's reason if there is one.
type Pattern struct {
	Text, Why string
	Pos       core.Position
}

// Rules is what a layer says about one action: the strictest of the matches
// and the class, and Else when neither speaks.
type Rules struct {
	Matches []Match
	// Class is for tool.call. A class that is not listed takes what the class
	// below it says when that is not allow.
	Class map[core.Class]Outcome
	Else  *Outcome
}

// Match is a pattern and what it decides.
type Match struct {
	Pattern
	Decision core.Decision
}

// Outcome is a decision without a pattern.
type Outcome struct {
	Decision core.Decision
	Pos      core.Position
}

// Default returns the shipped default: read, list, watch, write, create and
// rename are allowed, since undo covers them; delete, programs, the network
// and every tool that is not read-only ask; the rest is denied.
func Default() Layer {
	shipped := core.Position{File: "shipped default"} // reasons name it as they name a file
	decide := func(d core.Decision) Outcome { return Outcome{Decision: d, Pos: shipped} }
	say := func(d core.Decision) Rules { o := decide(d); return Rules{Else: &o} }
	ask, deny := decide(core.Ask), decide(core.Deny)
	l := Layer{
		Allow: []Pattern{{Text: "**", Pos: shipped}},
		Rules: map[core.Action]Rules{
			core.ToolCall: {
				Class: map[core.Class]Outcome{
					core.ReadOnly:    decide(core.Allow),
					core.Mutating:    ask,
					core.Destructive: ask,
					core.Runtime:     ask,
				},
				Else: &ask,
			},
		},
		Default: &deny,
		IfMatch: []core.Action{},
		Confirm: []core.Action{core.FSDelete},
	}
	for _, a := range []core.Action{core.FSRead, core.FSList, core.FSWatch, core.FSWrite, core.FSCreate, core.FSRename} {
		l.Rules[a] = say(core.Allow)
	}
	for _, a := range []core.Action{core.FSDelete, core.ProcExec, core.NetFetch, core.NetConnect} {
		l.Rules[a] = say(core.Ask)
	}
	return l
}
