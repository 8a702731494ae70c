// SPDX-License-Identifier: Apache-2.0

package live

import "golang.org/x/sys/unix"

// Unopened reports whether no process at all has the file open: the kernel
// grants a lease only then. Anything that speaks against it, as a file system
// without leases or a file of another user, is no. dir is an open directory,
// entry one of its names; no link is followed.
func Unopened(dir int, entry string) bool {
	fd, err := unix.Openat(dir, entry, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd) // which gives the lease back too
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	return err == nil
}
