// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"errors"

	"github.com/postern-gate/postern/core/fault"
)

// LinkError says that Name leads to another name beneath the roots: through a
// link on the way, or, for reads only, because the one entry with a
// canonically equivalent spelling has other bytes. Nothing was opened. The
// caller judges To and tries that instead, a bounded number of times; a caller
// that doesn't gets path.symlink.
type LinkError struct{ Name, To Name }

// Error names both ends; both are beneath roots.
func (e *LinkError) Error() string { return e.Name.String() + ": leads to " + e.To.String() }

// Unwrap makes it a path.symlink refusal for a caller that does not follow.
func (e *LinkError) Unwrap() error { return e.Name.fault(fault.PathSymlink, "", nil) }

// told returns the proposal or the fault that err already is, else nil.
func told(err error) error {
	if link := (*LinkError)(nil); errors.As(err, &link) {
		return link
	}
	if f := (*fault.Error)(nil); errors.As(err, &f) {
		return f
	}
	return nil
}
