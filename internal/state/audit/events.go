// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

//go:generate go test -run TestEventsPage -update .

// Event is the code of what a record tells. A code is never given another
// meaning and never used again.
type Event string

// The codes of calls.
const (
	Decision       Event = "decision"
	Refusal        Event = "refusal"
	Preview        Event = "preview"
	Intent         Event = "intent"
	Outcome        Event = "outcome"
	Failure        Event = "failure"
	OutcomeUnknown Event = "outcome_unknown"
)

// The codes of what people are asked and answer.
const (
	Asked     Event = "asked"
	Approved  Event = "approved"
	Denied    Event = "denied"
	Withdrawn Event = "withdrawn"
	Spent     Event = "spent"
	Revoked   Event = "revoked"
	Expired   Event = "expired"
	Paused    Event = "paused"
	Resumed   Event = "resumed"
)

// The codes of what a watcher of the roots saw. It decides nothing.
const (
	Watching      Event = "watching"
	Outside       Event = "outside"
	OutsideMissed Event = "outside_missed"
)

// The codes of what happened to the log itself.
const (
	TornTail         Event = "torn_tail"
	Garbage          Event = "garbage"
	SegmentVanished  Event = "segment_vanished"
	SegmentReplaced  Event = "segment_replaced"
	SegmentAbandoned Event = "segment_abandoned"
	AuditFull        Event = "audit_full"
	ReadsUnrecorded  Event = "reads_unrecorded"
	ClockBack        Event = "clock_back"
	Pruned           Event = "pruned"
	Renewed          Event = "renewed"
)

// Explained is a row of docs/events.md.
type Explained struct {
	Event   Event
	Meaning string
	Synced  string // when it is on disk
}

// Events is every code there is, in the order of docs/events.md.
func Events() []Explained {
	const (
		before  = "before the effect"
		second  = "within a second"
		refused = "in the file at once, on disk within a second; of what would have been a change, before the answer"
		soon    = "with the record that it comes before"
		done    = "before anything goes on"
	)
	return []Explained{
		{Decision, "a call that changes nothing was allowed", second},
		{Refusal, "a call was refused; `code` says why, `approval` by which question where a person is or was asked. An `intent` of the same `corr` before it was not acted on", refused},
		{Preview, "a dry run: every check passed and nothing was changed", second},
		{Intent, "a change is about to be made; `was` is the etag of what is there", before},
		{Outcome, "the change was made", second},
		{Failure, "the call failed; `code` says why. Of a change that was begun there is an intent before", refused},
		{OutcomeUnknown, "a process ended between intent and outcome; `found` says how its target compares with `was`", done},
		{Asked, "a person is asked; `approval` is the id of the question, `reason` the rule that asks", second},
		{Approved, "a person said yes, as `approver` tells; `kind` is how far it reaches, `shown` the digest of what was shown", done},
		{Denied, "a person said no", done},
		{Withdrawn, "the client took its call back, or went away, while a person was asked; nothing is done for it", second},
		{Spent, "a yes was used for the call; an `intent` of the same `corr` follows where something is changed", before},
		{Revoked, "a person took a yes back: nothing is done by it any more", done},
		{Expired, "a question or a yes ended by itself; `reason` says why", second},
		{Paused, "the agent is asked about nothing and spends nothing until it is resumed", done},
		{Resumed, "a person ended the pause", done},
		{Watching, "from here on changes of `n` folders by other programs are recorded; `reason` says what is left out. `corr` is the same in all that this watcher records", second},
		{Outside, "another program changed a file; `op` is how it ended: made, written, or removed. With `n` it stands for that many changes whose names are not told: too many at once, or hidden by the policy", second},
		{OutsideMissed, "there may be changes that are not recorded; `reason` says why", second},
		{TornTail, "a crash left a line without its end; its `n` bytes were moved to the file that `resource` names", soon},
		{Garbage, "the line at `resource` is not a record; it stays where it is", soon},
		{SegmentVanished, "the segment `resource` was removed while it was in use; the log goes on from its last checkpoint", soon},
		{SegmentReplaced, "another file took the name of the segment `resource`; the log goes on from its last checkpoint", soon},
		{SegmentAbandoned, "the disk failed the segment `resource`; the log goes on in a new one", soon},
		{AuditFull, "the disk is full: changes are refused until there is space", done},
		{ReadsUnrecorded, "`n` calls that change nothing were answered while the log could not be written", soon},
		{ClockBack, "the clock went back by `n` milliseconds", soon},
		{Pruned, "the `n` lines of the segment `resource` were removed; their hashes are kept", done},
		{Renewed, "a person went on after a break; `resource` names what was put aside, `reason` has the old size and root", done},
	}
}

// eventOf is the code for an event of a call.
func eventOf(e core.Event) Event {
	switch {
	case e.Phase == core.PhaseIntent:
		return Intent
	case e.Phase == core.PhaseUnknown:
		return OutcomeUnknown
	case e.Phase == core.PhaseApproval:
		return Event(e.Approval.Event)
	case e.Phase == core.PhaseOutside:
		return Event(e.Outside.Event)
	case e.Phase == core.PhaseOutcome && e.Code != "":
		return Failure
	case e.Phase == core.PhaseOutcome:
		return Outcome
	case e.Code == fault.DryRunPreview.String():
		return Preview
	case e.Code != "" && denies(e.Code):
		return Refusal
	case e.Code != "":
		return Failure
	default:
		return Decision
	}
}

// denies reports whether the code is one of a refusal: the gate worked, and
// nothing failed.
func denies(code string) bool {
	for _, c := range fault.Codes() {
		if c.String() == code {
			return c.Kind() == fault.KindDenial
		}
	}
	return false
}
