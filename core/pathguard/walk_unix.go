// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAgain bounds the tries of an open that another program's lease holds up;
// each try lets the lease's holder see one more request to give it back.
const maxAgain = 32

// errSpelling is an entry that a folding file system found under a name that
// none of its entries has byte for byte.
var errSpelling = errors.New("the directory spells the name differently")

// openFlags are on every open: nothing blocks, nothing becomes the controlling
// terminal, nothing is inherited.
const openFlags = unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY

// openAt opens rel beneath the root without following any link. Success proves
// the name canonical. The error is an errno, errSpelling or a fault.
func (r *Root) openAt(rel string, flags int, mode uint32) (int, error) {
	fd, err := r.hold()
	if err != nil {
		return -1, err
	}
	defer r.mu.RUnlock()
	if rel == "" {
		rel = "."
	}
	if r.fs.folds {
		return r.walk(int(fd), rel, flags, mode)
	}
	for try := 0; ; {
		got, err := r.seam.open(int(fd), rel, flags, mode)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && try < maxAgain:
			try++
			continue
		case err == unix.EXDEV && r.mountOnWay(rel),
			(err == unix.ENOSYS || err == unix.EPERM) && r.filtered(int(fd)):
			return r.walk(int(fd), rel, flags, mode)
		}
		return got, err
	}
}

// filtered reports whether openat2 itself is refused, as seccomp filters do,
// and not the file that was asked for. It is asked anew each time: a filter
// may be installed at any moment.
func (r *Root) filtered(root int) bool {
	fd, err := r.seam.open(root, ".", oPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err == unix.ENOSYS || err == unix.EPERM
}

// mountOnWay reports whether a listed mount point is rel or above it.
func (r *Root) mountOnWay(rel string) bool {
	return slices.ContainsFunc(r.opts.Mounts, func(m string) bool {
		_, ok := beneath(rel, m)
		return ok
	})
}

// walk opens rel one component at a time, each from its parent's handle, with
// the verdicts of openBeneath: ELOOP for a link, EXDEV for a mount point that
// is not listed. It serves where openat2 is missing or filtered, where a listed
// mount is entered, and where names fold.
func (r *Root) walk(root int, rel string, flags int, mode uint32) (int, error) {
	dir, at := root, r.fs
	leave := func() {
		if dir != root {
			unix.Close(dir)
		}
	}
	for done := 0; ; {
		name, rest, more := strings.Cut(rel[done:], "/")
		if at.folds && name != "." && flags&unix.O_CREAT == 0 {
			if err := hasEntry(dir, name); err != nil {
				leave()
				return -1, err
			}
		}
		fl := flags
		if more {
			fl = oPath | unix.O_CLOEXEC
		}
		next, to, err := r.step(dir, at, rel[:len(rel)-len(rest)], name, fl, mode)
		leave()
		if err != nil || !more {
			return next, err
		}
		if to.kind != KindDir {
			unix.Close(next)
			if to.kind == KindLink {
				return -1, unix.ELOOP
			}
			return -1, unix.ENOTDIR
		}
		dir, at, done = next, to.fsTraits, len(rel)-len(rest)
	}
}

// landing is what a step arrived at.
type landing struct {
	fsTraits
	kind Kind
}

// step opens one entry of a directory without following it. upTo is the path
// so far, which says whether a mount point there is listed.
func (r *Root) step(dir int, at fsTraits, upTo, name string, flags int, mode uint32) (int, landing, error) {
	fd, st, err := looked(openat(dir, name, flags|unix.O_NOFOLLOW, mode))
	switch {
	case err == unix.ENOTDIR && isLink(dir, name):
		return -1, landing{}, unix.ELOOP // O_DIRECTORY has its own word for it
	case err != nil:
		return -1, landing{}, err
	}
	upTo = strings.TrimSuffix(upTo, "/")
	if !at.holds(&st) {
		at, err = r.enter(fd, upTo)
	}
	if err == nil {
		err = Name{root: r, rel: upTo}.known(st.ident)
	}
	if err != nil {
		unix.Close(fd)
		return -1, landing{}, err
	}
	return fd, landing{at, st.kind()}, nil
}

func isLink(dir int, name string) bool {
	st, err := statAt(dir, name)
	return err == nil && st.kind() == KindLink
}

// enter allows a listed mount point, unless a file system of the kernel is
// mounted there.
func (r *Root) enter(fd int, upTo string) (fsTraits, error) {
	if !slices.Contains(r.opts.Mounts, upTo) {
		return fsTraits{}, unix.EXDEV
	}
	t, err := traits(fd)
	if err == nil && t.kernel {
		err = unix.EXDEV
	}
	return t, err
}

// hasEntry reports an error unless the directory has an entry with exactly
// these bytes.
func hasEntry(dir int, name string) error {
	found := false
	err := eachEntry(dir, func(e Entry) bool {
		found = e.Name == name
		return !found
	})
	if err != nil || found {
		return err
	}
	if _, err := statAt(dir, name); err == nil {
		return errSpelling
	}
	return unix.ENOENT
}

// eachEntry lists a directory until f says stop.
func eachEntry(dir int, f func(Entry) bool) error {
	fd, err := openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|openFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for buf := make([]byte, listBuffer); ; {
		batch, err := readEntries(fd, buf)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, e := range batch {
			if !f(e) {
				return nil
			}
		}
	}
}
