// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// nonblock keeps a fifo in a policy's place from holding up the start.
const nonblock = syscall.O_NONBLOCK

// exposed says how somebody else could change the file, "" when nobody can.
func exposed(path string, info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return "the file belongs to somebody else: a policy must be yours or root's"
	}
	if info.Mode().Perm()&0o022 != 0 {
		return "others can write the file: chmod go-w it"
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil || dir.Mode().Perm()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0 {
		return "anybody can replace the file: chmod o-w its folder"
	}
	return ""
}
