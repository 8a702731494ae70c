// SPDX-License-Identifier: Apache-2.0

//go:build unix && !solaris && !aix

package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile waits for other processes, each of which holds the lock for one
// write; a handle of this process is kept apart by the Log's own mutex.
func lockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func unlockFile(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }
