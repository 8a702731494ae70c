// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package lock

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// try takes one byte at offset, alone or with others, for the open file description.
func try(file *os.File, offset int64, share bool) error {
	kind := int16(unix.F_WRLCK)
	if share {
		kind = unix.F_RDLCK
	}
	err := setLock(file, offset, kind)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	return err
}

func unlock(file *os.File, offset int64) error { return setLock(file, offset, unix.F_UNLCK) }

func setLock(file *os.File, offset int64, kind int16) error {
	return unix.FcntlFlock(file.Fd(), ofdSetLock, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: offset, Len: 1})
}
