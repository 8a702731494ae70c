// SPDX-License-Identifier: Apache-2.0

//go:build unix

package state

import (
	"io/fs"
	"os"
	"syscall"
)

// closedToOthers refuses a directory that somebody else owns or can enter.
func closedToOthers(path string, info fs.FileInfo) error {
	if info.Mode().Perm()&0o077 != 0 {
		return invalid("the state directory "+path+" is open to other users", "chmod 700 "+path, nil)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return invalid("the state directory "+path+" belongs to another user", "set POSTERN_STATE to a directory of your own", nil)
	}
	return nil
}
