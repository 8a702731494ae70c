// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"time"

	"golang.org/x/sys/unix"
)

// Seam makes the system calls of one root fail or misbehave.
type Seam = seam

// SetSeam changes the seam of r; before any use of r.
func SetSeam(r *Root, change func(*Seam)) { change(&r.seam) }

// WithoutOpenat2 makes openat2 of r fail as if it were not there.
func WithoutOpenat2(r *Root, errno unix.Errno) {
	r.seam.open = func(int, string, int, uint32) (int, error) { return -1, errno }
}

// FailExchange, FailRename and FailWrite replace one call each.
func (s *seam) FailExchange(f func(dir int, a, b string) error) { s.exchange = f }

func (s *seam) FailOpen(f func(int, string, int, uint32) (int, error)) { s.open = f }

func (s *seam) Open(dir int, rel string, flags int, mode uint32) (int, error) {
	return s.open(dir, rel, flags, mode)
}

// FailRename is about files that have names, so that no other is made.
func (s *seam) FailRename(f func(int, string, int, string) error) { s.rename = f; s.NoBare() }

// NoBare makes a file system on which every file has a name.
func (s *seam) NoBare() {
	s.bare = func(*Root, string, uint32) (int, error) { return -1, unix.EOPNOTSUPP }
}

// FailLink is what gives a file a name that has none.
func (s *seam) FailLink(f func(fd, dir int, name string) error) { s.link = f }

var LinkBare = linkBare

func (s *seam) FailRenameTo(f func(int, string, int, string) error) { s.renameTo = f }

func (s *seam) FailWrite(f func(fd int, p []byte) (int, error)) { s.write = f }

func (s *seam) FailSync(f func(fd int) error) { s.sync = f }

func (s *seam) FailAcross(f func(int, string, int, string) error) { s.across = f }

// CountSleeps counts instead of sleeping.
func (s *seam) CountSleeps(n *int) { s.sleep = func(time.Duration) { *n++ } }

// Unsynced makes changes of r as quick as they get.
func Unsynced(r *Root) { r.seam.sync = func(int) error { return nil } }

const TempPrefix = tempPrefix

var RenameExchange = renameExchange

func (f *File) FD() int { return f.fd }

func (r *Root) SetFolds(folds bool) { r.fs.folds = folds }

var MayHaveEqual = mayHaveEqual

var ParseEntries = parseEntries

// ReadEntries lists with a buffer of this size.
func ReadEntries(fd, size int) ([]Entry, error) { return readEntries(fd, make([]byte, size)) }

// OldLstat is Lstat without statx.
func OldLstat(dir, entry string) (Info, error) {
	fd, err := unix.Open(dir, unix.O_PATH, 0)
	if err != nil {
		return Info{}, err
	}
	defer unix.Close(fd)
	st, err := fstatat(fd, entry, unix.AT_SYMLINK_NOFOLLOW)
	return st.info(), err
}
