// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"context"
	"slices"

	"github.com/postern-gate/postern/core/fault"
)

// Apply writes the plan: every file is looked at once more before the first is
// written. What is done is remembered before it is done, so that after an error
// or a kill Undo takes out what there is, and what was not done after all is
// forgotten again. What an earlier one that was killed left unfinished goes. A
// plan without changes writes nothing.
func (p *Plan) Apply(ctx context.Context, stateDir string) error {
	if p.Idle() {
		p.tidy(ctx, stateDir)
		return nil
	}
	for _, c := range p.Changes {
		if err := p.disk.unchanged(c.spot); err != nil {
			return err
		}
	}
	b, err := openBook(ctx, stateDir, p.world.Project)
	if err != nil {
		return err
	}
	defer b.release()
	if p.last && still(b.path) != "" {
		return &fault.Error{Code: fault.PreconditionFailed, Op: op, Rule: "another folder was attached meanwhile, and the user's policy holds for it too", Hint: "postern init --undo again"}
	}
	p.disk.sweep(b.Files)
	before := slices.Clone(b.Files)
	if err := p.remember(b); err != nil {
		return err
	}
	for i, c := range p.Changes {
		if err := p.write(c); err != nil {
			p.unnote(b, before, p.Changes[i:])
			return partly(err, i)
		}
	}
	if !p.undo {
		return p.sign(b)
	}
	for _, r := range p.done {
		for _, dir := range slices.Backward(slices.Sorted(slices.Values(r.Dirs))) {
			p.disk.dropDir(dir)
		}
		b.drop(r)
	}
	return b.save()
}

// remember notes what is about to be done.
func (p *Plan) remember(b *book) error {
	for _, c := range p.Changes {
		if !p.undo {
			b.note(c)
			b.inherit(c)
		}
		b.expect(c)
	}
	return b.save()
}

// sign notes which files the policies are that were made: one that reads the same
// and is another file came with another project.
func (p *Plan) sign(b *book) error {
	for _, c := range p.Changes {
		if c.Client != "" {
			continue
		}
		now, err := p.disk.read(file{c.Path, c.InProject, true})
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(b.Files, record{Path: c.Path}.same); i >= 0 {
			b.Files[i].Print = now.print.String()
		}
	}
	return b.save()
}

// tidy takes away what a killed one left, where there is nothing else to do.
// That is no part of what was asked for, so it fails without an error.
func (p *Plan) tidy(ctx context.Context, stateDir string) {
	if !there(journalPath(stateDir, p.world.Project)) {
		return
	}
	if b, err := openBook(ctx, stateDir, p.world.Project); err == nil {
		p.disk.sweep(b.Files)
		b.release()
	}
}

// unnote makes the journal say of files that were not written, the first of
// which failed, what it said before: an entry of that name may be made by others
// later, and would be taken for ours.
func (p *Plan) unnote(b *book, before []record, failed []Change) {
	if p.undo {
		return
	}
	for i, c := range failed {
		if i == 0 {
			if now, err := p.disk.read(file{c.Path, c.InProject, c.Client == ""}); err == nil && now.exists && bytes.Equal(now.text, c.After) {
				continue // the error came after the effect
			}
			for _, dir := range slices.Backward(c.spot.missing) {
				p.disk.dropDir(dir)
			}
		}
		r := record{Path: c.Path, Entry: c.Entry}
		b.drop(r)
		if old := slices.IndexFunc(before, r.same); old >= 0 {
			b.Files = append(b.Files, before[old])
		}
	}
	_ = b.save() // the error that led here is the one to be told
}

func (p *Plan) write(c Change) error {
	text := c.After
	if c.Remove {
		text = nil
	} else if text == nil {
		text = []byte{}
	}
	return p.disk.write(c.spot, text)
}

// partly is the error of a plan that got only so far.
func partly(err error, written int) error {
	if written == 0 {
		return err
	}
	f := *fault.As(err)
	f.Hint = "some files are written already; see to this one and run it again, or take them back: postern init --undo"
	return &f
}
