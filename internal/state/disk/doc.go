// SPDX-License-Identifier: Apache-2.0

// Package disk tells what a folder lies on. Nothing is decided by it: what a
// person or a check is told comes from here.
package disk

import "errors"

// ErrUnknown is returned where this system has no way to tell.
var ErrUnknown = errors.New("not known on this system")

// Kind is a type of file system.
type Kind struct {
	// Name is the usual one, or its number.
	Name string
	// Remote says that files are kept elsewhere or by a program, so that locks
	// and times are only as good as what is behind it.
	Remote bool
	// Exact says that names are known to be compared byte for byte.
	Exact bool
}
