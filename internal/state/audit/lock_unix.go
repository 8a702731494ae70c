// SPDX-License-Identifier: Apache-2.0

//go:build unix && !solaris && !aix

package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/state/regular"
)

var errHeld = errors.New("the lock is held")

// tryLockFile takes the lock, or returns errHeld while another process has it;
// a handle of this process is kept apart by the Log's own lead.
func tryLockFile(file *os.File) error {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

func unlockFile(file *os.File) { _ = unix.Flock(int(file.Fd()), unix.LOCK_UN) }

// syncDir makes a new name in a folder last.
func syncDir(path string) error {
	d, err := regular.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// isFull tells a full disk, or a used-up quota, from a broken one.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
