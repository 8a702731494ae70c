// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"path"
	"slices"

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

// policies finds the policy of a root that a step lies in.
type policies func(root string) (Decider, error)

// policyIn finds the policy of a root that the gate of a step opens, once in a run
// and not before somebody asks.
func (r *undoRun) policyIn(o opening) policies {
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

// agentNaming is a Decider that names the agents which it has rules of their own for.
type agentNaming interface{ Agents() []string }

// ruling is one that says which of them has rules for an action: it decides for the
// others as for no agent.
type ruling interface {
	Ruled(agent string, a core.Action) bool
}

// filler is somebody who may have filled what comes back, and the actions for which
// more than what holds for no agent may have to be asked.
type filler struct {
	core.Subject

	place, fixed []core.Action
}

// returning judges the names that an undo gives back. No decision is asked of the
// person who runs it, so this one is made for them: by what holds for no agent, and
// for each that a policy names, since any of them may have put something there.
type returning struct {
	then Decider  // of the name that something gets
	now  Decider  // of the name that it has, nil for what is kept
	whom []filler // no agent first
}

// judging is how the names beneath one are judged, by the policy of its root. from is
// the name that it has, nil for what is kept.
func (of policies) judging(from *pathguard.Name, to pathguard.Name) (r returning, err error) {
	if r.then, err = of.policy(to); err == nil && from != nil {
		r.now, err = of.policy(*from)
	}
	if err == nil {
		r.whom, err = subjects(to, r.then, r.now)
	}
	return r, err
}

func cantTell(n pathguard.Name, why, next string, cause error) error {
	return &fault.Error{
		Code: fault.PreconditionFailed, Op: opReturn, Resource: n.String(),
		Rule: "whether the policy of its folder protects the name can't be told: " + why, Hint: next, Err: cause,
	}
}

// policy is that of the name's root. One that doesn't reach the name knows nothing of
// what it protects.
func (of policies) policy(n pathguard.Name) (Decider, error) {
	d, err := of(n.Root().Name())
	if err != nil {
		f := fault.As(err)
		return nil, cantTell(n, f.Because(), f.Next(), err)
	}
	v := d.Evaluate(core.Request{Action: core.FSCreate, Resource: n.Resource()})
	if v.Decision == core.Deny && v.Reason.Step == core.StepContainment {
		return nil, cantTell(n, v.Reason.Why, "let the policy there name the folder, for writing too, or give its file with --policy", nil)
	}
	return d, nil
}

// subjects are whoever may have filled what comes back: no agent, and each that one of
// the policies names, be its name proven or not.
func subjects(n pathguard.Name, by ...Decider) ([]filler, error) {
	all := []filler{{place: placeActions, fixed: fixedActions}}
	for _, d := range by {
		if d == nil {
			continue
		}
		named, ok := d.(agentNaming)
		if !ok {
			return nil, cantTell(n, "it doesn't say which agents it has rules for", "give the gate a decider with Agents() []string", nil)
		}
		for _, name := range named.Agents() {
			if slices.ContainsFunc(all, func(f filler) bool { return f.Agent == name }) {
				continue
			}
			f := filler{core.Subject{Agent: name}, ruledFor(name, placeActions, by), ruledFor(name, fixedActions, by)}
			all = append(all, f)
			f.Proven = true
			all = append(all, f)
		}
	}
	return all, nil
}

// ruledFor are those actions for which one of the policies may have rules for the agent.
func ruledFor(agent string, of []core.Action, by []Decider) (actions []core.Action) {
	for _, a := range of {
		if slices.ContainsFunc(by, func(d Decider) bool {
			r, ok := d.(ruling)
			return d != nil && (!ok || r.Ruled(agent, a))
		}) {
			actions = append(actions, a)
		}
	}
	return actions
}

// folder visits what lies beneath a folder by its names, each folder before what it
// holds.
type folder func(visit func(pathguard.Name, pathguard.Facts) error) error

// judgeMoved keeps what came into a folder after it was moved, or came to what a link
// leads to, from names that the policy protects, and what it protects there from names
// under which it would not.
func (of policies) judgeMoved(x *undo.Index, e *undo.Entered, from, to pathguard.Name, top pathguard.Facts, beneath folder) error {
	r, err := of.judging(&from, to)
	if err == nil {
		err = r.entry(&from, to, top, false)
	}
	if err != nil {
		return err
	}
	came := cameAfter(x, e)
	return beneath(func(n pathguard.Name, f pathguard.Facts) error {
		renamed, err := rebase(n, from, to)
		if err != nil {
			return err
		}
		return r.entry(&n, renamed, f, came.since(relTo(from, n), f))
	})
}

// judgeKept judges the names that what is kept would get.
func (of policies) judgeKept(ctx context.Context, l *undo.Log, e *undo.Entered, to pathguard.Name) error {
	r, err := of.judging(nil, to)
	if err != nil {
		return err
	}
	if e.Image == "" {
		return r.entry(nil, to, e.Was, false)
	}
	return l.Within(e, func(rel string, f pathguard.Facts) error {
		n, err := beneathTop(to, rel)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		return r.entry(nil, n, f, false)
	})
}

// entry judges one name. What is kept had it, and holds what it did: only what a link
// has beneath it, and what a built-in list has by now, is another matter. What was in
// a moved folder all the time is no agent's doing, but for names that a rule of its own
// protects beneath a link's.
func (r returning) entry(from *pathguard.Name, to pathguard.Name, f pathguard.Facts, since bool) error {
	leads := mayLead(pathguard.Info{Kind: f.Kind()})
	for _, s := range r.whom {
		if s.Agent != "" && !since && (!leads || closed(r.then, s.Subject, to)) {
			continue
		}
		if r.protects(s, from, to, leads) {
			return protectedThen(to, leads, from == nil)
		}
		if since && r.loosens(s, *from, to) {
			return protectedNow(*from, to)
		}
	}
	return nil
}

// protects reports whether the name that something would get is denied to it, and the
// one that it has isn't.
func (r returning) protects(s filler, from *pathguard.Name, to pathguard.Name, leads bool) bool {
	for _, a := range s.place {
		if r.then.Evaluate(core.Request{Subject: s.Subject, Action: a, Resource: to.Resource(), Link: leads}).Decision != core.Deny {
			continue
		}
		if from == nil {
			if !r.ownOnly(s.Subject, a, to, leads) {
				return true
			}
		} else if r.now.Evaluate(core.Request{Subject: s.Subject, Action: a, Resource: from.Resource()}).Decision != core.Deny {
			return true
		}
	}
	return false
}

// closed reports whether something may not be put under the name.
func closed(d Decider, s core.Subject, n pathguard.Name) bool {
	return slices.ContainsFunc(placeActions, func(a core.Action) bool {
		return d.Evaluate(core.Request{Subject: s, Action: a, Resource: n.Resource()}).Decision == core.Deny
	})
}

// ownOnly reports that a denial is a person's, of the name and not of what a link has
// beneath it.
func (r returning) ownOnly(s core.Subject, a core.Action, to pathguard.Name, leads bool) bool {
	v := r.then.Evaluate(core.Request{Subject: s, Action: a, Resource: to.Resource()})
	if v.Decision != core.Deny || v.Reason.Builtin != "" {
		return false
	}
	return !leads || r.then.Evaluate(core.Request{Subject: s, Action: a, Resource: to.Resource(), Link: true}).Reason.Builtin == ""
}

// loosens reports whether something could be done under the one name that can't be
// under the other, or not unasked: what no move of an agent's may bring about.
func (r returning) loosens(s filler, from, to pathguard.Name) bool {
	return slices.ContainsFunc(s.fixed, func(a core.Action) bool {
		now := r.now.Evaluate(core.Request{Subject: s.Subject, Action: a, Resource: from.Resource()})
		return now.Decision < r.then.Evaluate(core.Request{Subject: s.Subject, Action: a, Resource: to.Resource()}).Decision
	})
}

// arrivals tell what came into a folder, or changed in it, since it was moved.
type arrivals struct {
	index   *undo.Index
	moved   int64 // by the clock of the file system
	untold  bool  // it sets no time when it moves something
	stood   func(rel string, now pathguard.Facts) bool
	folders map[string]bool
}

func cameAfter(x *undo.Index, e *undo.Entered) arrivals {
	return arrivals{x, e.Now.CTime, e.Now.CTime <= e.Was.CTime, x.StoodAt(&e.Step), map[string]bool{}}
}

// since is true for what has a time of change that is not before the move, but for
// what an undo brought back as it was; and for all beneath a folder that has one: it
// may have come as a whole. A folder that was there under this name when its top was
// moved has not: what came into it, or changed, tells by its own time.
func (a arrivals) since(rel string, f pathguard.Facts) bool {
	since := a.untold || a.folders[path.Dir(rel)] || a.index.Canonical(f).CTime >= a.moved && !a.stood(rel, f)
	if since && f.Kind() == pathguard.KindDir {
		a.folders[rel] = true
	}
	return since
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

func protectedNow(from, to pathguard.Name) error {
	return &fault.Error{
		Code: fault.PreconditionFailed, Op: opReturn, Resource: to.String(),
		Rule: "something that came or changed since would get a name under which the policy protects it less",
		Hint: "take " + from.String() + " out of the folder, or move the folder back yourself",
	}
}

// judged judges the names that something would get, before it gets them.
func (b *takeBack) judged(c *crossing, judge func(context.Context, policies) error) {
	steps := c.steps
	c.steps = func(ctx context.Context) ([]*undo.Planned, error) {
		if by, ok := c.gate.o.Decider.(byPerson); ok {
			if err := judge(ctx, by.of); err != nil {
				return nil, err
			}
		}
		return steps(ctx)
	}
}
