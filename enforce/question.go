// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/safety"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/undo"
)

// Approver asks a person. Approve returns the permission that a yes gives, and
// a fault otherwise; a cancelled context, a timeout and any other error are a
// no. It may be called for many questions at once, holds none of the gate's
// locks, and must not keep the question.
type Approver interface {
	Approve(context.Context, *Question) (Permission, error)
}

// Permission is a yes for one call.
type Permission interface {
	// Spend uses the yes, between the last look at what it is about and the
	// intent. now is the question as it would be put at that moment. A call
	// whose Spend fails has no effect. corr, unless empty, is what the records
	// of the call have in common from here on.
	Spend(ctx context.Context, now *Question) (corr string, err error)
	// Reaches reports whether a yes to a look at a folder is one for this name
	// beneath it too. The gate asks for those alone that the same rule asks about.
	Reaches(core.Resource) bool
}

// Question is what a person is asked, and everything that a yes is bound to.
type Question struct {
	Corr string
	// Request is the operation and the first thing that it is about, Verdict
	// why it is asked.
	Request core.Request
	Verdict core.Verdict
	// Etag identifies what is there now; "" where nothing is.
	Etag string

	// Server and Tool are what was called, Arguments the digest of its
	// arguments in their canonical form with everything else that decides what
	// will be done.
	Server, Tool string
	Class        core.Class
	Arguments    string
	// HostSession is the host's own name for its session, "" for none.
	HostSession string
	// Operations are what the policy asks about, at most 100; More counts the
	// rest.
	Operations []Operation
	More       int
	// Listed says that a name of the call belongs to a built-in list, be it asked
	// about or not.
	Listed  bool
	Objects []Object
	// Roots are the folders in which all of these lie, by name.
	Roots []Root
	// Mounts are the mount points beneath these that may be entered, by their names.
	Mounts map[string][]string
	// Tree is the digest of all that goes with a folder, "" without.
	Tree string
	// Policy is the version of the policy.
	Policy string
	// Undo says whether the effect can be taken back, and why not.
	Undo string
	// DryRun: nothing will be done, so nobody needs to be bothered.
	DryRun bool
	// Details are the arguments as they are bound, for a person to read. Says
	// are the agent's and its client's own words.
	Details, Says []Detail

	// Change returns the diff from what is there to what would be, or lines that
	// stand for it; unshown says what of it they don't tell, "" for nothing. It
	// reads, so it is called only when it is shown.
	Change func() (text, unshown string)
	// Aside, if set, is called before the call waits for a person, and the
	// function that it returns afterwards: in between it doesn't work, so its
	// time doesn't count and it keeps nobody waiting.
	Aside func() (back func() error)
	// Progress, if set, tells the client that a person is asked, and what about: at
	// once, and then each second.
	Progress func(waited, most time.Duration, what textsafe.Line)
	// NoWait: the call holds so much that it isn't kept waiting.
	NoWait bool
}

// Operation is something that the policy asks about. List is the entry of a
// built-in list that the name belongs to, "" for none.
type Operation struct {
	Action   core.Action
	Resource core.Resource
	List     string
}

// Root is a folder that names begin at: its name, its path without links, and
// which directory it is.
type Root struct{ Name, Path, ID string }

// Object is one of the things that the call is about, as it was seen.
type Object struct {
	Resource core.Resource
	// State is the etag of what is there, or "absent", and the folder it is in; of
	// a directory that is listed, which one it is.
	State string
	read  func() (string, error)
}

// MaxHashed bounds the size in bytes of a file whose content is read for a yes
// that is for once; of a larger one the etag alone is compared.
const MaxHashed = 8 << 20

// Hash returns the SHA-256 of the content, "" for what isn't a file or is
// larger than MaxHashed.
func (o *Object) Hash() (string, error) {
	if o.read == nil {
		return "", nil
	}
	return o.read()
}

// Detail is a named text.
type Detail struct{ Name, Text string }

// Asking is what a door knows of the call beside its operands. The zero value
// is that of a Go program.
type Asking struct {
	Server, Tool string
	Class        core.Class
	HostSession  string
	// Digest returns that of the arguments in their canonical form.
	Digest func() string
	Says   []Detail
	// Aside and Progress: see Question.
	Aside    func() (back func() error)
	Progress func(waited, most time.Duration, what textsafe.Line)
	// Diff draws a change; without it all that goes and all that comes is shown.
	Diff func(name string, before, after []byte) (text string, complete bool)
	// NoWait: see Question.
	NoWait bool
}

// maxOperations bounds what a question lists.
const maxOperations = 100

// asks collects what the policy asks about.
type asks struct {
	seen map[Operation]bool
	list []Operation
}

func (a *asks) add(action core.Action, r core.Resource, list string) {
	o := Operation{action, r, list}
	if a.seen[o] {
		return
	}
	if a.seen == nil {
		a.seen = map[Operation]bool{}
	}
	a.seen[o] = true
	if len(a.list) < maxOperations {
		a.list = append(a.list, o)
	}
}

// question is what a person would be asked now.
func (c *crossing) question() *Question {
	about, etag := c.about()
	k := c.gate.asking()
	c.diff = k.Diff
	q := &Question{
		Corr: c.corr, Verdict: c.verdict, Etag: etag,
		Request: core.Request{Subject: c.gate.o.Subject, Action: c.action, Resource: about},
		Server:  k.Server, Tool: cmp.Or(k.Tool, c.action.String()), Class: k.Class, HostSession: k.HostSession,
		Operations: c.asks.list, More: len(c.asks.seen) - len(c.asks.list), Policy: c.gate.o.Decider.Version(),
		Listed: c.listed, DryRun: c.call.DryRun, Says: k.Says, Aside: k.Aside, Progress: k.Progress, NoWait: k.NoWait, Tree: c.tree.digest(), Change: c.change, Undo: c.takenBack(),
	}
	for i := range c.operands {
		q.Objects = append(q.Objects, c.operands[i].object())
	}
	q.Roots, q.Mounts = c.roots()
	q.Class = stricter(stricter(q.Class, safety.OfAction(c.action).Class), c.outcome.Class)
	for _, o := range q.Operations {
		if o.Action != core.ToolCall {
			q.Class = stricter(q.Class, safety.OfAction(o.Action).Class)
		}
	}
	given := ""
	if k.Digest != nil {
		given = k.Digest()
	}
	if c.tool != nil {
		q.Server, q.Tool, q.Class = c.tool.Server, c.tool.Name, c.tool.Class
		q.Says = append(q.Says, c.args.says...)
	}
	q.Details = c.details()
	q.Arguments = bound(given, q.Details)
	return q
}

// roots are the folders that the call is about. A tool may use any of them by
// itself.
func (c *crossing) roots() (all []Root, mounts map[string][]string) {
	mounts = map[string][]string{}
	used := map[string]bool{}
	for o := range c.asks.seen {
		used[o.Resource.Root] = true
	}
	for i := range c.operands {
		used[c.operands[i].name.Root().Name()] = true
	}
	for _, r := range c.gate.o.Workspace.Roots() {
		if c.tool == nil && !used[r.Name()] {
			continue
		}
		all = append(all, Root{Name: r.Name(), Path: r.Resolved(), ID: identity(undo.FolderOf(r.Top()))})
		if listed := r.Mounts(); len(listed) > 0 {
			mounts[r.Name()] = listed
		}
	}
	return all, mounts
}

// identity tells a directory from all others, by its time of birth too where the
// file system keeps one: the number of a directory that is gone is used again.
func identity(f undo.Folder) string {
	switch {
	case f == (undo.Folder{}):
		return absent
	case f.Born == 0:
		return fmt.Sprintf("%d:%d", f.Dev, f.Ino)
	}
	return fmt.Sprintf("%d:%d:%d", f.Dev, f.Ino, f.Born)
}

// stricter is the class that promises less. A door that names none leaves it
// to the action.
func stricter(a, b core.Class) core.Class {
	if a == core.ClassUnknown {
		return b
	}
	return max(a, b)
}

// bound is the digest of everything that decides what will be done and is no
// name.
func bound(arguments string, details []Detail) string {
	b, _ := json.Marshal(struct {
		Arguments string
		Details   []Detail
	}{arguments, details}) // strings never fail
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// details are what the crossing itself knows: which name is the old one, content
// by its digest, flags.
func (c *crossing) details() []Detail {
	all := slices.Clone(c.flags)
	for _, part := range []string{"from", "to"} {
		for i := range c.operands {
			if o := &c.operands[i]; o.part == part {
				all = append(all, Detail{part, spell.Name(o.name.Resource().String())})
			}
		}
	}
	if c.proposed != nil && !c.blind() {
		sum := sha256.Sum256(*c.proposed)
		all = append(all, Detail{"content", strconv.Itoa(len(*c.proposed)) + " bytes, sha256 " + hex.EncodeToString(sum[:])})
	}
	if c.args != nil {
		all = append(all, Detail{"arguments", c.args.text})
	}
	if c.tree.n > 0 {
		all = append(all, Detail{"beneath", strconv.Itoa(c.tree.n) + " entries"})
	}
	return all
}

// asFolder begins the state of a directory that is listed or searched: which one it
// is, whatever is in it.
const asFolder = "folder "

func (o *operand) object() Object {
	obj := Object{Resource: o.name.Resource(), State: cmp.Or(o.etag(), absent)}
	if o.dir != nil {
		obj.State = asFolder + identity(undo.FolderIn(o.dir.Info()))
	}
	kind, size := pathguard.KindUnknown, int64(0)
	switch {
	case o.target != nil:
		obj.State += " in " + identity(folderOf(o.target))
		kind, size = o.target.Info().Kind, o.target.Info().Size
	case o.file != nil:
		kind, size = pathguard.KindFile, o.file.Size()
	}
	if kind == pathguard.KindFile && size <= MaxHashed {
		name, etag := o.name, o.etag()
		obj.read = func() (string, error) { return hashOf(name, etag) }
	}
	return obj
}

// hashOf reads the file that has this etag. Another one is stale.
func hashOf(name pathguard.Name, etag string) (string, error) {
	f, err := name.Open()
	if err != nil {
		return "unreadable", nil // nobody can read it: the etag has to do
	}
	defer f.Close()
	if f.Fingerprint().String() != etag {
		return "", &fault.Error{Code: fault.GrantStale, Resource: name.Resource().String()}
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, MaxHashed+1)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// same refuses when the question would now be another one.
func (q *Question) same(now *Question) error {
	refusal := func(code fault.Code, rule string) error {
		return &fault.Error{Code: code, Op: q.Request.Action.String(), Resource: q.Request.Resource.String(), Rule: rule}
	}
	switch {
	case q.Policy != now.Policy:
		return refusal(fault.GrantMismatch, policyChanged)
	case q.Tree != now.Tree || !slices.EqualFunc(q.Objects, now.Objects, func(a, b Object) bool { return a.Resource == b.Resource && a.State == b.State }):
		return refusal(fault.GrantStale, "")
	case !slices.Equal(q.Roots, now.Roots):
		return refusal(fault.GrantMismatch, "the folder is another one now")
	case q.Request != now.Request || q.Arguments != now.Arguments || q.Class != now.Class || q.More != now.More || !slices.Equal(q.Operations, now.Operations):
		return refusal(fault.GrantMismatch, "")
	}
	return nil
}
