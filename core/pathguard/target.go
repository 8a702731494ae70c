// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"errors"

	"github.com/postern-gate/postern/core/fault"
)

// ErrMayHaveApplied is in the chain of an error after which the effect may be
// there, in whole or in part: read again what was to be changed.
var ErrMayHaveApplied = errors.New("the change may have been applied")

// WriteOptions go with a change. The zero value keeps nothing.
type WriteOptions struct {
	// Keep is given the displaced file, open for reading, before it is gone
	// for good. Its error takes the change back.
	Keep func(*File) error
}

// Written is what became of a change.
type Written struct {
	Info Info // of the file as it is now
	// CAS says that what was displaced was compared with what was judged in
	// one step. False: the file system has no exchange, and a change in the
	// moment between would have been lost.
	CAS bool
	// Warnings name what differs from before and is not ours to keep.
	Warnings []string
}

const (
	ruleGone     = "it is not what it was when the call was judged"
	ruleThere    = "something has this name already"
	ruleReadOnly = "the file is read-only; a person changes its mode first"
	ruleFolder   = "the folder was moved or replaced meanwhile"
	ruleAbsent   = "there is nothing with this name"
)

// stale is a change by somebody else between the judgement and the effect.
func (n Name) stale(rule string) *fault.Error { return n.fault(fault.PreconditionFailed, rule, nil) }

// halfway marks an error after which the effect may be there.
func (n Name) halfway(cause error, rule string) *fault.Error {
	return n.fault(fault.IOFailed, rule+"; the change may have been applied: read it again", errors.Join(ErrMayHaveApplied, cause))
}
