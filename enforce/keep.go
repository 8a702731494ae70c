// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/safety"
	"github.com/postern-gate/postern/internal/state/undo"
)

// keeping is what a crossing does so that its effect can be taken back.
type keeping struct {
	// steps are what the effect will be, name by name. It runs after the check.
	steps func(context.Context) ([]*undo.Planned, error)
	// stage makes the file that takes the place of the first operand's, if the
	// effect is of that kind.
	stage func(pathguard.WriteOptions) (*pathguard.Staged, error)

	undoes bool // it takes back another change
	// wanted are the images that the undo still needs.
	wanted map[string]bool
	// takesBack is what the records of that share.
	takesBack string
	first     int // number of its first step in that
	taking    *undo.Change
	lost      string // why it can't be undone
	entry     *undo.Entry
	staged    *pathguard.Staged
	fillErr   error
	now       pathguard.Facts // what the last step left
}

// cover finds out whether the effect could be undone. What could not, and does
// away with something, is destructive: it needs the caller's confirm, whatever
// the policy requires.
func (c *crossing) cover(ctx context.Context) error {
	class := safety.OfAction(c.action).Class
	if c.gate.o.Keeper == nil || c.steps == nil || !c.mutates() {
		return nil
	}
	steps, err := c.steps(ctx)
	if err != nil {
		return err
	}
	c.outcome.Class = class
	if len(steps) == 0 {
		return nil
	}
	c.identify(steps)
	s := c.gate.o.Subject
	c.taking = &undo.Change{
		ID: c.corr, Time: c.gate.o.Clock.Now(), Agent: s.Agent, Session: sessionOf(s, c.corr), Source: s.Source,
		Op: c.action.String(), Undoes: c.undoes, First: c.first, Steps: steps, Needs: c.wanted,
	}
	c.lost = c.gate.o.Keeper.Cover(c.taking)
	if c.undoes && c.lost != "" {
		return &fault.Error{Code: fault.ConfirmMissing, Rule: c.lost}
	}
	c.outcome.Undoable, c.outcome.UndoReason = c.lost == "", c.lost
	if c.lost == "" || !displaces(steps) {
		return nil
	}
	c.outcome.Class = core.Destructive
	if c.call.Confirm {
		return nil
	}
	return &fault.Error{
		Code: fault.ConfirmMissing, Resource: c.operands[0].name.Resource().String(),
		Rule: "PRECONDITION_FAILED: " + c.discards + ", which can't be undone: " + c.lost + ". Set confirm=True to proceed. [required=confirm]",
	}
}

// identify notes in which directories the steps are, so that none is taken back
// in another that stands there later, and which mount points led there.
func (c *crossing) identify(steps []*undo.Planned) {
	roots, tops := map[undo.Place]*pathguard.Root{}, map[undo.Place]undo.Folder{}
	for i := range c.operands {
		r := c.operands[i].name.Root()
		at := undo.Place{Root: r.Name(), Path: r.Resolved()}
		roots[at], tops[at] = r, undo.FolderOf(r.Top())
	}
	for _, s := range steps {
		for _, p := range s.Places() {
			if r := roots[rootOf(p)]; r != nil {
				s.Enter(p, r.Mounts())
			}
		}
		s.Top = tops[rootOf(s.Place)]
		if s.To != nil && rootOf(*s.To) != rootOf(s.Place) {
			s.ToTop = tops[rootOf(*s.To)]
		}
		if s.Target != nil {
			s.Up = folderOf(s.Target)
		}
	}
}

// rootOf is where the root of a place lies.
func rootOf(p undo.Place) undo.Place { return undo.Place{Root: p.Root, Path: p.Path} }

// folderOf is the directory that is held for a target.
func folderOf(t *pathguard.Target) undo.Folder {
	held, _ := t.IDs()
	for up, ok := t.Name().Parent(); ok; up, ok = up.Parent() { // some may be missing yet
		if f := undo.FolderOf(up); f.Dev == held.Dev && f.Ino == held.Ino {
			return f
		}
	}
	return undo.Folder{Dev: held.Dev, Ino: held.Ino}
}

func displaces(steps []*undo.Planned) bool {
	return steps[0].Do == undo.Replace || steps[0].Do == undo.Remove || steps[0].Do == undo.Truncate
}

// sessionOf is the client's session, or else the process.
func sessionOf(s core.Subject, corr string) string {
	if s.Session != "" {
		return s.Session
	}
	return prefixOf(corr)
}

// keep makes ready what the effect needs and what can still be refused: the new
// file beside the old one, empty, and the line of the journal.
func (c *crossing) keep() (err error) {
	if c.stage != nil {
		if c.staged, err = c.stage(pathguard.WriteOptions{}); err != nil {
			return err
		}
	}
	if c.taking == nil || c.lost != "" {
		return nil
	}
	if c.staged != nil {
		base, id := c.staged.Temp()
		c.taking.Steps[0].Temp, c.taking.Steps[0].File = base, id.Ino
	}
	if err := c.announce(); err != nil {
		return err // else somebody took this change for one of a dead process
	}
	if c.entry, err = c.gate.o.Keeper.Begin(c.taking); err != nil {
		return err
	}
	c.outcome.UndoID = c.corr
	if c.staged != nil {
		c.staged.Keeping(c.entry.Options(0))
	}
	return nil
}

// intend writes down the intent. What else must be on disk before the effect,
// the journal, copies, and the new content, is written and waited for at the
// same time: one wait instead of three.
func (c *crossing) intend() error {
	filled, synced := make(chan error, 1), make(chan error, 1)
	if c.staged != nil {
		go func() { filled <- c.fill() }()
	} else {
		filled <- nil
	}
	if c.entry != nil {
		go func() { synced <- c.entry.Sync() }()
	} else {
		synced <- nil
	}
	err := c.record(nil)
	c.fillErr = <-filled
	return errors.Join(<-synced, err)
}

// fill fills the new file, and notes which it is.
func (c *crossing) fill() error {
	err := c.staged.Fill()
	if err == nil && c.entry != nil {
		_ = c.entry.File(0, c.staged.Filled()) // else it is not known after a crash
	}
	return err
}

// options say where what is displaced goes.
func (c *crossing) options() pathguard.WriteOptions {
	if c.entry == nil {
		return pathguard.WriteOptions{}
	}
	return c.entry.Options(0)
}

// did notes what a step left.
func (c *crossing) did(i int, now pathguard.Facts) {
	c.now = now
	if c.entry != nil && c.entry.Done(i, now) != nil {
		c.unnoted()
	}
}

func (c *crossing) unnoted() {
	c.outcome.Warnings = append(c.outcome.Warnings, "how to undo it could not be written down completely; the next start looks after it")
}

// facts are what a name leads to now, for a step that was just made: zero where
// they can't be told, and then it can't be taken back.
func facts(n pathguard.Name) pathguard.Facts {
	now, _ := undo.FactsOf(n)
	return now
}

// settle says in the journal how the effect ended.
func (c *crossing) settle(err error) {
	switch {
	case c.entry != nil:
		state, why := undo.Committed, ""
		if err != nil {
			state = undo.Aborted
			c.outcome.Undoable, c.outcome.UndoID = false, ""
		}
		if errors.Is(err, pathguard.ErrMayHaveApplied) {
			state, why = undo.Attention, "the call failed half way"
		}
		if c.entry.End(state, why) != nil {
			c.unnoted()
		}
	case c.taking != nil && c.lost != "" && err == nil:
		c.taking.Now = c.now
		_ = c.gate.o.Keeper.Lost(c.taking, c.lost) // the audit log has the change itself
	}
}

// forget takes back what was made ready for an effect that is refused.
func (c *crossing) forget() {
	if c.entry != nil {
		_ = c.entry.End(undo.Aborted, "")
	}
	c.outcome.Undoable, c.outcome.UndoID = false, ""
}

func (k *keeping) close() {
	if k.staged != nil {
		k.staged.Discard()
	}
}

// planned is a step at a target.
func planned(do undo.Do, t *pathguard.Target) *undo.Planned {
	p := &undo.Planned{Target: t, Step: undo.Step{Do: do, Place: placeOf(t.Name())}}
	if t.Exists() {
		p.Was = t.Fingerprint().Facts()
	}
	return p
}

func placeOf(n pathguard.Name) undo.Place {
	return undo.Place{Root: n.Root().Name(), Path: n.Root().Resolved(), Rel: n.Rel()}
}

func one(p *undo.Planned) ([]*undo.Planned, error) { return []*undo.Planned{p}, nil }

// writes makes the crossing one that writes the whole content of its first
// operand.
func (c *crossing) writes(content func() io.Reader, mode fs.FileMode) {
	c.steps = func(context.Context) ([]*undo.Planned, error) {
		t := c.operands[0].target
		if t.Exists() {
			return one(planned(undo.Replace, t))
		}
		return one(planned(undo.Create, t))
	}
	c.stage = func(o pathguard.WriteOptions) (*pathguard.Staged, error) {
		t := c.operands[0].target
		if t.Exists() {
			return t.StageReplace(content(), o)
		}
		c.outcome.Created = true
		return t.StageCreate(content(), mode, o)
	}
	c.perform = func(context.Context) error { return c.put() }
}

// put gives the staged file its name.
func (c *crossing) put() error {
	if c.fillErr != nil {
		return c.fillErr
	}
	w, err := c.staged.Commit()
	c.outcome.NoCAS = err == nil && !w.CAS
	return c.wrote(w, err)
}

// removal is the step of a delete. What a directory holds is counted.
func (c *crossing) removal(ctx context.Context) ([]*undo.Planned, error) {
	t := c.operands[0].target
	p := planned(undo.Remove, t)
	p.Entries, p.Temp = 1, pathguard.TempName()
	err := t.Descendants(ctx, c.gate.o.MaxEntries, func(_ pathguard.Name, info pathguard.Info) error {
		counted(p, info)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return one(p)
}

// counted counts what is removed with a directory.
func counted(p *undo.Planned, info pathguard.Info) {
	p.Entries++
	if info.Kind == pathguard.KindFile {
		p.Linked = p.Linked || info.Nlink > 1
		p.Bytes, p.Largest = p.Bytes+info.Size, max(p.Largest, info.Size)
	}
}

// takenBack says whether the effect can be undone, for a person who is asked.
func (c *crossing) takenBack() string {
	switch {
	case c.tool != nil:
		return "no (what a tool does is its own)"
	case !c.mutates():
		return "nothing is changed"
	case c.outcome.Undoable:
		return "yes"
	case c.outcome.UndoReason != "":
		return "no (" + c.outcome.UndoReason + ")"
	}
	return "no (nothing is kept here)"
}
