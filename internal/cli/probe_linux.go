// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"

	"golang.org/x/sys/unix"
)

// primitive names what proves a file's name on this machine. It asks the
// kernel each time, since a filter can take openat2 away from one process.
func primitive() string {
	err := proveRoot()
	if err == nil {
		return "openat2 proves a whole name in one step"
	}
	var errno unix.Errno
	_ = errors.As(err, &errno)
	return componentWalk + " (openat2 is not available: " + unix.ErrnoName(errno) + ")"
}

func proveRoot() error {
	dir, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, ".", &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}
