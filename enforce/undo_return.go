// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"io/fs"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// opReturn marks what keeps a name from being given back: why, and what is next.
const opReturn = "undo"

// found is the policy of a root, or why there is none.
type found struct {
	Decider

	err error
}

// policyIn finds the policy of a root that the gate of a step opens, once in a run
// and not before somebody asks.
func (r *undoRun) policyIn(o opening) func(root string) (Decider, error) {
	return func(root string) (Decider, error) {
		at := o.root
		if root != at.Root {
			at = o.to
		}
		f, ok := r.found[at]
		if !ok {
			if f.Decider = r.by.Decider; r.by.Policy != nil {
				f.Decider, f.err = r.by.Policy(at.Root, at.Path)
			}
			r.found[at] = f
		}
		return f.Decider, f.err
	}
}

// returning judges the names that an undo gives back. No decision is asked of the
// person who runs it, so this one is made for them.
type returning struct {
	then Decider // of the name that something gets
	now  Decider // of the name that it has, nil for what is kept
}

// judging is how the names beneath one are judged, by the policy of its root. from is
// the name that it has, nil for what is kept.
func (by byPerson) judging(from *pathguard.Name, to pathguard.Name) (r returning, err error) {
	if r.then, err = by.policy(to); err != nil || from == nil {
		return r, err
	}
	r.now, err = by.policy(*from)
	return r, err
}

// policy is that of the name's root. One that doesn't reach the name knows nothing of
// what it protects.
func (by byPerson) policy(n pathguard.Name) (Decider, error) {
	untold := fault.Error{
		Code: fault.PreconditionFailed, Op: opReturn, Resource: n.String(),
		Rule: "whether the policy of its folder protects the name can't be told: ",
	}
	d, err := by.of(n.Root().Name())
	if err != nil {
		f := fault.As(err)
		untold.Rule, untold.Hint, untold.Err = untold.Rule+f.Because(), f.Next(), err
		return nil, &untold
	}
	v := d.Evaluate(core.Request{Action: core.FSCreate, Resource: n.Resource()})
	if v.Decision == core.Deny && v.Reason.Step == core.StepContainment {
		untold.Rule += v.Reason.Why
		untold.Hint = "let the policy there name the folder, for writing too, or give its file with --policy"
		return nil, &untold
	}
	return d, nil
}

// entry judges one name. What is kept had it, and holds what it did: only what a link
// has beneath it, and what a built-in list has by now, is another matter.
func (r returning) entry(from *pathguard.Name, to pathguard.Name, leads bool) error {
	for _, a := range placeActions {
		v := r.then.Evaluate(core.Request{Action: a, Resource: to.Resource(), Link: leads})
		if v.Decision != core.Deny {
			continue
		}
		if r.now == nil && r.ownOnly(a, to, leads) {
			continue
		}
		if r.now != nil && r.now.Evaluate(core.Request{Action: a, Resource: from.Resource()}).Decision == core.Deny {
			continue
		}
		return protectedThen(to, leads, r.now == nil)
	}
	return nil
}

// ownOnly reports that a denial is a person's, of the name and not of what a link has
// beneath it.
func (r returning) ownOnly(a core.Action, to pathguard.Name, leads bool) bool {
	v := r.then.Evaluate(core.Request{Action: a, Resource: to.Resource()})
	if v.Decision != core.Deny || v.Reason.Builtin != "" {
		return false
	}
	return !leads || r.then.Evaluate(core.Request{Action: a, Resource: to.Resource(), Link: true}).Reason.Builtin == ""
}

func protectedThen(to pathguard.Name, leads, kept bool) error {
	f := &fault.Error{
		Code: fault.PreconditionFailed, Op: opReturn, Resource: to.String(),
		Rule: "something would get a name that the policy protects", Hint: "look at what would be " + to.String() + " first",
	}
	if leads {
		f.Rule = "what a link leads to would get a name that the policy protects"
		f.Hint = "look at what it leads to, then make the link " + to.String() + " yourself"
	}
	switch {
	case kept && leads: // its folder isn't back, and one made by hand would be in the way
		f.Hint = "look at what it leads to; if it is meant, let the policy there allow " + to.String() + " and what is beneath it until it is back"
	case kept:
		f.Hint = "if it is meant, let the policy there allow " + to.String() + " until it is back"
	}
	return f
}

// judgeReturn keeps what came into a folder after it was moved, or came to what a link
// leads to, from names that the policy protects.
func (c *crossing) judgeReturn(ctx context.Context, from, to *operand) error {
	by, ok := c.gate.o.Decider.(byPerson)
	if !ok {
		return nil
	}
	r, err := by.judging(&from.name, to.name)
	if err == nil {
		err = r.entry(&from.name, to.name, mayLead(from.target.Info()))
	}
	if err != nil {
		return err
	}
	return c.descend(ctx, from, func(n pathguard.Name, info pathguard.Info) error {
		renamed, err := rebase(n, from.name, to.name)
		if err != nil {
			return err
		}
		return r.entry(&n, renamed, mayLead(info))
	})
}

// judged judges the names that what is kept would get, before it is brought back.
func (b *takeBack) judged(c *crossing) {
	steps := c.steps
	c.steps = func(ctx context.Context) ([]*undo.Planned, error) {
		if err := b.judgeKept(ctx, c); err != nil {
			return nil, err
		}
		return steps(ctx)
	}
}

func (b *takeBack) judgeKept(ctx context.Context, c *crossing) error {
	by, ok := c.gate.o.Decider.(byPerson)
	if !ok {
		return nil
	}
	to := c.operands[0].name
	r, err := by.judging(nil, to)
	if err != nil {
		return err
	}
	if b.e.Image == "" {
		return r.entry(nil, to, false)
	}
	return b.log.Within(b.e, func(rel string, kind fs.FileMode) error {
		n, err := beneathTop(to, rel)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		return r.entry(nil, n, !kind.IsRegular() && !kind.IsDir())
	})
}

// inTheWay is why a step is a conflict; of a name that is not given back with what is
// next.
func inTheWay(err error) string {
	f := fault.As(err)
	if f.Op != opReturn {
		return f.Because()
	}
	return f.Because() + "; next: " + f.Next()
}
