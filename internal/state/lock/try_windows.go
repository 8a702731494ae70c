// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// try takes one byte at offset, exclusively, for the handle.
func try(file *os.File, offset int64) error {
	at := windows.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
	err := windows.LockFileEx(windows.Handle(file.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}
