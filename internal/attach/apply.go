// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"slices"

	"github.com/postern-gate/postern/core/fault"
)

// Apply writes the plan: every file is looked at once more before the first is
// written. What is done is remembered before it is done, so that after an error
// or a kill Undo takes out what there is. A plan without changes writes nothing.
func (p *Plan) Apply(ctx context.Context, stateDir string) error {
	if p.Idle() {
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
	if !p.undo {
		for _, c := range p.Changes {
			b.note(c)
		}
		if err := b.save(); err != nil {
			return err
		}
	}
	for i, c := range p.Changes {
		if err := p.write(c); err != nil {
			return partly(err, i)
		}
	}
	if !p.undo {
		return nil
	}
	for _, r := range p.done {
		for _, dir := range slices.Backward(slices.Sorted(slices.Values(r.Dirs))) {
			p.disk.dropDir(dir, r.InProject)
		}
		b.drop(r)
	}
	return b.save()
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
