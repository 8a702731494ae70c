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
	// PhaseUnknown stands for an outcome that nobody saw: the process ended
	// between intent and outcome.
	PhaseUnknown
	// PhaseApproval is what happened between a question and its effect.
	PhaseApproval
	// PhaseOutside is a change that no call made, as a watcher saw it: nothing
	// was decided.
	PhaseOutside
)

// Event is one line of the audit log. It never holds contents, diffs or
// argument values.
type Event struct {
	Time     time.Time
	Phase    Phase
	Subject  Subject
	Action   Action
	Resource Resource // the caller's own spelling, unresolved, where no guard placed it
	Verdict  Verdict
	Folder   string // absolute: where the root of Resource is, or else the first root of who records; "" for none
	Corr     string // one id for everything that belongs to one call
	Policy   string // version of the policy that decided
	Code     string // stable code of a refusal or failure, "" for success
	// Class is the group of names that the resource belongs to and that no
	// record may spell out, "" for none.
	Class string
	File  bool   // the resource is a file, if the action is a tool's that is given its name
	Was   string // of an intent: the etag of what is there, "absent" for nothing
	// Undoes is the corr of the change that this one takes back.
	Undoes string
	Found  string // of PhaseUnknown: how what is there now compares with Was
	// Approval is what a PhaseApproval is about, or the question by whose ID a
	// call was refused.
	Approval Approval
	// Outside is what a PhaseOutside tells.
	Outside Outside
}

// Outside is what a watcher saw. Event is watching, outside or outside_missed,
// N how many it is about where there is more than one or no name.
type Outside struct {
	Event string
	N     int64
}

// Approval is a question to a person, or the answer. Event is asked, approved,
// denied, withdrawn, spent, revoked, expired, paused or resumed.
type Approval struct {
	Event, ID, Kind string
	Approver        string // how a person said it
	Shown           string // digest of what was shown
}
