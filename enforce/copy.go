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
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/undo"
)

// Copy makes a new file with the content of another, or a new directory with
// what a directory holds, never over something that exists. It is a read of
// every old name and a create of every new one, all judged before the first
// byte is written. Links, devices and the like in a directory are left out and
// counted.
func (g *Gate) Copy(ctx context.Context, source, destination string, call Call) (Outcome, error) {
	c := &crossing{
		action: core.FSCreate, call: call, discards: "This call copies " + source,
		operands: []operand{
			// The target comes first: it is what is locked, recorded and kept.
			{spelling: destination, part: "to", use: useEntry, actions: createActions},
			{spelling: source, part: "from", use: useTarget, actions: readActions},
		},
	}
	to, from := &c.operands[0], &c.operands[1]
	plan := copyPlan{c: c, from: from, to: to}
	c.check = func(ctx context.Context) error {
		if err := vacant(to); err != nil {
			return err
		}
		if err := plan.make(ctx); err != nil {
			return err
		}
		if plan.items[0].dir {
			return to.target.CanMkdir()
		}
		return to.target.CanCreate()
	}
	c.steps = func(context.Context) ([]*undo.Planned, error) { return plan.steps(), nil }
	c.perform = plan.perform
	return g.cross(ctx, c)
}

// copyPlan is what a copy will make, in an order in which parents come first.
type copyPlan struct {
	c        *crossing
	from, to *operand
	items    []copyItem
}

type copyItem struct {
	from, to pathguard.Name
	dir      bool
	mode     fs.FileMode
	state    pathguard.Fingerprint
}

func (p *copyPlan) make(ctx context.Context) error {
	p.items, p.c.outcome.SkippedCount = nil, 0 // it may run twice
	if !p.from.target.Exists() {
		return missing(p.from)
	}
	dir := p.from.target.Info().Kind == pathguard.KindDir
	if err := p.c.judgeNewName(p.from.name, p.to.name, shownActions); err != nil {
		return err
	}
	p.items = append(p.items, copyItem{p.from.name, p.to.name, dir, p.from.target.Info().Mode.Perm(), p.from.target.Fingerprint()})
	if !dir {
		return p.c.readable(p.from.name)
	}
	if err := outsideOf(p.to, p.from); err != nil {
		return err
	}
	if err := judgeAll(p.c, listActions, p.from.name.Resource()); err != nil {
		return err
	}
	p.c.tree.walked = true
	return p.from.target.Descendants(ctx, p.c.gate.o.MaxEntries, p.c.discreet(p.from, p.add))
}

func (p *copyPlan) add(n pathguard.Name, info pathguard.Info) error {
	dir := info.Kind == pathguard.KindDir
	if !dir && info.Kind != pathguard.KindFile {
		p.c.outcome.SkippedCount++
		return nil
	}
	to, err := rebase(n, p.from.name, p.to.name)
	if err != nil {
		return err
	}
	old := readActions
	if dir {
		old = listActions
	}
	if err := judgeAll(p.c, old, n.Resource()); err != nil {
		return err
	}
	if err := judgeAll(p.c, createActions, to.Resource()); err != nil {
		return err
	}
	if err := p.c.judgeNewName(n, to, shownActions); err != nil {
		return err
	}
	p.items = append(p.items, copyItem{n, to, dir, info.Mode.Perm(), info.Fingerprint})
	if dir {
		return nil
	}
	return p.c.readable(n)
}

// readable opens a file as the copy will.
func (c *crossing) readable(n pathguard.Name) error {
	f, err := n.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	return c.checkContent(n, f)
}

func (p *copyPlan) steps() (steps []*undo.Planned) {
	for _, item := range p.items {
		do := undo.Create
		if item.dir {
			do = undo.Mkdir
		}
		steps = append(steps, &undo.Planned{Step: undo.Step{Do: do, Place: placeOf(item.to)}})
	}
	return steps
}

func (p *copyPlan) perform(ctx context.Context) error {
	if err := p.c.unchanged(ctx, p.from.target, p.from.name); err != nil {
		return err
	}
	for i, item := range p.items {
		err := ctx.Err()
		if err == nil {
			err = p.one(ctx, i, item)
		}
		if err != nil {
			if i > 0 {
				p.c.outcome.AbortedAt, p.c.outcome.MayHaveApplied = textsafe.Name(item.to.String()), true
				p.c.outcome.SkippedCount += len(p.items) - i
			}
			return err
		}
	}
	p.c.outcome.Created = true
	return nil
}

func (p *copyPlan) one(ctx context.Context, i int, item copyItem) error {
	target := p.to.target
	if i > 0 {
		t, err := item.to.PinEntry()
		if err != nil {
			return err
		}
		defer t.Close()
		target = t
	}
	if item.dir {
		err := target.Mkdir(item.mode | 0o700) // what it holds is still to come
		if err == nil {
			p.c.did(i, facts(item.to))
		}
		return err
	}
	f, err := item.from.Open()
	if i > 0 && errors.Is(err, fs.ErrNotExist) { // what is only read is held by nobody
		return &fault.Error{
			Code: fault.PreconditionFailed, Resource: item.from.String(), Err: err, Retry: true,
			Rule: "it was moved or removed while its folder was copied, and " + p.to.name.String() + " has a part of the copy",
			Hint: "delete what was made, and copy again",
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if p.c.asked != nil && f.Fingerprint() != item.state {
		return p.c.grown(nil)
	}
	return p.file(i, target, untilDone{ctx, f}, f.Info().Mode.Perm())
}

// same makes sure that what was read is what was approved: it had the state when
// it was opened, so if it has it still nothing was written to it in between.
func (p *copyPlan) same(item copyItem) error {
	if p.c.asked == nil {
		return nil
	}
	info, err := item.from.Lstat()
	if err == nil && info.Fingerprint == item.state {
		return nil
	}
	return p.c.grown(err)
}

// file makes one file, and tells the journal which one it will be.
func (p *copyPlan) file(i int, target *pathguard.Target, content io.Reader, mode fs.FileMode) error {
	s, err := target.StageCreate(content, mode, pathguard.WriteOptions{})
	if err != nil {
		return err
	}
	defer s.Discard()
	if err := s.Fill(); err != nil {
		return err
	}
	if err := p.same(p.items[i]); err != nil {
		return err
	}
	_, id := s.Temp()
	if p.c.entry != nil && p.c.entry.File(i, s.Filled()) != nil {
		p.c.unnoted()
	}
	w, err := s.Commit()
	if err == nil {
		p.c.did(i, w.Info.Fingerprint.Facts())
	}
	if err == nil && id == (pathguard.ID{}) { // it was filled only now
		if err = p.same(p.items[i]); err != nil {
			err = p.c.grown(errors.Join(pathguard.ErrMayHaveApplied, err))
		}
	}
	return err
}

// untilDone is a reader that ends with its context, so that a copy of any size
// does.
type untilDone struct {
	ctx context.Context //nolint:containedctx // it lives no longer than the copy of one file
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
