// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"iter"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// What is beneath a folder is held against other crossings alone, and between the last look, which
// a yes was spent for, and the effect lies at least the wait for the disk. So a
// call that a person was asked about looks again right at the effect. Others act
// on what is there.

// grown is the refusal when something isn't what was approved any more. It names
// the operand only: what is beneath it may be hidden.
func (c *crossing) grown(cause error) error {
	f := &fault.Error{Code: fault.GrantStale, Op: c.action.String(), Err: cause}
	if len(c.operands) > 0 {
		f.Resource = c.operands[0].name.Resource().String()
	}
	return f
}

// since makes a change that the effect itself noticed one of what was approved.
func (c *crossing) since(err error) error {
	if c.asked == nil || fault.CodeOf(err) != fault.PreconditionFailed || errors.Is(err, pathguard.ErrMayHaveApplied) {
		return err
	}
	return c.grown(err)
}

// unchanged compares what is beneath a folder with what was approved. It was
// beneath the name was then.
func (c *crossing) unchanged(ctx context.Context, t *pathguard.Target, was pathguard.Name) error {
	if c.asked == nil || !c.tree.walked {
		return nil
	}
	var now beneath
	err := t.Descendants(ctx, c.gate.o.MaxEntries, func(n pathguard.Name, info pathguard.Info) error {
		var err error
		if t.Name() != was {
			n, err = rebase(n, t.Name(), was)
		}
		now.add(n, info)
		return err
	})
	if ctx.Err() == nil && (err != nil || now.sum != c.tree.sum) {
		return c.grown(err)
	}
	return err
}

// exactly are the options of a removal of nothing but what was approved.
func (c *crossing) exactly() pathguard.WriteOptions {
	o := c.options()
	c.counts = false // what the removal meets is compared, not added
	if c.asked == nil {
		return o
	}
	o.Exactly = func(all iter.Seq2[pathguard.Name, pathguard.Info]) error {
		var now beneath
		for n, info := range all {
			now.add(n, info)
		}
		if now.sum != c.tree.sum {
			return c.grown(nil)
		}
		return nil
	}
	return o
}

// nothingNew is judge for the moment of the effect, when nobody can be asked any
// more: a name that the policy asks about, and nobody was asked about, ends it.
func (c *crossing) nothingNew(o *operand, judge func(pathguard.Name, pathguard.Info) error) func(pathguard.Name, pathguard.Info) error {
	return func(n pathguard.Name, info pathguard.Info) error {
		before := len(c.asks.seen)
		err := judge(n, info)
		if err != nil || len(c.asks.seen) == before {
			return err
		}
		if c.asked != nil {
			return c.grown(nil)
		}
		return &fault.Error{
			Code: fault.PolicyAsk, Resource: o.name.Resource().String(), Retry: true,
			Rule: "something that the policy asks about came beneath it meanwhile", Hint: "call it again, so that a person is asked",
		}
	}
}

// arrived proves that the folder which was moved holds what was approved, or
// moves it back.
func (c *crossing) arrived(ctx context.Context, from, to *operand) error {
	if c.asked == nil || !c.tree.walked {
		return nil
	}
	moved, err := to.name.PinEntry()
	if err == nil {
		err = c.unchanged(ctx, moved, from.name)
		_ = moved.Close()
	}
	if err == nil {
		return nil
	}
	for range 3 { // whoever changes it may be at it still
		back := c.moveBack(from, to)
		if back == nil {
			return err
		}
		err = errors.Join(err, back)
	}
	return &fault.Error{
		Code: fault.IOFailed, Resource: to.name.Resource().String(), Err: errors.Join(pathguard.ErrMayHaveApplied, err),
		Rule: "what was approved changed while it was moved, and could not be moved back: read both names again",
	}
}

// moveBack takes a move back, if what is there is what was moved.
func (c *crossing) moveBack(from, to *operand) error {
	moved, err := to.name.PinEntry()
	if err != nil {
		return err
	}
	defer moved.Close()
	was, now := from.target.Fingerprint().Facts(), moved.Fingerprint().Facts()
	if !moved.Exists() || was.Dev != now.Dev || was.Ino != now.Ino {
		return &fault.Error{Code: fault.PreconditionFailed, Resource: to.name.Resource().String(), Rule: "something else has the name now"}
	}
	free, err := from.name.PinEntry()
	if err != nil {
		return err
	}
	defer free.Close()
	return pathguard.Rename(moved, free)
}
