// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"io/fs"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/safety"
)

// crossing is one operation on its way over the gate.
type crossing struct {
	gate     *Gate
	action   core.Action // what records and refusals call it
	operands []operand
	call     Call
	tool     *Tool  // of a guarded handler
	discards string // what a call without confirm would do away with

	// check holds what can be refused without any effect, after everything is
	// held; a dry run ends after it. perform has the effects.
	check   func(context.Context) error
	perform func(context.Context) error

	// What a person is shown and a yes is bound to, beside the operands.
	proposed *[]byte // content that will be written
	appends  bool    // to what is there
	// edits makes what is proposed of what is there. Where reading asks, it is
	// called for the person's card, and for the caller only after the yes.
	edits func([]byte) ([]byte, error)
	flags []Detail
	diff  func(name string, before, after []byte) (text string, complete bool)

	corr    string
	verdict core.Verdict             // the strictest so far
	decided core.Action              // the action that the verdict is about
	classes map[core.Resource]string // of the names that no record spells out
	listed  bool                     // a name belongs to a built-in list
	asks    asks                     // what a person must be asked about
	trial   bool                     // which of two ways is taken isn't known yet
	tree    beneath                  // what goes with a folder
	counts  bool                     // a yes is bound to that
	args    *toolArguments           // of a guarded handler that asks
	given   map[string]any           // its arguments as they came
	asked   *Question                // what a person said yes to
	yes     Permission               // until it is spent
	release func()
	outcome Outcome
	keeping
}

// Call is what a caller says beside its operands.
type Call struct {
	DryRun  bool
	Confirm bool   // the caller's own word, an accident guard
	IfMatch string // the etag it read, "" for none
}

// cross is the only way to an effect. Each step may refuse; the first that
// does is recorded and ends it.
func (g *Gate) cross(ctx context.Context, c *crossing) (Outcome, error) {
	c.begin(g)
	defer c.close()

	err := c.resolve() // names → handles; each name is judged before it is touched
	if err == nil {
		err = c.require() // confirm and ifMatch come before a person is bothered
	}
	if err == nil {
		err = c.ready(ctx) // a person, where the policy asks for one; locks; everything again
	}
	if errors.Is(err, errAskFirst) { // what is beneath a folder turned it up
		c.unlock()
		err = c.ready(ctx)
	}
	if err == nil && c.call.DryRun {
		return c.preview()
	}
	if err == nil {
		err = c.keep() // how it can be undone, and the new content beside the old
	}
	if err == nil {
		err = c.spend(ctx) // the yes, once
	}
	if err == nil {
		err = c.intend() // the intent and all that goes with it, on disk before the effect
	}
	if err != nil {
		return c.refuse(err)
	}
	return c.finish(c.act(ctx))
}

// errAskFirst ends a pass that found out under the locks that a person must be
// asked. Nobody waits for a person with locks held.
var errAskFirst = errors.New("a person is asked first")

func (c *crossing) ready(ctx context.Context) error {
	if err := c.approve(ctx); err != nil {
		return err
	}
	if err := c.hold(ctx); err != nil { // what was judged is what is held
		return err
	}
	return c.examine(ctx) // what can still be refused without any effect
}

func (c *crossing) begin(g *Gate) {
	c.gate = g
	if c.corr == "" { // an undo is one call of many
		c.corr = newID()
	}
	c.verdict = core.Verdict{Decision: core.Allow}
}

func (c *crossing) close() {
	c.keeping.close()
	for i := range c.operands {
		c.operands[i].close()
	}
	c.unlock()
}

func (c *crossing) unlock() {
	if c.release != nil {
		c.release()
		c.release = nil
	}
}

func (c *crossing) mutates() bool {
	if c.tool != nil && c.tool.Class == core.ReadOnly {
		return false
	}
	return c.action.Mutates()
}

// resolve judges the tool, then judges and opens every operand, in their
// order.
func (c *crossing) resolve() error {
	if err := c.judgeTool(); err != nil {
		return err
	}
	for i := range c.operands {
		if err := c.operands[i].resolve(c); err != nil {
			return err
		}
	}
	return nil
}

// judge adds the verdict for one action on one name. Only a deny ends the
// crossing here; an ask waits until everything else is known.
func (c *crossing) judge(a core.Action, r core.Resource) error {
	return c.judged(a, r, c.gate.evaluate(a, r))
}

func (c *crossing) judged(a core.Action, r core.Resource, v core.Verdict) error {
	same := v.Decision == c.verdict.Decision && a == c.action // the reason that the record should give
	if v.Class != "" {
		if c.classes == nil {
			c.classes = map[core.Resource]string{}
		}
		c.classes[r] = v.Class
	}
	c.listed = c.listed || v.List != "" && !c.trial
	if v.Decision < c.verdict.Decision || same || c.verdict.Reason.Step == core.StepNone {
		c.verdict, c.decided = v, a
	}
	switch v.Decision {
	case core.Ask:
		if !c.trial {
			c.asks.add(a, r, v.List)
		}
		return nil
	case core.Allow:
		return nil
	default:
		return denied(a, r, v)
	}
}

func (g *Gate) evaluate(a core.Action, r core.Resource) core.Verdict {
	return g.o.Decider.Evaluate(core.Request{Subject: g.o.Subject, Action: a, Resource: r})
}

func denied(a core.Action, r core.Resource, v core.Verdict) error {
	return &fault.Error{Code: fault.PolicyDenied, Op: a.String(), Resource: r.String(), Rule: v.Reason.String()}
}

func (c *crossing) require() error {
	if !c.mutates() || len(c.operands) == 0 {
		return nil
	}
	d := c.gate.o.Decider
	o := &c.operands[0]
	return safety.Check(c.action.String(), o.name.Resource().String(),
		safety.Preconditions{Confirm: c.call.Confirm, IfMatch: c.call.IfMatch},
		safety.Required{Confirm: d.ConfirmRequired(c.action), IfMatch: d.IfMatchRequired(c.action)},
		o.etag(), c.discards)
}

// again resolves and judges everything once more. What the policy, or whoever waited
// beside, has made of it since is what counts.
func (c *crossing) again() error {
	before := c.verdict
	if err := c.judgeTool(); err != nil {
		return err
	}
	for i := range c.operands {
		if err := c.operands[i].again(c); err != nil {
			return err
		}
	}
	if len(c.operands) > 0 {
		c.outcome.Name = c.operands[0].name
	}
	if c.verdict.Decision < before.Decision {
		return &fault.Error{Code: fault.GrantMismatch, Op: c.action.String(), Rule: stricterNow}
	}
	if err := c.stale(); err != nil {
		return err
	}
	return c.require()
}

// examine runs the check under the locks. It may turn up names that the
// policy asks about.
func (c *crossing) examine(ctx context.Context) error {
	if err := c.look(ctx); err != nil || c.verdict.Decision != core.Ask || c.asked != nil {
		return err
	}
	return errAskFirst
}

func (c *crossing) act(ctx context.Context) error {
	if c.perform == nil {
		return nil
	}
	return c.perform(ctx)
}

// refuse records the refusal and returns it.
func (c *crossing) refuse(err error) (Outcome, error) {
	c.forget()
	f := c.fault(err)
	if recErr := c.record(f); recErr != nil && f.Code != fault.AuditUnwritable {
		f.Err = errors.Join(f.Err, recErr)
	}
	return c.outcome, f
}

// preview ends a dry run: every step that could refuse has passed.
func (c *crossing) preview() (Outcome, error) {
	c.outcome.DryRun = true
	if err := c.record(&fault.Error{Code: fault.DryRunPreview}); err != nil {
		return c.outcome, err
	}
	return c.outcome, nil
}

// finish records the outcome of a mutation. Its effect stands whether or not
// the record can be written, so a failure here is a warning on the result.
func (c *crossing) finish(err error) (Outcome, error) {
	c.settle(err)
	if c.mutates() {
		f := c.fault(err)
		if recErr := c.recordOutcome(f); recErr != nil {
			c.outcome.Warnings = append(c.outcome.Warnings, "the outcome could not be recorded")
		}
	}
	if err != nil {
		c.outcome.MayHaveApplied = c.outcome.MayHaveApplied || errors.Is(err, pathguard.ErrMayHaveApplied)
		return c.outcome, c.fault(err)
	}
	c.outcome.Changed = c.mutates()
	return c.outcome, nil
}

// fault completes an error with the operation and the caller's own spelling.
func (c *crossing) fault(err error) *fault.Error {
	if err == nil {
		return nil
	}
	f := *fault.As(plain(err))
	f.ID = c.corr
	if f.Op == "" {
		f.Op = c.action.String()
	}
	if f.Resource == "" && len(c.operands) > 0 {
		f.Resource = c.operands[0].spelling
	}
	return &f
}

// plain turns an error of the operating system into a fault without its text,
// which could name what lies outside.
func plain(err error) error {
	var f *fault.Error
	known := errors.As(err, &f)
	over := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case over && (!known || f.Code == fault.IOFailed): // a copy that its context ended
		return &fault.Error{Code: fault.Cancelled, Retry: true, Err: err}
	case known:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Error{Code: fault.PathMissing, Err: err}
	default:
		return &fault.Error{Code: fault.IOFailed, Err: err}
	}
}
