// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// Open opens the regular file with exactly this name for reading. A link on
// the way that stays beneath the roots is a *LinkError; anything that is not a
// regular file is path.special, at once: nothing waits for another program.
func (n Name) Open() (*File, error) {
	if err := n.guarded(); err != nil {
		return nil, err
	}
	fd, err := n.root.openAt(n.rel, unix.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, n.unreached(err, false, true)
	}
	f := &File{fd: fd, name: n}
	if f.st, err = statFD(fd); err == nil {
		err = n.readable(&f.st)
	}
	if err != nil {
		unix.Close(fd)
		return nil, n.failure(err)
	}
	return f, nil
}

func (n Name) readable(st *stat) error {
	switch {
	case st.kind() == KindDir:
		return n.fault(fault.IOFailed, "it is a directory", unix.EISDIR)
	case st.kind() != KindFile:
		return n.fault(fault.PathSpecial, "", nil)
	case st.nlink > 1 && n.root.opts.DenyHardlinks:
		return n.fault(fault.PathDenied, "the file has more than one name, and the root denies hard links", nil)
	}
	return n.known(st.ident)
}

// OpenDir opens the directory with exactly this name for listing.
func (n Name) OpenDir() (*Dir, error) {
	if err := n.guarded(); err != nil {
		return nil, err
	}
	fd, err := n.root.openAt(n.rel, unix.O_RDONLY|unix.O_DIRECTORY|openFlags, 0)
	if err != nil {
		return nil, n.unreachedDir(err)
	}
	st, err := statFD(fd)
	if err == nil {
		err = n.known(st.ident)
	}
	if err != nil {
		unix.Close(fd)
		return nil, n.failure(err)
	}
	return &Dir{lister: newLister(fd), name: n, st: st}, nil
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
		return n.fault(fault.IOFailed, "it is not a directory", unix.ENOTDIR)
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
	if err := n.guarded(); err != nil {
		return stat{}, err
	}
	fd, err := n.root.openAt(n.rel, oPath|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return stat{}, err
	}
	defer unix.Close(fd)
	st, err := statFD(fd)
	if err == nil {
		err = n.known(st.ident)
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
	if link := (*LinkError)(nil); errors.As(err, &link) {
		return link
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	held := n.fault(fault.LockHeld, "", err)
	held.Retry = true
	switch err {
	case unix.ENOENT, unix.ESTALE:
		return n.fault(fault.PathMissing, "", err)
	case unix.ENOTDIR:
		return n.fault(fault.PathMissing, "a part of the name is not a directory", err)
	case errSpelling:
		return n.fault(fault.PathMissing, "the directory spells the name differently", err)
	case unix.ELOOP:
		return n.fault(fault.PathSymlink, "", err)
	case unix.EXDEV:
		return n.fault(fault.PathMount, "", err)
	case unix.ENXIO, unix.ENODEV:
		return n.fault(fault.PathSpecial, "", err)
	case unix.ENAMETOOLONG:
		return n.fault(fault.PathDenied, "the name is too long for the file system", err)
	case unix.EAGAIN, unix.ETXTBSY, unix.EBUSY:
		return held
	case unix.EACCES, unix.EPERM:
		return n.fault(fault.IOFailed, "the operating system gives no permission", err)
	case unix.ENOSPC, unix.EDQUOT, unix.EFBIG:
		return n.fault(fault.IOFailed, "there is no space left", err)
	case unix.EROFS:
		return n.fault(fault.IOFailed, "the file system is read-only", err)
	}
	return n.fault(fault.IOFailed, "", err)
}
