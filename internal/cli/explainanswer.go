// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config/advice"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
	"github.com/postern-gate/postern/internal/state/grant"
)

// persons is what people did about a call that the policy asks about.
type persons struct {
	no      *records.Record // a person's, which refused it
	yes     *records.Record // a person's, which is for it
	used    bool            // the yes let it through
	served  bool            // the yes let another call through
	taken   bool            // the yes was taken back
	paused  bool            // the agent was
	waits   bool            // its question does
	resumed bool            // a person has since
	voided  *records.Record // the end of its yes, or an earlier one, with the policy
}

// people finds out what people had to do with how the call ended. What can't be
// read says nothing.
func (x *explanation) people(ctx context.Context, env *Env, s *logState) {
	if y := x.persons.yes; y != nil {
		x.persons.served = recordOf(ctx, s, audit.Spent, y.Approval) != nil
		x.persons.taken = recordOf(ctx, s, audit.Revoked, y.Approval) != nil
	}
	switch {
	case x.code() == fault.PolicyDenied && x.told.Approval != "":
		x.persons.no = recordOf(ctx, s, audit.Denied, x.told.Approval)
	case x.code() == fault.PolicyAsk && (x.told.Reason == grant.PausedRule || x.told.Reason == grant.NoPausedRule):
		x.persons.paused = true
	case x.code() != fault.PolicyAsk && x.told.Approval == "":
		return
	}
	if x.code() == fault.PolicyAsk && !x.persons.paused {
		x.persons.voided = x.outdated(ctx, s)
	}
	store, err := lookAtGrants(env)
	if err != nil {
		return
	}
	x.persons.resumed = !slices.Contains(store.PausedAgents(), x.told.Agent)
	x.persons.waits = slices.Contains(pendingIDs(store), x.told.Approval)
}

// recordOf is the first record of that event about the question with that id, nil
// for none.
func recordOf(ctx context.Context, s *logState, event audit.Event, id string) (found *records.Record) {
	filter := records.Filter{Event: string(event)}
	r := records.NewReader(s.audit(), records.Cursor{})
	defer r.Close()
	_ = r.Each(ctx, func(e records.Entry) error { // what was read before an error counts
		if filter.Match(&e) && e.Record.Approval == id {
			found = &e.Record
			return errEnough
		}
		return nil
	})
	return found
}

// outdated is the record of the last yes that ended with its policy: to this, or
// before it to the same operation. It is nil for none.
func (x *explanation) outdated(ctx context.Context, s *logState) (found *records.Record) {
	filter := records.Filter{Event: string(audit.Expired), Agent: x.told.Agent}
	r := records.NewReader(s.audit(), records.Cursor{})
	defer r.Close()
	_ = r.Each(ctx, func(e records.Entry) error { // what was read before an error counts
		of := e.Record
		if !filter.Match(&e) || of.Reason != grant.PolicyChanged || of.Kind == "" {
			return nil
		}
		before := !of.Time.After(x.told.Time) && of.Op == x.told.Op && of.Resource == x.told.Resource && of.Folder == x.told.Folder
		if before || of.Approval == x.told.Approval {
			found = &of
		}
		return nil
	})
	return found
}

// byPerson is what helps where the policy alone did not decide.
func (x *explanation) byPerson() (advice.Step, bool) {
	switch {
	case x.persons.no != nil:
		at := x.persons.no.Time.Local()
		return advice.Step{
			Kind: advice.InNothing,
			Text: "a person said no at " + at.Format(time.DateTime) + "; the same question is asked again from " + at.Add(grant.NoLife).Format(time.TimeOnly) + " on",
		}, true
	case x.persons.used && x.code() == fault.OK:
		return advice.Step{Kind: advice.InNothing, Text: "a person's yes let it through"}, true
	case x.persons.paused && x.persons.resumed:
		return advice.Step{Kind: advice.InCall, Text: "call again: the agent was paused, and a person has resumed it"}, true
	case x.persons.paused:
		return advice.Step{Kind: advice.InPerson, Text: "the agent is paused; " + grant.ResumeHint(x.told.Agent)}, true
	}
	return advice.Step{}, false
}

// answering is how a person lets the call through without another policy, "" where
// the policy doesn't ask.
func (x *explanation) answering() string {
	switch {
	case x.code() != fault.PolicyAsk && !x.persons.waits, x.persons.paused:
		return ""
	case x.persons.yes != nil && !x.persons.used && !x.persons.taken && !x.persons.waits && x.persons.voided == nil:
		return "call again, as long as the yes holds: postern grants shows it"
	}
	text := "call again, then a person answers: postern pending, postern approve ID"
	if x.persons.waits {
		text = "postern approve " + x.told.Approval + "; postern pending shows all that waits"
	}
	if x.persons.taken {
		text += "; the yes was taken back"
	}
	if y := x.persons.voided; y != nil {
		text += "; the yes " + y.Approval + " ended at " + y.Time.Local().Format(time.DateTime) + ": " + y.Reason
	}
	return text
}
