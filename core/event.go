// SPDX-License-Identifier: Apache-2.0

package core

import "time"

// Phase says which part of a crossing an event tells of.
type Phase uint8

// The phases. A refusal and a read are decisions; a mutation is an intent,
// recorded before it starts, and an outcome after it.
const (
	PhaseDecision Phase = iota
	PhaseIntent
	PhaseOutcome
)

var phaseNames = [...]string{"decision", "intent", "outcome"}

// String returns the spelling used in records.
func (p Phase) String() string { return spelled(phaseNames[:], p) }

// Event is one line of the audit log. It never holds contents, diffs or
// argument values.
type Event struct {
	Time     time.Time
	Phase    Phase
	Subject  Subject
	Action   Action
	Resource Resource // the caller's own spelling, unresolved, where no guard placed it
	Verdict  Verdict
	Corr     string // one id for everything that belongs to one call
	Policy   string // version of the policy that decided
	Code     string // stable code of a refusal or failure, "" for success
}
