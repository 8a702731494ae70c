// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// dataSync waits for the lines; the file's times may follow later.
func dataSync(file *os.File) error {
	for {
		err := unix.Fdatasync(int(file.Fd()))
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// allocate sets space aside for the file.
func allocate(file *os.File, size int) error {
	err := unix.Fallocate(int(file.Fd()), 0, 0, int64(size))
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fill(file, size)
	}
	return err
}
