// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import "golang.org/x/sys/unix"

// What a Target and a File hold open.
type (
	dirHandle  = int
	fileHandle = int
)

// handle is an open directory.
type handle int

func (h handle) close() { unix.Close(int(h)) }

// removed reports a directory that has no name any more.
func (h handle) removed() bool {
	st, err := statFD(int(h))
	return err != nil || st.nlink == 0
}

// mount tells where a walk is: by the mount's id where the kernel gives one,
// else by the device, which a bind mount of the same device shares.
type mount struct{ id, dev uint64 }

func (m mount) holds(st *stat) bool {
	if m.id != 0 && st.mnt != 0 {
		return m.id == st.mnt
	}
	return m.dev == st.dev
}

// fsTraits is what matters about the file system that holds a directory.
type fsTraits struct {
	mount
	kernel bool // its files are switches of the kernel
	folds  bool // it may find an entry under another spelling
}

// openRootDir opens a directory by its resolved path.
func openRootDir(resolved string) (handle, fsTraits, error) {
	fd, err := retry(func() (int, error) { return openPlain(resolved) })
	if err != nil {
		return -1, fsTraits{}, err
	}
	t, err := traits(fd)
	if err != nil {
		unix.Close(fd)
		return -1, t, err
	}
	return handle(fd), t, nil
}

// identify returns which file an absolute path leads to now, links followed:
// only for the operator's own paths.
func identify(path string) (ident, bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return ident{}, false
	}
	return ident{uint64(st.Dev), st.Ino}, true //nolint:unconvert // narrower elsewhere
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// openat opens one entry of a directory.
func openat(dir int, entry string, flags int, mode uint32) (int, error) {
	return retry(func() (int, error) { return unix.Openat(dir, entry, flags|unix.O_CLOEXEC, mode) })
}

// looked adds what was opened, or closes it.
func looked(fd int, err error) (int, stat, error) {
	if err != nil {
		return -1, stat{}, err
	}
	st, err := statFD(fd)
	if err != nil {
		unix.Close(fd)
	}
	return fd, st, err
}

// again is the same for a call without a value.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// lacks reports that the file system has no such rename.
func lacks(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP
}

func unlink(dir int, entry string, flags int) error {
	return again(func() error { return unix.Unlinkat(dir, entry, flags) })
}

// dead reports whether the directory was removed; the next access then looks
// for a new one at the same path.
func (r *Root) dead() bool {
	r.mu.RLock()
	alive := !r.open || !r.fd.removed()
	r.mu.RUnlock()
	if alive {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open && r.fd.removed() {
		r.detach()
		return true
	}
	return false
}

func (r *Root) traits() fsTraits {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.fs
}

// unlinkIf removes an entry if it is this file.
func unlinkIf(dir int, entry string, id ident) {
	if st, err := statAt(dir, entry); err == nil && st.ident == id {
		_ = unlink(dir, entry, 0)
	}
}
