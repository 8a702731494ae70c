// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"encoding/json"
	"strconv"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
)

// Outcome says what an operation did and did not do. Its zero value claims
// nothing; schema/result.json defines the JSON form.
type Outcome struct {
	// Persisted says whether the effect is on disk. NotPersisted is set for a
	// mutation whose bytes may not survive a crash, with the reason and a hint.
	NotPersisted *NotPersisted
	// Undoable says whether the effect can be taken back, UndoID by what;
	// UndoReason says why not. Of a dry run they say what would be.
	Undoable           bool
	UndoID, UndoReason string
	// Class is what the call is: one that does away with what undo does not
	// cover is destructive. Zero where nothing keeps.
	Class core.Class
	// MayHaveApplied is set when the effect may have happened although the
	// call failed: read the named resource again.
	MayHaveApplied bool
	// AbortedAt is the place where a batch or a walk ended early, drawn safely,
	// SkippedCount how much was left out of it.
	AbortedAt     string
	SkippedCount  int
	RescanPending bool // a walk that raced a change
	Partial       bool // not everything could be read
	DryRun        bool // nothing was changed
	// NoCAS is set when the file system has no exchange of two names, so that a
	// change in the last moment before a replace could not be noticed.
	NoCAS    bool
	Warnings []string
	Etag     string // of what is there now, "" where nothing is or it is not known
	// Name is the canonical name of what was asked about.
	Name    pathguard.Name
	Created bool
	Changed bool // something was changed: the result is a mutation's
}

// NotPersisted tells why an effect may not survive a crash.
type NotPersisted struct{ Reason, Hint string }

// resultJSON is the object of schema/result.json.
type resultJSON struct {
	Persisted      *bool  `json:"persisted,omitempty"`
	Reason         string `json:"reason,omitempty"`
	Hint           string `json:"hint,omitempty"`
	Undoable       *bool  `json:"undoable,omitempty"`
	UndoID         string `json:"undo_id,omitempty"`
	UndoReason     string `json:"undo_reason,omitempty"`
	Class          string `json:"class,omitempty"`
	MayHaveApplied bool   `json:"may_have_applied,omitempty"`
	AbortedAt      string `json:"aborted_at,omitempty"`
	SkippedCount   int    `json:"skipped_count,omitempty"`
	RescanPending  bool   `json:"rescan_pending,omitempty"`
	Partial        bool   `json:"partial,omitempty"`
	DryRun         bool   `json:"dry_run,omitempty"`
	CAS            *bool  `json:"cas,omitempty"`
	Etag           string `json:"etag,omitempty"`
}

// MarshalJSON returns the object of schema/result.json.
func (o Outcome) MarshalJSON() ([]byte, error) {
	r := resultJSON{
		UndoID: o.UndoID, MayHaveApplied: o.MayHaveApplied, AbortedAt: o.AbortedAt, SkippedCount: o.SkippedCount,
		RescanPending: o.RescanPending, Partial: o.Partial, DryRun: o.DryRun, Etag: o.Etag,
	}
	if o.Changed {
		persisted := o.NotPersisted == nil
		r.Persisted, r.Undoable = &persisted, &o.Undoable
	}
	o.undoJSON(&r)
	if p := o.NotPersisted; p != nil {
		r.Reason, r.Hint = p.Reason, p.Hint
	}
	if o.NoCAS {
		r.CAS = new(bool)
	}
	return json.Marshal(r)
}

// undoJSON adds what is known of undo, of a change or of a dry run of one.
func (o Outcome) undoJSON(r *resultJSON) {
	if o.Class == 0 || !o.Changed && !o.DryRun {
		return
	}
	r.Class = o.Class.String()
	if o.DryRun {
		r.Undoable = &o.Undoable
	}
	if !o.Undoable {
		r.UndoReason = o.UndoReason
	}
}

// Lines returns a line of text for each field that isn't its default, since
// models are not shown _meta. Without a Keeper undoable: false is the default.
func (o Outcome) Lines() []string {
	var lines []string
	add := func(on bool, line string) {
		if on {
			lines = append(lines, line)
		}
	}
	if p := o.NotPersisted; p != nil {
		lines = append(lines, "persisted: false ("+p.Reason+"; "+p.Hint+")")
	}
	add(o.Undoable && o.UndoID != "", "undoable: true, undo_id: "+o.UndoID)
	add(o.Undoable && o.DryRun, "undoable: true")
	add(!o.Undoable && o.UndoReason != "" && (o.Changed || o.DryRun), "undoable: false, "+o.UndoReason)
	add(o.DryRun && o.Class != 0, "class: "+o.Class.String())
	add(o.MayHaveApplied, "may_have_applied: true, read it again")
	add(o.AbortedAt != "", "aborted_at: "+o.AbortedAt)
	add(o.SkippedCount > 0, "skipped_count: "+strconv.Itoa(o.SkippedCount))
	add(o.RescanPending, "rescan_pending: true, something changed meanwhile")
	add(o.Partial, "partial: true, not everything could be read")
	add(o.DryRun, "dry_run: true, nothing was changed")
	add(o.NoCAS, "cas: false, a change in the last moment would not have been noticed")
	for _, w := range o.Warnings {
		lines = append(lines, "warning: "+textsafe.Clean(w).String())
	}
	return lines
}

// written takes over what a write reports.
func (o *Outcome) written(w pathguard.Written) {
	o.Warnings = append(o.Warnings, w.Warnings...)
	o.Etag = w.Info.Fingerprint.String()
}
