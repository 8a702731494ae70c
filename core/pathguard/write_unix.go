// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// seam is where tests make the system fail.
type seam struct {
	open     func(dir int, rel string, flags int, mode uint32) (int, error)
	write    func(fd int, p []byte) (int, error)
	exchange func(dir int, a, b string) error
	rename   func(oldDir int, old string, newDir int, name string) error
	renameTo func(oldDir int, old string, newDir int, name string) error // replaces
	across   func(oldDir int, old string, newDir int, name string) error // exchanges
	link     func(fd int, dir int, name string) error                    // of a file without a name
	bare     func(r *Root, rel string, mode uint32) (int, error)
	sync     func(fd int) error
	sleep    func(time.Duration)
}

func realSeam() seam {
	return seam{
		open: openBeneath, write: unix.Write, sync: datasync, sleep: time.Sleep,
		exchange: renameExchange, rename: renameNew, renameTo: unix.Renameat, across: renameAcross,
		link: linkBare, bare: (*Root).openBare,
	}
}

const copyBuffer = 32 << 10

// Replace gives an existing regular file new content: readers see the old or
// the new file whole. Mode, owner, user extended attributes and ACL are kept,
// or nothing is changed. A read-only file is refused. What was written is read
// back and compared before it takes the name. Other names of a hard-linked
// file keep the old content.
func (t *Target) Replace(content io.Reader, o WriteOptions) (Written, error) {
	s, err := t.StageReplace(content, o)
	return s.finish(err)
}

// openOld opens the file that was judged, or refuses.
func (t *Target) openOld(flags int) (*File, error) {
	fd, st, err := looked(openat(t.dir, t.base, flags|unix.O_NOFOLLOW|openFlags, 0))
	if err != nil {
		return nil, t.name.failure(err)
	}
	if st.fingerprint() != t.st.fingerprint() {
		unix.Close(fd)
		return nil, t.name.stale(ruleGone)
	}
	return &File{fd, t.name, st}, nil
}

// swap puts the temp file under the name and takes the old one away from it.
func (t *Target) swap(tmp *temp, old *File, o WriteOptions, w *Written) error {
	if st, err := statFD(old.fd); err != nil || st.fingerprint() != t.st.fingerprint() {
		return t.name.stale(ruleGone)
	}
	err := t.exchange(tmp)
	switch {
	case err == nil:
	case lacks(err):
		return t.swapBlind(tmp, old, o)
	case err == unix.ENOENT:
		return t.name.stale(ruleGone)
	default:
		return t.name.failure(err)
	}
	w.CAS, tmp.named = true, t.st.ident
	gone, err := statAt(t.dir, tmp.base)
	if err != nil || !t.st.sameBut(&gone) {
		return t.swapBack(tmp, t.name.stale(ruleGone))
	}
	if err := o.keep(old); err != nil {
		return t.swapBack(tmp, err)
	}
	if o.Into == nil {
		return nil
	}
	if err := o.Into.takes(t, tmp.base, o.As); err != nil {
		return t.swapBack(tmp, t.name.failure(err))
	}
	tmp.keep = true
	return nil
}

func (t *Target) exchange(tmp *temp) error {
	return t.held(func() error { return t.name.root.seam.exchange(t.dir, tmp.base, t.base) })
}

// swapBack undoes the exchange, and proves that it did. Where yet another
// program has replaced the file in the moment between, its state stays, and
// the one that was displaced is kept beside it.
func (t *Target) swapBack(tmp *temp, why error) error {
	now, err := statAt(t.dir, t.base)
	if err == nil && now.ident == tmp.id {
		if err = t.exchange(tmp); err == nil {
			now, err = statAt(t.dir, tmp.base)
			switch {
			case err == nil && tmp.filled.sameBut(&now):
				tmp.named = tmp.id
				return why
			case err == nil && now.ident != tmp.id:
				err = t.exchange(tmp)
			}
		}
	}
	tmp.keep = true // it is somebody's content, under a name of ours: leave it
	return t.name.halfway(errors.Join(why, err), "the file changed twice meanwhile, and one state of it is kept as "+tmp.base)
}

// swapBlind replaces where there is no exchange: what was judged is looked at
// once more, and a change in the moment after that is lost.
func (t *Target) swapBlind(tmp *temp, old *File, o WriteOptions) error {
	if err := o.keep(old); err != nil {
		return err
	}
	if err := t.ready(); err != nil {
		return err
	}
	if o.Into != nil { // a second name keeps what the rename takes the first from
		if err := unix.Linkat(t.dir, t.base, o.Into.fd, o.As, 0); err != nil {
			return t.name.fault(fault.IOFailed, ruleKept, err)
		}
	}
	err := t.held(func() error { return t.name.root.seam.renameTo(t.dir, tmp.base, t.dir, t.base) })
	if err != nil {
		if o.Into != nil {
			unlinkIf(o.Into.fd, o.As, t.st.ident)
		}
		return t.name.failure(err)
	}
	tmp.keep = true
	return nil
}

// held repeats a rename that fails as if another program had the file open
// without sharing it.
func (t *Target) held(rename func() error) error {
	for try := 1; ; try++ {
		err := again(rename)
		switch err {
		case unix.EPERM, unix.EACCES:
			if err := t.mayRename(); err != nil {
				return err
			}
		case unix.EBUSY, unix.ETXTBSY:
		default:
			return err
		}
		if try == heldTries {
			return t.name.fault(fault.LockHeld, "another program holds the file", err)
		}
		t.name.root.seam.sleep(heldPause)
	}
}

// Create makes a new regular file with this content, which never shows under
// the name in part. Something that has the name already is
// precondition.failed. The mode is subject to the umask or the directory's
// default ACL.
func (t *Target) Create(content io.Reader, mode fs.FileMode) (Written, error) {
	s, err := t.StageCreate(content, mode, WriteOptions{})
	return s.finish(err)
}

// moveNew renames an entry to the target's absent name, never over anything.
// Where the system has no such rename, a second link or a new directory takes
// the name first, and fails when it is taken.
func (t *Target) moveNew(from int, old string, kind Kind) error {
	s := t.name.root.seam
	err := s.rename(from, old, t.dir, t.base)
	if !lacks(err) {
		return err
	}
	if kind != KindDir {
		if err := unix.Linkat(from, old, t.dir, t.base, 0); err != nil {
			return err
		}
		return unix.Unlinkat(from, old, 0)
	}
	if err := unix.Mkdirat(t.dir, t.base, 0o700); err != nil {
		return err
	}
	err = s.renameTo(from, old, t.dir, t.base) // replaces an empty directory only
	if err != nil {
		_ = unix.Unlinkat(t.dir, t.base, unix.AT_REMOVEDIR)
	}
	return err
}

// Mkdir makes the directory. Something that has the name already is
// precondition.failed.
func (t *Target) Mkdir(mode fs.FileMode) error {
	if err := t.CanMkdir(); err != nil {
		return err
	}
	if err := again(func() error { return unix.Mkdirat(t.dir, t.base, uint32(mode.Perm())) }); err != nil {
		return t.name.failure(err)
	}
	return t.settled()
}
