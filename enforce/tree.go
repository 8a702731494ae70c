// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/safety"
	"github.com/postern-gate/postern/internal/state/undo"
)

var (
	renameActions  = []core.Action{core.FSRename}
	newNameActions = []core.Action{core.FSRename, core.FSWrite, core.FSCreate}
	// placeActions are those by which a name gets content.
	placeActions  = []core.Action{core.FSWrite, core.FSCreate}
	deleteActions = []core.Action{core.FSDelete}
	// fixedActions are those whose decision a move may not loosen: a file that
	// can't be read, listed, written or deleted under its old name doesn't become so
	// under a new one.
	fixedActions = []core.Action{core.FSRead, core.FSList, core.FSWatch, core.FSWrite, core.FSDelete}
	// shownActions are those of them that a copy must not loosen.
	shownActions = []core.Action{core.FSRead, core.FSList, core.FSWatch}
)

// MakeDir makes a directory and those above it that are missing, each one
// judged before the first is made. One that exists is success.
func (g *Gate) MakeDir(ctx context.Context, spelling string, call Call) (Outcome, error) {
	c := &crossing{action: core.FSCreate, call: call, operands: []operand{
		{spelling: spelling, use: useNewDirs, actions: createActions},
	}}
	o := &c.operands[0]
	c.check = func(context.Context) error {
		if o.target.Exists() && (len(o.below) > 0 || o.target.Info().Kind != pathguard.KindDir) {
			return taken(o.target.Name(), NoFolder, "use a name that is free")
		}
		if o.target.Exists() {
			return nil
		}
		return o.target.CanMkdir()
	}
	c.steps = func(context.Context) ([]*undo.Planned, error) {
		if o.target.Exists() {
			return nil, nil
		}
		steps := []*undo.Planned{planned(undo.Mkdir, o.target)}
		for _, n := range o.below {
			steps = append(steps, &undo.Planned{Step: undo.Step{Do: undo.Mkdir, Place: placeOf(n)}})
		}
		return steps, nil
	}
	c.perform = func(context.Context) error { return c.makeDirs(o) }
	return g.cross(ctx, c)
}

func (c *crossing) makeDirs(o *operand) error {
	if o.target.Exists() {
		return nil
	}
	if err := o.target.Mkdir(dirMode); err != nil {
		return err
	}
	c.outcome.Created = true
	c.did(0, facts(o.target.Name()))
	for i, n := range o.below {
		err := makeDir(n)
		if err == nil {
			c.did(i+1, facts(n))
		}
		if err != nil {
			c.outcome.AbortedAt, c.outcome.SkippedCount = textsafe.Name(n.String()), len(o.below)-i
			c.outcome.MayHaveApplied = true // those above it are made
			return err
		}
	}
	return nil
}

func makeDir(n pathguard.Name) error {
	t, err := n.PinEntry()
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Mkdir(dirMode)
}

// Move renames a file, directory or link, never over something that exists. A
// link is moved itself, and every descendant of a directory is judged under
// its old and its new name.
func (g *Gate) Move(ctx context.Context, source, destination string, call Call) (Outcome, error) {
	c := &crossing{
		action: core.FSRename, call: call, discards: "This call moves " + source,
		operands: []operand{
			{spelling: source, part: "from", use: useEntry, actions: renameActions},
			{spelling: destination, part: "to", use: useEntry, actions: newNameActions},
		},
	}
	from, to := &c.operands[0], &c.operands[1]
	c.check = func(ctx context.Context) error {
		if err := vacant(to); err != nil {
			return err
		}
		if !from.target.Exists() {
			return missing(from)
		}
		if err := outsideOf(to, from); err != nil {
			return err
		}
		if err := c.judgeMove(ctx, from, to); err != nil {
			return err
		}
		return pathguard.CanRename(from.target, to.target)
	}
	c.moves(from, to)
	return g.cross(ctx, c)
}

// moves makes the crossing a rename.
func (c *crossing) moves(from, to *operand) {
	c.steps = func(ctx context.Context) ([]*undo.Planned, error) {
		p, there := planned(undo.Rename, from.target), placeOf(to.name)
		p.To = &there
		return []*undo.Planned{p}, from.target.Descendants(ctx, c.gate.o.MaxEntries, func(n pathguard.Name, info pathguard.Info) error {
			p.Stand(relTo(from.name, n), info.Fingerprint.Facts())
			return nil
		})
	}
	c.perform = func(ctx context.Context) error {
		if err := c.unchanged(ctx, from.target, from.name); err != nil {
			return err
		}
		err := c.since(pathguard.Rename(from.target, to.target))
		if err == nil {
			err = c.arrived(ctx, from, to)
		}
		if err == nil {
			c.did(0, facts(to.name))
		}
		return err
	}
}

// judgeMove judges the entry and, of a directory, all that goes with it.
func (c *crossing) judgeMove(ctx context.Context, from, to *operand) error {
	if err := c.judgeNewName(from.name, to.name, fixedActions); err != nil {
		return err
	}
	if from.target.Info().Kind == pathguard.KindFile {
		return c.movableContent(from.name)
	}
	if err := c.judgeLink(from.target.Info(), to.name); err != nil {
		return err
	}
	return c.descend(ctx, from, func(n pathguard.Name, info pathguard.Info) error {
		renamed, err := rebase(n, from.name, to.name)
		if err != nil {
			return err
		}
		if err := judgeAll(c, renameActions, n.Resource()); err != nil {
			return err
		}
		if err := judgeAll(c, newNameActions, renamed.Resource()); err != nil {
			return err
		}
		if err := c.judgeLink(info, renamed); err != nil {
			return err
		}
		if err := c.judgeNewName(n, renamed, fixedActions); err != nil || info.Kind != pathguard.KindFile {
			return err
		}
		return c.movableContent(n)
	})
}

// judgeNewName applies the decisions about the old name that would become
// looser under the new one.
func (c *crossing) judgeNewName(from, to pathguard.Name, actions []core.Action) error {
	for _, a := range actions {
		old := c.gate.evaluate(a, from.Resource())
		if old.Decision >= c.gate.evaluate(a, to.Resource()).Decision {
			continue
		}
		if err := c.judge(a, from.Resource()); err != nil {
			return err
		}
	}
	return nil
}

// judgeLink keeps a link, or what may be one, from a name beneath which others are
// protected: what is changed through it is judged by the name that it leads to.
func (c *crossing) judgeLink(info pathguard.Info, to pathguard.Name) error {
	if !mayLead(info) {
		return nil
	}
	for _, a := range placeActions {
		r := to.Resource()
		v := c.gate.o.Decider.Evaluate(core.Request{Subject: c.gate.o.Subject, Action: a, Resource: r, Link: true})
		if v.Decision != core.Deny { // an ask was one already
			continue
		}
		f := *fault.As(c.judged(a, r, v))
		f.Hint = "use another name for the link, or move what it leads to"
		return &f
	}
	return nil
}

// mayLead is true for a link, and for what may be one.
func mayLead(info pathguard.Info) bool {
	return info.Kind != pathguard.KindFile && info.Kind != pathguard.KindDir
}

// movableContent keeps a file that its content protects from a name that
// would not. The answer tells of the content, so it is for who may read it.
func (c *crossing) movableContent(n pathguard.Name) error {
	if !hasContentRule(n.Resource()) {
		return nil
	}
	if err := judgeAll(c, readActions, n.Resource()); err != nil {
		return err
	}
	return c.readable(n)
}

// descend visits everything beneath an operand that is a directory.
func (c *crossing) descend(ctx context.Context, o *operand, visit func(pathguard.Name, pathguard.Info) error) error {
	if o.target.Info().Kind != pathguard.KindDir {
		return nil
	}
	c.tree.walked = true
	return o.target.Descendants(ctx, c.gate.o.MaxEntries, c.discreet(o, visit))
}

// discreet keeps a refusal from telling of a name that the policy hides: it
// then says only that there is one.
func (c *crossing) discreet(o *operand, visit func(pathguard.Name, pathguard.Info) error) func(pathguard.Name, pathguard.Info) error {
	return func(n pathguard.Name, info pathguard.Info) error {
		if c.counts {
			c.tree.add(n, info)
		}
		err := visit(n, info)
		if fault.CodeOf(err) != fault.PolicyDenied || c.gate.evaluate(core.FSList, n.Resource()).Decision == core.Allow {
			return err
		}
		return &fault.Error{
			Code: fault.PolicyDenied, Resource: o.name.Resource().String(), Err: err,
			Rule: "the policy protects something beneath it", Hint: "move, copy or delete what is beneath it one by one",
		}
	}
}

// rebase is the name that something beneath from has when that is to. What lies in
// another root has its name there.
func rebase(n, from, to pathguard.Name) (pathguard.Name, error) {
	if n.Root() != from.Root() {
		return n, &fault.Error{Code: fault.PolicyDenied, Resource: from.String(), Rule: "another root lies in it, " + n.Root().Name() + "://", Hint: "name what is beneath it one by one"}
	}
	for part := range strings.SplitSeq(relTo(from, n), "/") {
		var err error
		if to, err = to.Join(part); err != nil {
			return to, err
		}
	}
	return to, nil
}

func vacant(o *operand) error {
	if !o.target.Exists() {
		return nil
	}
	return taken(o.name, NotVacant, "use a name that is free")
}

// What is there and in the way, as the log tells it too.
const (
	NotVacant = "the destination exists, and nothing is moved or copied over another"
	NoFolder  = "it exists and is not a directory"
	NotEmpty  = "the directory is not empty"
)

func taken(n pathguard.Name, rule, hint string) error {
	return &fault.Error{Code: fault.PreconditionFailed, Resource: n.Resource().String(), Rule: rule, Hint: hint, Err: safety.Recorded(rule)}
}

// outsideOf refuses a destination beneath the source itself.
func outsideOf(to, from *operand) error {
	if to.name.Root() != from.name.Root() || !strings.HasPrefix(to.name.Rel(), from.name.Rel()+"/") {
		return nil
	}
	return &fault.Error{
		Code: fault.RequestInvalid, Resource: to.spelling,
		Rule: "a directory can't be moved or copied into itself", Hint: "use a destination outside the source",
	}
}

func missing(o *operand) error {
	return &fault.Error{Code: fault.PathMissing, Resource: o.name.Resource().String()}
}

// Delete removes a file, a link (not its target) or a directory; of a
// directory that isn't empty every descendant is judged before the first is
// removed, and recursive must say so.
func (g *Gate) Delete(ctx context.Context, spelling string, recursive bool, call Call) (Outcome, error) {
	c := &crossing{
		action: core.FSDelete, call: call, discards: "This call deletes " + spelling,
		operands: []operand{{spelling: spelling, use: useEntry, actions: deleteActions}},
	}
	if recursive {
		c.discards += " and everything beneath it"
		c.flags = []Detail{{"recursive", "true"}}
	}
	o := &c.operands[0]
	judge := func(n pathguard.Name, _ pathguard.Info) error {
		if !recursive {
			return taken(o.name, NotEmpty, "set recursive: true if everything beneath it is meant")
		}
		return judgeAll(c, deleteActions, n.Resource())
	}
	c.check = func(ctx context.Context) error {
		if !o.target.Exists() {
			return missing(o)
		}
		return o.target.CanRemoveAll(ctx, c.gate.o.MaxEntries, c.discreet(o, judge))
	}
	c.steps = c.removal
	c.perform = func(ctx context.Context) (err error) {
		if recursive {
			last := c.discreet(o, c.nothingNew(o, judge))
			err = c.since(o.target.RemoveAll(ctx, func(n pathguard.Name) error { return last(n, pathguard.Info{}) }, c.exactly()))
		} else {
			err = c.since(o.target.Remove(c.options()))
		}
		if err == nil {
			c.did(0, pathguard.Facts{})
		}
		return err
	}
	return g.cross(ctx, c)
}
