// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// try takes one byte at offset, alone or with others, for the handle.
func try(file *os.File, offset int64, share bool) error {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !share {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(file.Fd()), flags, 0, 1, 0, at(offset))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

func unlock(file *os.File, offset int64) error {
	return windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, at(offset))
}

func at(offset int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
}
