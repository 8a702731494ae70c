// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package doctor

import "io/fs"

// posix says that permission bits mean what they say.
const posix = false

// foreign is not known here.
func foreign(fs.FileInfo) bool { return false }

// isRoot is not known here.
func isRoot() bool { return false }
