// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"

	"golang.org/x/sys/windows"
)

// The lock lies beyond any line, since a locked range can't be read by others.
var beyond = windows.Overlapped{OffsetHigh: 1 << 30}

func lockFile(file *os.File) error {
	at := beyond
	return windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &at)
}

func unlockFile(file *os.File) {
	at := beyond
	_ = windows.UnlockFileEx(windows.Handle(file.Fd()), 0, 1, 0, &at)
}
