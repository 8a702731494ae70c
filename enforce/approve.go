// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// approve asks once. A person is bothered only for what could be done.
func (c *crossing) approve(ctx context.Context) error {
	if c.verdict.Decision != core.Ask || c.asked != nil {
		return nil
	}
	if err := c.look(ctx); err != nil {
		return err
	}
	return c.ask(ctx)
}

// look runs the check, which collects anew what goes with a folder, and finds
// out whether the effect could be undone.
func (c *crossing) look(ctx context.Context) error {
	c.tree, c.counts = beneath{}, c.verdict.Decision == core.Ask
	if c.check == nil {
		return nil
	}
	if err := c.check(ctx); err != nil {
		return err
	}
	return c.cover(ctx)
}

// mayRead reports whether what the content says may be told to the caller: the
// policy lets it be read, or a person did. Until then the call goes on without it.
func (c *crossing) mayRead(r core.Resource) (bool, error) {
	reads := c.readsAsked(r)
	if len(reads) == 0 || c.asked == nil {
		return len(reads) == 0, nil
	}
	for _, o := range reads {
		same := func(said Operation) bool { return said.Action == o.Action && said.Resource == o.Resource }
		if !slices.ContainsFunc(c.asked.Operations, same) {
			return false, &fault.Error{Code: fault.GrantMismatch, Op: c.action.String(), Rule: stricterNow}
		}
	}
	return true, nil
}

// stricterNow is why a yes is not for the call any more.
const stricterNow = "the policy became stricter while the call waited"

// readsAsked are the reads without whose yes nothing of the content is told: of
// the name, and of each link that led to it.
func (c *crossing) readsAsked(r core.Resource) (all []Operation) {
	if c.gate.evaluate(core.FSRead, r).Decision != core.Allow {
		all = append(all, Operation{Action: core.FSRead, Resource: r})
	}
	for o := range c.asks.seen {
		if o.Action == core.FSRead {
			all = append(all, o)
		}
	}
	return all
}

// blind reports whether a person is asked before it is known what an edit makes.
func (c *crossing) blind() bool {
	return c.edits != nil && len(c.readsAsked(c.operands[0].name.Resource())) > 0
}

func (c *crossing) ask(ctx context.Context) error {
	if c.tool != nil {
		if err := c.readArguments(c.given); err != nil {
			return err
		}
	}
	q := c.question()
	lacks := ""
	switch {
	case c.gate.o.Approver == nil:
		lacks = "nobody can be asked"
	case c.blind() && c.gate.asking().Digest == nil:
		lacks = "nothing says which edit a yes would be for"
	}
	if lacks != "" {
		return &fault.Error{
			Code: fault.PolicyAsk, Op: c.action.String(), Resource: q.Request.Resource.String(),
			Rule: c.verdict.Reason.String() + ", and " + lacks, Hint: c.allowHint(),
		}
	}
	yes, err := c.gate.o.Approver.Approve(ctx, q)
	if err == nil && yes == nil {
		err = &fault.Error{Code: fault.Bug, Op: c.action.String(), Rule: "the approver answered nothing"}
	}
	if err != nil {
		return err
	}
	c.asked, c.yes = q, yes
	return nil
}

// spend uses the yes, for what is held now.
func (c *crossing) spend(ctx context.Context) error {
	if c.verdict.Decision != core.Ask {
		return nil
	}
	if c.yes == nil {
		return &fault.Error{Code: fault.Bug, Op: c.action.String(), Rule: "nobody was asked"}
	}
	now := c.question()
	err := c.asked.same(now)
	if err != nil {
		return err
	}
	corr, err := c.yes.Spend(ctx, now)
	if err == nil && corr != "" && corr != c.corr {
		c.corr = corr
		if c.taking != nil {
			c.taking.Corr = corr // the journal has it under the id of this call
		}
		if c.outcome.UndoID != "" {
			c.outcome.UndoID = corr
		}
	}
	return err
}

// about is what a person is asked about: the tool of a guarded handler, else
// the first operand and what is there now.
func (c *crossing) about() (core.Resource, string) {
	if c.tool != nil {
		return c.tool.resource(), ""
	}
	return c.operands[0].name.Resource(), c.operands[0].etag()
}

// allowHint names the file and the rule in which a person can allow it: the
// place of the rule that asks, or else where a rule of one's own belongs.
func (c *crossing) allowHint() string {
	at := "in the policy file"
	switch pos := c.verdict.Reason.Pos; {
	case pos.Line > 0:
		at = "at " + pos.String()
	case c.gate.o.PolicyFile != "":
		at = "in " + c.gate.o.PolicyFile
	}
	section := "rules: "
	if c.verdict.Reason.Step == core.StepAgent {
		section = "agents: " + c.gate.o.Subject.Agent + ": "
	}
	return "allow it " + at + " under " + section + c.decided.String()
}

// stale refuses early when an operand isn't what a person was asked about.
func (c *crossing) stale() error {
	if c.asked == nil {
		return nil
	}
	for i, o := range c.asked.Objects {
		if now := c.operands[i].object(); now.State != o.State || now.Resource != o.Resource {
			return &fault.Error{Code: fault.GrantStale, Op: c.action.String()}
		}
	}
	return nil
}
