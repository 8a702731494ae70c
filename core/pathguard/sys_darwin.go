// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"io"

	"os"

	"golang.org/x/sys/unix"
)

// oPath is the nearest to an open that touches nothing: read permission is
// needed, nothing waits, a link is opened itself.
const oPath = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_SYMLINK

func fromStat(st *unix.Stat_t) stat {
	return stat{
		ident: ident{uint64(st.Dev), st.Ino}, size: st.Size, mode: uint32(st.Mode), nlink: uint32(st.Nlink),
		uid: st.Uid, gid: st.Gid, atime: st.Atim.Nano(), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), btime: st.Btim.Nano(),
	}
}

func renameExchange(dir int, a, b string) error {
	return unix.RenameatxNp(dir, a, dir, b, unix.RENAME_SWAP)
}

func renameNew(oldDir int, old string, newDir int, name string) error {
	return unix.RenameatxNp(oldDir, old, newDir, name, unix.RENAME_EXCL)
}

// openBeneath is Linux's alone; every open is a walk here.
func openBeneath(int, string, int, uint32) (int, error) { return -1, unix.ENOSYS }

func openPlain(path string) (int, error) {
	return unix.Open(path, oPath|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

func statFD(fd int) (stat, error) {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return stat{}, err
	}
	return fromStat(&st), nil
}

// statAt looks at an entry itself, never through a link.
func statAt(dir int, entry string) (stat, error) {
	var st unix.Stat_t
	err := again(func() error { return unix.Fstatat(dir, entry, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return stat{}, err
	}
	return fromStat(&st), nil
}

// traits: every file system here is taken to fold, and a mount is told by its
// device.
func traits(dir int) (fsTraits, error) {
	st, err := statFD(dir)
	return fsTraits{mount: mount{0, st.dev}, folds: true}, err
}

// readEntries lists through the standard library; kinds are asked for one by
// one.
func readEntries(fd int, _ []byte) ([]Entry, error) {
	own, err := unix.Dup(fd) // shares the position
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(own)
	f := os.NewFile(uintptr(own), "directory")
	defer f.Close()
	// All at once: the library reads ahead, and what it read ahead would be
	// lost with f.
	names, err := f.Readdirnames(-1)
	var into []Entry
	for _, name := range names {
		into = append(into, newEntry(name, KindUnknown))
	}
	return into, err
}

func datasync(fd int) error { return unix.Fsync(fd) }

func may(dir int, entry string, what uint32) error {
	return unix.Faccessat(dir, entry, what, unix.AT_EACCESS)
}

const (
	capChown, capFowner = 0, 0
	groupFromDir        = modeDir // every directory gives new files its group
)

// capable: the superuser is, and nobody else.
func capable(uint) bool { return unix.Geteuid() == 0 }

// copyAttributes has nothing to copy with here, and says so.
func copyAttributes(int, int) ([]string, error) {
	return []string{"extended attributes and ACLs are not kept on this system"}, nil
}

func renameAcross(oldDir int, old string, newDir int, name string) error {
	return unix.RenameatxNp(oldDir, old, newDir, name, unix.RENAME_SWAP)
}

func ours(string) bool { return false }

func attributes(int) (map[string][]byte, error) { return nil, nil }

func setAttributes(int, map[string][]byte) error { return nil }

func setMTime(fd int, ns int64) error {
	tv := unix.NsecToTimeval(ns)
	return unix.Futimes(fd, []unix.Timeval{tv, tv})
}

// CopyTo writes the whole content into an empty file.
func (f *File) CopyTo(to *os.File) error {
	_, err := io.Copy(to, io.NewSectionReader(f, 0, f.st.size+1))
	return err
}

// openBare and linkBare are Linux's alone.
func (r *Root) openBare(string, uint32) (int, error) { return -1, unix.ENOSYS }

func linkBare(int, int, string) error { return unix.ENOSYS }
