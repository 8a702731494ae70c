// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/config"
)

// Step is one thing to do. For a change of a policy file it says where, and
// what stands there afterwards.
type Step struct {
	Kind string `json:"kind"` // one of the constants
	Text string `json:"text"` // what to do, one line
	// File is the policy file, New whether there is none yet.
	File string `json:"file,omitempty"`
	New  bool   `json:"new,omitempty"`
	// Line and Column are the place of the rule that is changed; 0 for a new one.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Under are the keys, from the top, that Lines are put under; none for the
	// top of the file.
	Under []string `json:"under,omitempty"`
	// Make are those of Under, the last ones, that the file doesn't have yet.
	Make []string `json:"make,omitempty"`
	// Lines are the lines to add, as YAML.
	Lines []string `json:"lines,omitempty"`
	// Put is what the entry at the place says instead.
	Put string `json:"put,omitempty"`
	// Remove says that the entry at the place goes.
	Remove bool `json:"remove,omitempty"`
}

// Editor proposes changes of a policy and tries them: each is made in a copy,
// which the next question is asked of.
type Editor struct {
	parts config.Parts
	file  string // where a person's own rules go
	p     *policy.Policy
}

// NewEditor begins with the policy as it is.
func NewEditor(c *config.Config) *Editor {
	file := c.UserFile
	if file == "" {
		file = config.SystemFile
	}
	return &Editor{c.Parts(), file, c.Policy}
}

// Policy is the policy with all that was proposed so far.
func (e *Editor) Policy() *policy.Policy { return e.p }

// maxSteps bounds how many rules may stand in the way of one request.
const maxSteps = 16

// Allow returns the steps after which the request is allowed, and whether they
// suffice. All stands for the request and what lies beneath its file. An
// allowed request needs none.
func (e *Editor) Allow(q core.Request, all bool) (steps []Step, ok bool) {
	for range maxSteps {
		v := e.p.Evaluate(q)
		if v.Decision == core.Allow {
			return steps, true
		}
		step, done := e.step(q, v.Reason, all)
		if !done {
			return append(steps, step), false
		}
		p, err := policy.Compile(e.parts.Config)
		if err != nil { // a pattern of ours that is none
			return append(steps, Step{Kind: InNothing, Text: "no rule can name it"}), false
		}
		e.p = p
		steps = append(steps, step)
	}
	return steps, false
}

// step changes the copy where the rule stands that decided. It reports false
// where nothing can be changed.
func (e *Editor) step(q core.Request, r core.Reason, all bool) (Step, bool) {
	switch {
	case r.Step == core.StepContainment && r.Rule == "access: read":
		return e.writable(r.Pos)
	case r.Step == core.StepContainment || r.Step == core.StepNone:
		return Step{Kind: InNothing, Text: "no policy changes it: " + r.String()}, false
	case r.Builtin != "":
		return e.Lift(r.Builtin)
	case r.Step == core.StepDeny:
		return e.undeny(r.Pos)
	case r.Step == core.StepBoundary:
		return e.extend(q, r.Pos, all)
	}
	return e.rule(q, r, all)
}

// mostExamples bounds how many examples are named.
const mostExamples = 8

// Examples are the steps for the examples that hold now and wouldn't with all
// that was proposed: without them a file that has one would not be valid.
func (e *Editor) Examples() (steps []Step) {
	var p *policy.Policy
	of, more := "", 0
	var last core.Position
	for _, x := range e.parts.Examples {
		if p == nil || x.Pos.File != of {
			var err error
			if p, err = policy.Compile(e.upTo(x.Pos.File)); err != nil {
				continue // as in Allow, which has told it
			}
			of = x.Pos.File
		}
		d := p.Evaluate(x.Request).Decision
		switch {
		case d == x.Want || x.Pos == last:
			continue
		case len(steps) == mostExamples:
			more++
		default:
			steps = append(steps, e.example(x, d))
		}
		last = x.Pos
	}
	if more > 0 {
		steps = append(steps, Step{Kind: InPolicy, Text: "do the same with " + strconv.Itoa(more) + " examples more: postern test names them"})
	}
	return steps
}

// example is what to do about one that a change makes wrong. What a person's own
// policy decides is not for a project's file to say.
func (e *Editor) example(x config.Example, d core.Decision) Step {
	s := Step{File: x.Pos.File, Line: x.Pos.Line, Column: x.Pos.Column}
	if l := e.layer(x.Pos.File); l != nil && l.Tighten {
		s.Kind, s.Text, s.Remove = InProject, "take this example out, or servers of this project don't start: it says "+x.Want.String()+" of what each person's own policy decides", true
		return s
	}
	s.Kind, s.Text = InPolicy, "change this example with it, or no server starts: it says "+x.Want.String()
	s.Put = "decision: " + d.String()
	return s
}

// upTo is what the examples of a file are about: the layers up to its own, and
// those of persons for a project's.
func (e *Editor) upTo(file string) policy.Config {
	c, i := e.parts.Config, slices.Index(e.parts.Files, file)
	own := c.Layers[i]
	c.Layers = nil
	for j, l := range e.parts.Layers {
		if j <= i || own.Tighten && !l.Tighten {
			c.Layers = append(c.Layers, l)
		}
	}
	if !own.Tighten && file != e.file {
		c.Lift = c.Lift[:e.parts.Lifts[i]]
	}
	return c
}

func (e *Editor) writable(at core.Position) (Step, bool) {
	for i := range e.parts.Roots {
		root := &e.parts.Roots[i]
		if root.Pos == at && root.ReadOnly {
			root.ReadOnly = false
			return Step{
				Kind: InPolicy, Text: "let the root " + root.Name + " be written",
				File: at.File, Line: at.Line, Column: at.Column, Under: []string{"roots", root.Name}, Lines: []string{"access: write"},
			}, true
		}
	}
	return Step{Kind: InNothing, Text: "the root is for reading only"}, false
}

// Lift is the step that lifts an entry of the built-in lists. It reports false
// for one that guards postern itself.
func (e *Editor) Lift(entry string) (Step, bool) {
	if !slices.Contains(policy.Entries(), entry) {
		return Step{Kind: InNothing, Text: "what guards postern itself can't be lifted"}, false
	}
	text := "lift the built-in entry " + entry + ", for every file that it names: it holds for every action " + everywhere("")
	if policy.RunsByItself(entry) {
		text += "; then what an agent writes there runs as you"
	}
	s := Step{
		Kind: InPolicy, Text: text,
		File: e.file, New: e.own(false) < 0, Lines: []string{"allow_sensitive: [" + entry + "]"},
	}
	if slices.Contains(e.parts.Lifting, e.file) {
		s.Under, s.Lines = []string{"allow_sensitive"}, []string{"- " + entry}
	}
	_ = e.own(true)
	e.parts.Lift, e.parts.Lifting = append(e.parts.Lift, entry), append(e.parts.Lifting, e.file)
	return s, true
}

// own is the layer of a person's own file, -1 for none that exists. It is made
// in the copy where that is asked for.
func (e *Editor) own(needed bool) int {
	i := slices.Index(e.parts.Files, e.file)
	if i < 0 && needed {
		e.parts.Files = append(e.parts.Files, e.file)
		e.parts.Layers = append(e.parts.Layers, policy.Layer{})
		i = len(e.parts.Layers) - 1
	}
	return i
}

// layer is the layer that has its rules in the file, or nil.
func (e *Editor) layer(file string) *policy.Layer {
	if i := slices.Index(e.parts.Files, file); i >= 0 {
		return &e.parts.Layers[i]
	}
	return nil
}

// at is a step at a place; in a project's own file it is only named.
func at(l *policy.Layer, pos core.Position, text string) Step {
	s := Step{Kind: InPolicy, Text: text, File: pos.File, Line: pos.Line, Column: pos.Column}
	if l.Tighten {
		s.Kind, s.Text = InProject, "the project's own policy is stricter here, and no other file outranks it: take this line out, or narrow it, if you wrote it"
	}
	return s
}

func (e *Editor) undeny(pos core.Position) (Step, bool) {
	l := e.layer(pos.File)
	if l == nil {
		return Step{Kind: InNothing, Text: "the rule is in no file"}, false
	}
	is := func(p policy.Pattern) bool { return p.Pos == pos }
	i := slices.IndexFunc(l.Deny, is)
	if i < 0 {
		return Step{Kind: InNothing, Text: "the rule is in no file"}, false
	}
	s := at(l, pos, "take this entry out of deny, or narrow it: it holds for every name that it matches, "+reach(l.Deny[i].Text, ""))
	s.Remove = true
	l.Deny = slices.Delete(l.Deny, i, i+1)
	return s, true
}

func (e *Editor) extend(q core.Request, pos core.Position, all bool) (Step, bool) {
	l := e.layer(pos.File)
	if l == nil {
		return Step{Kind: InNothing, Text: "the boundary is in no file"}, false
	}
	name := e.pattern(q, all)
	l.Allow = append(l.Allow, policy.Pattern{Text: name})
	s := at(l, pos, "name it in allow: it holds "+reach(name, ""))
	if !l.Tighten {
		s.Under, s.Lines = []string{"allow"}, []string{"- " + quoted(name)}
	}
	return s, true
}

// reach says where and for whom a rule with that pattern holds, for an agent or,
// for "", for all of them.
func reach(pattern, agent string) string {
	if root, _, ok := strings.Cut(pattern, "://"); ok {
		return "in the root " + root + ", for " + whom(agent)
	}
	return everywhere(agent)
}

// everywhere is the reach of a rule that names no root.
func everywhere(agent string) string { return "in every folder that you serve, for " + whom(agent) }

func whom(agent string) string {
	if agent == "" {
		return "every agent"
	}
	return "the agent " + agent
}

// pattern names the resource and nothing else, or with all what lies beneath
// it too. A root is named only where a file names it: the roots of a command
// line are others tomorrow.
func (e *Editor) pattern(q core.Request, all bool) string {
	switch {
	case q.Action == core.ToolCall:
		return literal(q.Resource.Root) + "/" + literal(q.Resource.Name)
	case !q.Action.IsFile():
		return literal(q.Resource.Name)
	}
	name := literal(q.Resource.Name)
	switch {
	case name == "":
		name = "**"
	case all:
		name += "/**"
	}
	for _, r := range e.parts.Roots {
		if r.Name == q.Resource.Root && r.Pos.Line > 0 {
			return r.Name + "://" + name
		}
	}
	return name
}

// literal is a pattern for a name, spelled so that no reader of policies takes
// it for something else.
func literal(name string) string {
	if strings.EqualFold(name, "else") || strings.EqualFold(name, "class") {
		return "[" + name[:1] + "]" + name[1:]
	}
	var b strings.Builder
	for i, r := range name {
		alone := i == 0 || i == len(name)-len(string(r))
		switch {
		case strings.ContainsRune(`\*?[]{}`, r), r == '!' && i == 0:
			b.WriteString(`\` + string(r))
		case strings.ContainsRune(`(|:`, r), alone && (r == ' ' || r == '~' || r == '$'), alone && strings.TrimSpace(string(r)) == "":
			b.WriteString("[" + string(r) + "]")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
