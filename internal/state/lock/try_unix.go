// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package lock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// try takes one byte at offset, exclusively, for the open file description.
func try(file *os.File, offset int64) error {
	err := unix.FcntlFlock(file.Fd(), ofdSetLock, &unix.Flock_t{
		Type: unix.F_WRLCK, Whence: io.SeekStart, Start: offset, Len: 1,
	})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	return err
}
