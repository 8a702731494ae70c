// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/state/regular"
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

// umask is what a new directory does not get. To ask the kernel otherwise is to
// change it for a moment, for every thread.
func umask() fs.FileMode {
	status, err := regular.Read("/proc/self/status")
	if err != nil {
		return usualUmask
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "Umask:"); ok {
			if mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32); err == nil {
				return fs.FileMode(mask)
			}
		}
	}
	return usualUmask
}
