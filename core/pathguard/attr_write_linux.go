// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// setAttributes gives a new file its user attributes and access list.
func setAttributes(fd int, attrs map[string][]byte) (err error) {
	for name, value := range attrs {
		if ours(name) {
			err = errors.Join(err, unix.Fsetxattr(fd, name, value, 0))
		}
	}
	return err
}

func setMTime(fd int, ns int64) error {
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(ns)}
	err := unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH)
	if err == unix.EINVAL || err == unix.ENOENT || err == unix.ENOSYS { // before 5.8
		tv := unix.NsecToTimeval(ns)
		return unix.Futimes(fd, []unix.Timeval{tv, tv})
	}
	return err
}

// openBare makes a file without a name on the file system of a directory.
func (r *Root) openBare(rel string, mode uint32) (int, error) {
	return r.openAt(rel, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
}

// linkBare gives it a name. The first way needs a capability before Linux 6.10,
// the second one /proc.
func linkBare(fd, dir int, base string) error {
	err := unix.Linkat(fd, "", dir, base, unix.AT_EMPTY_PATH)
	if err == unix.ENOENT {
		err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), dir, base, unix.AT_SYMLINK_FOLLOW)
	}
	return err
}

// CopyTo writes the whole content into an empty file: shared with it where the
// file system can, so that it costs no room.
func (f *File) CopyTo(to *os.File) error {
	if unix.IoctlFileClone(int(to.Fd()), f.fd) == nil {
		return nil
	}
	_, err := io.Copy(to, io.NewSectionReader(f, 0, f.st.size+1)) // one more: it must not have grown
	return err
}
