// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// open opens exactly this name and looks at what it is.
func (n Name) open(flags int) (fd int, st stat, err error) {
	if err = n.guarded(); err != nil {
		return -1, st, err
	}
	if fd, st, err = looked(n.root.openAt(n.rel, flags|unix.O_CLOEXEC, 0)); err != nil {
		return -1, st, err
	}
	if err = n.known(st.ident); err == nil {
		if err = n.fits(st.kind()); st.kind() == KindLink && err != nil {
			err = unix.ELOOP // it may lead to one
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// Open opens the regular file with exactly this name for reading. A link on
// the way that stays beneath the roots is a *LinkError; anything that is not a
// regular file is path.special, at once: nothing waits for another program.
func (n Name) Open() (*File, error) {
	fd, st, err := n.open(unix.O_RDONLY | openFlags)
	if err != nil {
		return nil, n.unreached(err, false, true)
	}
	if err := n.readable(&st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &File{fd, n, st}, nil
}

func (n Name) readable(st *stat) error {
	switch {
	case st.kind() == KindDir:
		return n.isDir()
	case st.kind() != KindFile:
		return n.fault(fault.PathSpecial, "", nil)
	case st.nlink > 1 && n.root.opts.DenyHardlinks:
		return n.fault(fault.PathDenied, "the file has more than one name, and the root denies hard links", nil)
	}
	return nil
}

// OpenDir opens the directory with exactly this name for listing.
func (n Name) OpenDir() (*Dir, error) {
	fd, st, err := n.open(unix.O_RDONLY | unix.O_DIRECTORY | openFlags)
	if err != nil {
		return nil, n.unreachedDir(err)
	}
	return &Dir{fd: fd, buf: make([]byte, listBuffer), name: n, st: st}, nil
}

// unreachedDir tells a file from a path through a file.
func (n Name) unreachedDir(err error) error {
	if err == unix.ENOTDIR {
		info, statErr := n.Stat()
		switch {
		case statErr != nil:
			return statErr
		case info.Kind.Special():
			return n.fault(fault.PathSpecial, "", nil)
		}
		return n.isFile()
	}
	return n.unreached(err, false, true)
}

// Stat tells what has exactly this name. A last component that is a link is a
// *LinkError, so that nothing is told of a target before that is judged.
func (n Name) Stat() (Info, error) {
	st, err := n.look()
	switch {
	case err != nil:
		return Info{}, n.unreached(err, false, true)
	case st.kind() == KindLink:
		return Info{}, n.unreached(unix.ELOOP, false, true)
	}
	return st.info(), nil
}

// Lstat tells what has exactly this name; of a link, the link's own facts.
func (n Name) Lstat() (Info, error) {
	st, err := n.look()
	if err != nil {
		return Info{}, n.unreached(err, true, true)
	}
	return st.info(), nil
}

func (n Name) look() (stat, error) {
	fd, st, err := n.open(oPath | unix.O_NOFOLLOW)
	if err == nil {
		unix.Close(fd)
	}
	return st, err
}

// unreached turns the error of an open into a proposal or a fault. entry says
// that a last link was meant itself, reading that nothing would be changed.
func (n Name) unreached(err error, entry, reading bool) error {
	gone := err == unix.ENOENT
	if gone && n.root.dead() {
		return n.root.missing()
	}
	equiv := gone && reading && mayHaveEqual(n.rel)
	if err != unix.ELOOP && !equiv {
		return n.failure(err)
	}
	to, err := n.trace(entry, reading)
	if err != nil {
		return err
	}
	return &LinkError{Name: n, To: to}
}

// failure turns an errno into a fault. It never says more than the code does.
func (n Name) failure(err error) error {
	if err := told(err); err != nil {
		return err
	}
	for _, f := range failures {
		if slices.Contains(f.errs[:], err) {
			return n.fault(f.code, f.rule, err)
		}
	}
	return n.fault(fault.IOFailed, "", err)
}

// failures says what an errno means; where a rule is empty, its code says it.
var failures = [...]struct {
	code fault.Code
	rule string
	errs [3]error
}{
	{fault.PathMissing, "", [3]error{unix.ENOENT, unix.ESTALE}},
	{fault.PathMissing, ruleThrough, [3]error{unix.ENOTDIR}},
	{fault.PathMissing, "the directory spells the name differently", [3]error{errSpelling}},
	{fault.PreconditionFailed, ruleThere, [3]error{unix.EEXIST}},
	{fault.PathSymlink, "", [3]error{unix.ELOOP}},
	{fault.PathMount, "", [3]error{unix.EXDEV}},
	{fault.PathSpecial, "", [3]error{unix.ENXIO, unix.ENODEV}},
	{fault.PathDenied, "the name is too long for the file system", [3]error{unix.ENAMETOOLONG}},
	{fault.LockHeld, "", [3]error{unix.EAGAIN, unix.ETXTBSY, unix.EBUSY}},
	{fault.IOFailed, "the operating system gives no permission", [3]error{unix.EACCES, unix.EPERM}},
	{fault.IOFailed, "the directory is not empty", [3]error{unix.ENOTEMPTY}},
	{fault.IOFailed, "there is no space left", [3]error{unix.ENOSPC, unix.EDQUOT, unix.EFBIG}},
	{fault.IOFailed, "the file system is read-only", [3]error{unix.EROFS}},
}
