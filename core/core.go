// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"strconv"
	"strings"
)

// Action is what a subject asks to do. The zero value is no action: every
// decision about it is deny.
type Action uint8

// The actions, in the vocabulary of the policy file. Editing and appending are
// FSWrite; making a directory is FSCreate; copying is FSRead plus FSCreate;
// renaming is FSRename on both ends and the write rules on the new name.
const (
	ActionUnknown Action = iota
	FSRead
	FSList
	FSWatch
	FSWrite
	FSCreate
	FSRename
	FSDelete
	ToolCall
	ProcExec
	NetFetch
	NetConnect
	actionCount
)

var actionNames = [actionCount]string{
	"unknown", "fs.read", "fs.list", "fs.watch", "fs.write", "fs.create",
	"fs.rename", "fs.delete", "tool.call", "proc.exec", "net.fetch", "net.connect",
}

// String returns the policy file's spelling, or "unknown".
func (a Action) String() string { return spelled(actionNames[:], a) }

// ParseAction returns the action spelled s, byte for byte.
func ParseAction(s string) (Action, bool) { return parsed[Action](actionNames[:], s) }

// Actions returns every action, in a fixed order.
func Actions() []Action {
	all := make([]Action, 0, actionCount-1)
	for a := FSRead; a < actionCount; a++ {
		all = append(all, a)
	}
	return all
}

// IsFile reports whether the action is about a name in a file system.
func (a Action) IsFile() bool { return a >= FSRead && a <= FSDelete }

// Mutates reports whether the action changes something. An unknown action does.
func (a Action) Mutates() bool {
	switch a {
	case FSRead, FSList, FSWatch, NetFetch, NetConnect:
		return false
	default:
		return true
	}
}

// spelled returns the name of v, that of the zero value for an unknown one.
func spelled[T ~uint8](names []string, v T) string {
	if int(v) >= len(names) {
		return names[0]
	}
	return names[v]
}

// parsed returns the value with the name s. The zero value has none.
func parsed[T ~uint8](names []string, s string) (T, bool) {
	i := slices.Index(names[1:], s) + 1
	return T(i), i > 0
}

// Decision is what a policy answers. The zero value is Deny, and the order is
// by strictness: of two decisions the smaller one is the stricter.
type Decision uint8

// The decisions.
const (
	Deny Decision = iota
	Ask
	Allow
)

var decisionNames = [...]string{"deny", "ask", "allow"}

// String returns "deny", "ask" or "allow"; anything unknown is "deny".
func (d Decision) String() string { return spelled(decisionNames[:], d) }

// ParseDecision returns the decision spelled s, byte for byte.
func ParseDecision(s string) (Decision, bool) {
	i := slices.Index(decisionNames[:], s)
	return Decision(max(i, 0)), i >= 0 //nolint:gosec // an index of three
}

// Class is the safety class of an action or tool. The zero value is unknown
// and is treated as destructive.
type Class uint8

// The classes. Reversible or additive effects are mutating; what removes,
// overwrites what undo does not cover, or cannot be taken back is destructive;
// what controls a running program is runtime.
const (
	ClassUnknown Class = iota
	ReadOnly
	Mutating
	Destructive
	Runtime
)

var classNames = [...]string{"unknown", "read_only", "mutating", "destructive", "runtime"}

// String returns the spelling of the policy file and of tool metadata.
func (c Class) String() string { return spelled(classNames[:], c) }

// ParseClass returns the class spelled s, byte for byte.
func ParseClass(s string) (Class, bool) { return parsed[Class](classNames[:], s) }

// Level is the strength of the code path that enforces a decision, weakest
// first. The zero value promises nothing.
type Level uint8

// The levels: a library that code chooses to call, a wrapper around declared
// tool handlers, a host's pre-tool hook, the operating system.
const (
	LevelNone Level = iota
	LevelSDK
	LevelWrapper
	LevelHook
	LevelOS
)

var levelNames = [...]string{"none", "sdk", "wrapper", "hook", "os"}

// String returns the spelling used in records and in status.
func (l Level) String() string { return spelled(levelNames[:], l) }

// Subject is who asks. Agent comes from the door's own configuration, never
// from what a client says of itself.
type Subject struct {
	Agent      string // "" when the door names none
	Session    string
	Connection string
	Source     string // enforcement source: the door, as "serve", "sdk", "check"
	Level      Level
	// Proven says that the door itself vouches for Agent. Without it an agent
	// rule may only tighten what the general rules say.
	Proven bool
}

// Resource is what the action is about, by its canonical name. It is a
// comparable value; the zero value is unresolved and every decision about it
// is deny.
//
// Root and Name are, for a file: the root's name and the path beneath it
// ("" is the root itself, otherwise slash-separated, without leading slash,
// "." or ".."); for a tool: the server and the tool; for a program: "" and the
// resolved absolute path; for the network: "" and the host.
type Resource struct {
	Root, Name string
	// Resolved says that a guard made this value: the name is beneath its
	// root, or the address vetted, or the server pinned. The policy's
	// containment step denies everything else.
	Resolved bool
}

// File returns the resource of a path that a guard placed beneath root.
func File(root, name string) Resource {
	return Resource{Root: root, Name: name, Resolved: true}
}

// Canonical reports whether name is one that File takes: no empty, "." or ".."
// segment, no NUL, no slash at either end. "" is the root itself.
func Canonical(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return name == ""
		}
	}
	return strings.IndexByte(name, 0) < 0
}

// String returns root://name, or the bare name where there is no root.
func (r Resource) String() string {
	if r.Root == "" {
		return r.Name
	}
	return r.Root + "://" + r.Name
}

// Request is one operation that crosses the gate.
type Request struct {
	Subject  Subject
	Action   Action
	Resource Resource
	// Class is the class of the tool that asks, for ToolCall rules.
	Class Class
	// Link says that a link gets the name: it decides about what lies beneath too.
	Link bool
}

// Step is the step of the fixed order that spoke.
type Step uint8

// The steps of a decision, in their order.
const (
	StepNone Step = iota
	StepContainment
	StepDeny
	StepBoundary
	StepAgent
	StepRule
	StepDefault
)

var stepNames = [...]string{
	"none", "containment", "explicit deny", "allowed boundary",
	"agent rule", "general rule", "default",
}

// String names the step as explanations do.
func (s Step) String() string { return spelled(stepNames[:], s) }

// Position is a place in a policy file; lines and columns count from 1, and
// the column counts characters.
type Position struct {
	File         string
	Line, Column int
}

// Reason says why: the rule, where it stands and the step it spoke in.
type Reason struct {
	Decision Decision
	Step     Step
	Rule     string   // the rule as written, for example deny "**/.git/hooks/**"
	Builtin  string   // name of the built-in entry, "" for a written rule
	Pos      Position // zero for a built-in rule
	Why      string   // the person's words, "" when the rule has none
}

// Verdict is a decision with the reason that decided it.
type Verdict struct {
	Decision Decision
	Reason   Reason
	// List is the entry of a built-in list that the file belongs to, "" for none, be
	// the entry lifted; of what runs by itself and may be looked at without a
	// question it isn't told. Class is the same of the list of secrets alone: a
	// record doesn't spell out the name of such a file, be it allowed.
	List, Class string
}

// String returns file:line:column, or "" for the zero position.
func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// stepWhy is what a step means to somebody who was refused by it.
var stepWhy = [...]string{
	StepNone:        "nothing decided, so it is denied",
	StepContainment: "the name is not proven to be beneath a root",
	StepDeny:        "an explicit deny outranks allow",
	StepBoundary:    "nothing in allow names it",
	StepAgent:       "the rule for this agent",
	StepRule:        "the general rule",
	StepDefault:     "no rule matched",
}

// String is the text of the "because" line: the rule, its place, and the
// person's words or else what the step means.
func (r Reason) String() string {
	why := r.Why
	if why == "" && int(r.Step) < len(stepWhy) {
		why = stepWhy[r.Step]
		if r.Step == StepBoundary && r.Decision == Allow {
			why = "it is within the allowed boundary"
		}
	}
	at := r.Pos.String()
	if r.Builtin != "" {
		at = "built-in: " + r.Builtin
	}
	switch {
	case r.Rule == "":
		return why
	case at == "":
		return r.Rule + ": " + why
	default:
		return r.Rule + " (" + at + "): " + why
	}
}
