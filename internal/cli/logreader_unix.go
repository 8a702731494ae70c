// SPDX-License-Identifier: Apache-2.0

//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether nobody can read any more what is written to f: the
// other end of a pipe or socket is closed, or the terminal is gone.
func readerGone(f *os.File) (gone bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // descriptors are small
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
	})
	return gone || err != nil
}
