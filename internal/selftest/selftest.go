// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"context"
	"errors"
	"slices"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
)

// Options say where and what. The zero value attacks in the system's folder
// for temporary files.
type Options struct {
	// Dir is the folder in which a temporary one is made, so that it is on the
	// file system that matters; "" for the system's.
	Dir string
	// ReadOnly is what --read-only puts before a decider.
	ReadOnly func(enforce.Decider) enforce.Decider

	hooks hooks
}

// mechanism is one attack of the list.
type mechanism struct {
	name   string
	attack func(*lab, *trial)
}

// mechanisms are attacked in this order. Their names are stable.
func mechanisms() []mechanism {
	return []mechanism{
		{"outside-read", outsideRead},
		{"outside-write", outsideWrite},
		{"swapped-read", swappedRead},
		{"swapped-write", swappedWrite},
		{"special-files", specialFiles},
		{"hard-links", hardLinks},
		{"secrets", secrets},
		{"runs-by-itself", runsByItself},
		{"project-policy", projectPolicy},
		{"no-decision", noDecision},
		{"read-only", readOnly},
		{"refusal-changes-nothing", refusalChangesNothing},
		{"recorded-first", recordedFirst},
		{"unrecorded-refused", unrecordedRefused},
		{"changed-log", changedLog},
		{"cut-log", cutLog},
		{"etag", etagHolds},
		{"parallel-edits", parallelEdits},
		{"envelope", envelopeHolds},
		{"hidden-characters", hiddenCharacters},
		{"twin-keys", twinKeys},
		{"http", httpGuard},
		{"own-litter", ownLitter},
		{"locks", locksHold},
		{"kernel-open", kernelOpen},
		{"kernel-exchange", kernelExchange},
		{"file-system", fileSystem},
	}
}

// Run attacks every mechanism. Its error is that of a folder that can't be
// made or attacked at all, or of the context; what did not hold is in the
// report. Nothing is left behind in either case.
func Run(ctx context.Context, o Options) (Report, error) {
	l, err := newLab(ctx, o)
	if err != nil && ctx.Err() != nil {
		return Report{}, context.Cause(ctx)
	}
	if err != nil {
		return Report{}, &fault.Error{
			Code: fault.IOFailed, Op: "selftest", Rule: "the folder to attack in can't be prepared",
			Hint: "name one on another file system: postern selftest DIR", Err: err,
		}
	}
	var report Report
	for _, m := range mechanisms() {
		if ctx.Err() != nil {
			break
		}
		if only := o.hooks.only; only != nil && !slices.Contains(only, m.name) {
			continue
		}
		t := &trial{}
		m.attack(l, t)
		report.Results = append(report.Results, t.result(m.name))
	}
	if err := l.close(); err != nil && ctx.Err() == nil { //nolint:contextcheck // an interrupt leaves nothing behind
		return report, &fault.Error{Code: fault.IOFailed, Op: "selftest", Resource: l.box, Rule: "the folder can't be removed", Hint: "remove it", Err: err}
	}
	return report, context.Cause(ctx)
}

// refused tells how a call got through that should have been refused.
func (l *lab) refused(a answer, err error) error {
	switch {
	case err != nil:
		return err
	case l.leaks(a):
		return errors.New("the content came out")
	case a.code == "":
		return errors.New("it was not refused")
	}
	return nil
}
