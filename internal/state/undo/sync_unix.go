// SPDX-License-Identifier: Apache-2.0

//go:build unix

package undo

import (
	"errors"
	"os"
	"syscall"

	"github.com/postern-gate/postern/internal/state/regular"
)

// syncDir makes a new name in a directory last.
func syncDir(path string) error {
	d, err := regular.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removed reports a file that has no name any more: nobody will read it.
func removed(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Nlink == 0
}
