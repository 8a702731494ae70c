// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import "os"

// posix says that permission bits mean what they say.
const posix = true

// isRoot reports whether this user may do everything.
func isRoot() bool { return os.Geteuid() == 0 }
