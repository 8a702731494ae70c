// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"syscall"
)

// posix says that permission bits mean what they say.
const posix = true

// foreign reports whether somebody else than this user and root owns it.
func foreign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid != 0 && int(st.Uid) != os.Geteuid()
}

// isRoot reports whether this user may do everything.
func isRoot() bool { return os.Geteuid() == 0 }
