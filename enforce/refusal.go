// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"cmp"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

func (q *Question) refused(code fault.Code, rule, hint string) *fault.Error {
	return &fault.Error{Code: code, Op: q.Request.Action.String(), Resource: q.Request.Resource.String(), Rule: rule, Hint: hint}
}

// unanswered is the refusal of what a person may still answer. It is stale where one
// has said yes to what was there before.
func (q *Question) unanswered(asked *grant.Question, stale bool) error {
	code, rule := fault.PolicyAsk, q.Verdict.Reason.String()+", and nobody has answered yet"
	if stale {
		code, rule = fault.GrantStale, "what was approved has changed since"
	}
	f := q.refused(code, rule, "a person runs: postern approve "+asked.ID+", or answers on postern page; then call again")
	f.Err = &answered{id: asked.ID}
	return f
}

// saidNo is the reason of a refusal by a person.
const saidNo = "a person said no"

func (q *Question) denied(no *grant.Grant, rule string) error {
	f := q.refused(fault.PolicyDenied, rule, "do something else, or talk to the person; from "+no.Deadline().Local().Format(time.TimeOnly)+" on the same call is asked about again")
	f.Err = &answered{id: no.ID, why: saidNo}
	return f
}

func (q *Question) paused(agent, rule string) error {
	f := q.refused(fault.PolicyAsk, rule, grant.ResumeHint(agent))
	f.Err = &answered{why: rule}
	return f
}

// answered is the cause of a refusal of what the policy asks about: the question
// that it is by, and what its record says, "" for the rule that asks. Neither has
// anything that the caller wrote.
type answered struct{ id, why string }

func (a *answered) Error() string { return cmp.Or(a.why, "nobody has answered") }

// policyChanged is the reason of a refusal of what waited meanwhile.
const policyChanged = "the policy changed while the call waited"

// outdated is the refusal of a call whose question ended with its policy.
func (q *Question) outdated(asked *grant.Question) error {
	f := q.refused(fault.GrantMismatch, policyChanged, "call again; what the policy asks about now is asked anew")
	f.Err = &answered{id: asked.ID, why: policyChanged}
	return f
}
