// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core"
)

// Asker is who asks.
type Asker struct {
	Agent string `json:"agent"`
	// Session is the host's own name of its session where Host says so, and
	// otherwise that of a connection to this process.
	Session string `json:"session"`
	Host    bool   `json:"host,omitempty"`
	// Process names the locked file of the process whose session it is; "" for
	// a host's.
	Process string `json:"process,omitempty"`
	Source  string `json:"source"`
}

// ofAgent is the same for every session of the agent.
func (a Asker) ofAgent() Asker { return Asker{Agent: a.Agent, Source: a.Source} }

// Operation is something that the policy asks about.
type Operation struct {
	Action   string `json:"action"`
	Resource string `json:"resource"`
	// List is the entry of a built-in list that the name belongs to. No record of
	// the log spells out that of a secret.
	List string `json:"list,omitempty"`
}

// Object is one of the things that a call is about, as it was seen.
type Object struct {
	Name string `json:"name"` // canonical
	// State is the etag of what is there, or "absent", with the folder that it
	// is in. Hash is that of the content, "" where it isn't a file, or is too
	// large.
	State string `json:"state"`
	Hash  string `json:"hash,omitempty"`
}

// Root is the folder that names begin at. Its name is the door's own choice, and
// the same for many folders.
type Root struct {
	Name string `json:"name"`
	Path string `json:"path"` // links resolved
	ID   string `json:"id"`   // of the directory itself
}

// Binding is everything that a yes is about.
type Binding struct {
	Asker
	// Roots are the folders of every operation and object, by name.
	Roots      []Root      `json:"roots,omitempty"`
	Server     string      `json:"server"`
	Tool       string      `json:"tool"`
	Class      string      `json:"class"`
	Arguments  string      `json:"arguments"` // digest of their canonical form
	Operations []Operation `json:"operations"`
	More       int         `json:"more,omitempty"` // operations that are not listed
	Objects    []Object    `json:"objects"`
	// Tree is the digest of everything beneath a folder that goes with it.
	Tree string `json:"tree,omitempty"`
	// Private says that a name of the call belongs to the list of secrets or of what
	// runs by itself, lifted or not: no pattern may cover it.
	Private bool   `json:"private,omitempty"`
	Policy  string `json:"policy"`
	// Door is by which options the policy was found: who has the same has the same
	// policy. It is no part of what a yes is for, and says only what ends where that
	// policy changes.
	Door string `json:"door,omitempty"`
	// Mounts are the mount points beneath the roots that may be entered, by their
	// names.
	Mounts map[string][]string `json:"mounts,omitempty"`
}

// Destructive reports whether the effect can't be taken back, or isn't known:
// such a yes is for once.
func (b *Binding) Destructive() bool {
	c, known := core.ParseClass(b.Class)
	return !known || c != core.ReadOnly && c != core.Mutating
}

// WantsCode reports whether a yes has to be typed as the code of the card, and is
// for once.
func (q *Question) WantsCode() bool { return q.WhyCode() != "" }

// WhyCode is why a yes wants the code, "" where it doesn't: what is done can't be
// taken back, or the card doesn't show all of it.
func (q *Question) WhyCode() string {
	switch {
	case q.For.Class == core.Runtime.String():
		return "it controls a running program"
	case q.For.Class == core.Destructive.String():
		return "it is destructive"
	case q.For.Destructive():
		return "nobody knows what it does"
	case q.Card.Unshown != "" || q.For.More > 0:
		return "not all of it is shown"
	}
	return ""
}

// Alike is the same for questions of one asker that differ in their targets and in
// the arguments alone, so that they can be looked at together. It is "" for what
// is looked at by itself: what wants a code, or belongs to a built-in list.
func (q *Question) Alike() string {
	if q.WantsCode() || q.For.Private {
		return ""
	}
	b := q.For
	b.Arguments, b.Tree, b.Objects, b.Door = "", "", nil, ""
	b.Operations = slices.Clone(b.Operations)
	for i := range b.Operations {
		b.Operations[i].Resource = ""
	}
	return digest(&b)
}

func digest(v any) string {
	b, _ := json.Marshal(v) // strings, numbers and lists of them never fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// exact is the digest of the whole binding: what a once-grant is for.
func (b *Binding) exact() string {
	c := *b
	c.Door = ""
	return digest(&c)
}

// sameCall is that without what was seen of the objects: an identical call of
// the session, whatever is there by then.
func (b *Binding) sameCall() string {
	c := *b
	c.Door = ""
	c.Tree, c.Objects = "", make([]Object, len(b.Objects))
	for i, o := range b.Objects {
		c.Objects[i] = Object{Name: o.Name}
	}
	return digest(&c)
}

// anySession is the same for every session of the agent.
func (b *Binding) anySession() string {
	c := *b
	c.Asker = b.ofAgent()
	return c.sameCall()
}

// prints are the three digests of a binding.
type prints struct{ exact, sameCall, anySession string }

func (b *Binding) prints() *prints { return &prints{b.exact(), b.sameCall(), b.anySession()} }

// Kind is how long and how far a yes reaches. The zero value is no.
type Kind string

// The kinds.
const (
	No      Kind = "no"
	Once    Kind = "once"    // the same call on what was seen, spent by it
	Session Kind = "session" // the identical call, in this session
	Pattern Kind = "pattern" // these operations on names that match, in this session
	Until   Kind = "until"   // the identical call of the agent, in any session
	Always  Kind = "always"  // the operations and names of a pattern, in any session of the agent
)

// patterned reports whether such a yes is for what its pattern covers.
func (k Kind) patterned() bool { return k == Pattern || k == Always }

// outlives reports whether such a yes serves other sessions than its own.
func (k Kind) outlives() bool { return k == Until || k == Always }

// Question is what a person is asked.
type Question struct {
	ID   string  `json:"id"`
	Corr string  `json:"corr"` // of the call that asked first
	For  Binding `json:"for"`
	Card Card    `json:"card"`
	// Asked is when, and Life how long it can be answered and a yes for once be
	// used: one deadline.
	Asked Moment        `json:"asked"`
	Life  time.Duration `json:"life"`
}

// Deadline is when the question ends, by the wall.
func (q *Question) Deadline() time.Time { return q.Asked.Wall.Add(q.Life) }

// Card is what is shown beside the binding. It decides nothing.
type Card struct {
	Rule    string  `json:"rule"`              // why it is asked
	Change  string  `json:"change,omitempty"`  // a diff, or what stands for it
	Details []Field `json:"details,omitempty"` // arguments, as they are bound
	Says    []Field `json:"says,omitempty"`    // the agent's and its client's own words
	Undo    string  `json:"undo"`              // whether it can be undone
	// Unshown says what of that is not on the card, "" for nothing.
	Unshown string `json:"unshown,omitempty"`
	// Hidden counts what nobody would have seen of the change, the details and
	// what is said: it is spelled out in them.
	Hidden int `json:"hidden,omitempty"`
}

// Field is a named text.
type Field struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Grant is an answer: a yes of some kind, or a no.
type Grant struct {
	ID       string        `json:"id"`
	Corr     string        `json:"corr"`
	Kind     Kind          `json:"kind"`
	For      Binding       `json:"for"`
	Pattern  string        `json:"pattern,omitempty"` // of Pattern and Always: root://glob
	Given    Moment        `json:"given"`
	Life     time.Duration `json:"life"`
	Approver string        `json:"approver"`
	Shown    string        `json:"shown"` // digest of the card
	// Covers tells a yes from another one for the same names. It decides nothing.
	Covers string `json:"covers,omitempty"`

	kept *prints // of For, where it is looked at again and again
}

func (g *Grant) prints() *prints {
	if g.kept != nil {
		return g.kept
	}
	return g.For.prints()
}

// maxCovers bounds that text, in characters, and maxWord each word of it: of a
// digest the beginning will do.
const (
	maxCovers = 300
	maxWord   = 12
)

// covers is what tells the question from another one for the same names: the tool
// and the details, but of arguments only the digest, since a yes is kept longer
// than its question.
func (q *Question) covers() string {
	words := []string{q.For.Tool}
	for _, f := range q.Card.Details {
		if f.Name == "arguments" {
			f.Text = q.For.Arguments
		}
		words = append(append(words, f.Name), strings.Fields(f.Text)...)
	}
	for i, w := range words[1:] {
		if r := []rune(w); len(r) > maxWord+1 {
			words[i+1] = string(r[:maxWord]) + "…"
		}
	}
	r := []rune(strings.Join(words, " "))
	return string(r[:min(len(r), maxCovers)])
}

// Deadline is when the answer ends, by the wall.
func (g *Grant) Deadline() time.Time { return g.Given.Wall.Add(g.Life) }

// agentRecord is what is remembered of an agent.
type agentRecord struct {
	Agent  string `json:"agent"`
	Noes   int    `json:"noes"` // of a person, in a row
	Paused bool   `json:"paused"`
	Since  Moment `json:"since"`
}
