// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grant

import (
	"io/fs"
	"os"
	"syscall"
)

// noFollow opens no file by a link that stands under its name.
const noFollow = syscall.O_NOFOLLOW

// private reports whether a file is this user's own and closed to others.
func private(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}

func syncDir(d *os.File) error { return d.Sync() }
