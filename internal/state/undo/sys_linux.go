// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// overlay reports a file system on which directories can't be moved at will.
func overlay(dir string) bool {
	var f unix.Statfs_t
	return unix.Statfs(dir, &f) == nil && int64(f.Type) == unix.OVERLAYFS_SUPER_MAGIC //nolint:unconvert // 32 bits on some processors
}
