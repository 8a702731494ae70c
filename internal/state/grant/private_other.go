// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package grant

import (
	"io/fs"
	"os"
)

const noFollow = 0

// private can't read access lists here: a folder beneath the user's profile is
// closed to other users by what it inherits.
func private(fs.FileInfo) bool { return true }

// syncDir can't be done here: a folder has no such handle.
func syncDir(*os.File) error { return nil }
