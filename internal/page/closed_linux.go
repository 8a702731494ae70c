// SPDX-License-Identifier: Apache-2.0

package page

import "golang.org/x/sys/unix"

// CloseMemory keeps other programs of this user from reading this one's memory,
// and the system from writing it to a core file.
func CloseMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
