// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// seam is where tests make the system fail.
type seam struct {
	write    func(fd int, p []byte) (int, error)
	exchange func(dir int, a, b string) error
	rename   func(oldDir int, old string, newDir int, name string) error
	renameTo func(oldDir int, old string, newDir int, name string) error // replaces
}

var realSeam = seam{write: unix.Write, exchange: renameExchange, rename: renameNew, renameTo: unix.Renameat}

const (
	copyBuffer = 128 << 10
	// A rename that another program holds up is tried this often, this far
	// apart: long enough for a scanner or an editor, short enough for a call.
	heldTries = 10
	heldPause = 20 * time.Millisecond
)

// Replace gives an existing regular file new content: readers see the old or
// the new file whole. Mode, owner, user extended attributes and ACL are kept,
// or nothing is changed. A read-only file is refused. What was written is read
// back and compared before it takes the name. Other names of a hard-linked
// file keep the old content.
func (t *Target) Replace(content io.Reader, o WriteOptions) (Written, error) {
	if err := t.replaceable(); err != nil {
		return Written{}, err
	}
	old, err := t.openOld(unix.O_RDONLY)
	if err != nil {
		return Written{}, err
	}
	defer old.Close()
	tmp, err := t.newTemp(0o600)
	if err == unix.EACCES && o.InPlace && t.st.nlink == 1 {
		return t.overwrite(content, o)
	}
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	defer tmp.discard()
	w, err := tmp.fill(content, old, o.Sync)
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	if err := t.swap(tmp, old, o, &w); err != nil {
		return Written{}, err
	}
	return w, t.finish(tmp, o.Sync, &w)
}

func (t *Target) replaceable() error {
	switch {
	case !t.exists:
		return t.name.fault(fault.PathMissing, ruleAbsent, nil)
	case t.st.kind() != KindFile:
		return t.name.fault(fault.IOFailed, "it is not a file", nil)
	}
	if err := t.ready(); err != nil {
		return err
	}
	return t.writable()
}

// writable honours the read-only bit although a rename could go around it.
func (t *Target) writable() error {
	err := mayWrite(t.dir, t.base)
	if t.st.mode&0o222 == 0 || t.st.frozen || err == unix.EACCES || err == unix.EPERM {
		return t.name.fault(fault.IOFailed, ruleReadOnly, unix.EACCES)
	}
	if err != nil {
		return t.name.failure(err)
	}
	return nil
}

// openOld opens the file that was judged, or refuses.
func (t *Target) openOld(flags int) (*File, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(t.dir, t.base, flags|unix.O_NOFOLLOW|openFlags, 0)
	})
	if err != nil {
		return nil, t.name.failure(err)
	}
	f := &File{fd: fd, name: t.name}
	f.st, err = statFD(fd)
	if err == nil && f.st.fingerprint() != t.st.fingerprint() {
		err = t.name.stale(ruleGone)
	}
	if err != nil {
		unix.Close(fd)
		return nil, t.name.failure(err)
	}
	return f, nil
}

// swap puts the temp file under the name and takes the old one away from it.
func (t *Target) swap(tmp *temp, old *File, o WriteOptions, w *Written) error {
	if st, err := statFD(old.fd); err != nil || st.fingerprint() != t.st.fingerprint() {
		return t.name.stale(ruleGone)
	}
	err := t.held(func() error { return t.name.root.seam.exchange(t.dir, tmp.base, t.base) })
	switch err {
	case nil:
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP:
		return t.swapBlind(tmp, old, o)
	case unix.ENOENT:
		return t.name.stale(ruleGone)
	default:
		return t.name.failure(err)
	}
	w.CAS = true
	gone, err := statAt(t.dir, tmp.base)
	if err == nil && t.st.sameBut(&gone) {
		if o.Keep == nil {
			return nil
		}
		if err = o.Keep(old); err == nil {
			return nil
		}
		return t.swapBack(tmp, err)
	}
	return t.swapBack(tmp, t.name.stale(ruleGone))
}

// swapBack undoes the exchange, and proves that it did.
func (t *Target) swapBack(tmp *temp, why error) error {
	err := t.held(func() error { return t.name.root.seam.exchange(t.dir, tmp.base, t.base) })
	if err == nil {
		var st stat
		if st, err = statAt(t.dir, tmp.base); err == nil && st.ident == tmp.id {
			return why
		}
	}
	tmp.keep = true // it is somebody's content, under a name of ours: leave it
	return t.name.halfway(errors.Join(why, err), "the file changed twice meanwhile, and the state before is kept as "+tmp.base)
}

// swapBlind replaces where there is no exchange: what was judged is looked at
// once more, and a change in the moment after that is lost.
func (t *Target) swapBlind(tmp *temp, old *File, o WriteOptions) error {
	if o.Keep != nil {
		if err := o.Keep(old); err != nil {
			return err
		}
	}
	if err := t.ready(); err != nil {
		return err
	}
	err := t.held(func() error { return t.name.root.seam.renameTo(t.dir, tmp.base, t.dir, t.base) })
	if err != nil {
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
		case unix.EPERM, unix.EACCES, unix.EBUSY, unix.ETXTBSY:
		default:
			return err
		}
		if try == heldTries {
			f := t.name.fault(fault.LockHeld, "another program holds the file", err)
			f.Retry = true
			return f
		}
		t.name.root.opts.Sleep(heldPause)
	}
}

// finish proves that the new file has the name, and makes it durable.
func (t *Target) finish(tmp *temp, s Sync, w *Written) error {
	tmp.discard()
	st, err := statAt(t.dir, t.base)
	if err != nil || st.ident != tmp.id {
		return t.name.halfway(err, "another program replaced the file at the same moment")
	}
	w.Info = st.info()
	if err := t.settled(); err != nil {
		return err
	}
	if s == SyncAll {
		if err := t.syncDir(); err != nil {
			return t.name.halfway(err, "the folder could not be written to the disk")
		}
	}
	return nil
}

// Create makes a new regular file with this content, which never shows under
// the name in part. Something that has the name already is
// precondition.failed. The mode is subject to the umask or the directory's
// default ACL.
func (t *Target) Create(content io.Reader, mode fs.FileMode, o WriteOptions) (Written, error) {
	if t.exists {
		return Written{}, t.name.stale(ruleThere)
	}
	if err := t.ready(); err != nil {
		return Written{}, err
	}
	tmp, err := t.newTemp(posixMode(mode) & 0o777)
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	defer tmp.discard()
	w, err := tmp.fill(content, nil, o.Sync)
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	err = t.held(func() error { return t.moveNew(t.dir, tmp.base, KindFile) })
	if err == unix.EEXIST {
		return Written{}, t.name.stale(ruleThere)
	}
	if err != nil {
		return Written{}, t.name.failure(err)
	}
	tmp.keep, w.CAS = true, true
	return w, t.finish(tmp, o.Sync, &w)
}

// moveNew renames an entry to the target's absent name, never over anything.
// Where the system has no such rename, a second link or a new directory takes
// the name first, and fails when it is taken.
func (t *Target) moveNew(from int, old string, kind Kind) error {
	s := t.name.root.seam
	err := s.rename(from, old, t.dir, t.base)
	if err != unix.EINVAL && err != unix.ENOSYS && err != unix.ENOTSUP {
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
		unix.Unlinkat(t.dir, t.base, unix.AT_REMOVEDIR)
	}
	return err
}

// Mkdir makes the directory. Something that has the name already is
// precondition.failed.
func (t *Target) Mkdir(mode fs.FileMode) error {
	if t.exists {
		return t.name.stale(ruleThere)
	}
	if err := t.ready(); err != nil {
		return err
	}
	err := again(func() error { return unix.Mkdirat(t.dir, t.base, posixMode(mode)&0o777) })
	if err == unix.EEXIST {
		return t.name.stale(ruleThere)
	}
	if err != nil {
		return t.name.failure(err)
	}
	return t.settled()
}

// Append adds to the end of an existing regular file, in place: readers may
// see a part of it. A file with more than one name is refused, since the
// others may lie outside, and so is a read-only one. A failure takes back what
// was added, where the file has not grown otherwise.
func (t *Target) Append(content []byte, o WriteOptions) (Written, error) {
	if err := t.replaceable(); err != nil {
		return Written{}, err
	}
	if t.st.nlink > 1 {
		return Written{}, t.name.fault(fault.PathDenied, "the file has more than one name, and appending would change the others", nil)
	}
	f, err := t.openOld(unix.O_RDWR | unix.O_APPEND)
	if err != nil {
		return Written{}, err
	}
	defer f.Close()
	if o.Keep != nil {
		if err := o.Keep(f); err != nil {
			return Written{}, err
		}
	}
	err = t.writeAll(f.fd, content)
	if err == nil {
		err = verifyTail(f, t.st.size, content)
	}
	if err != nil {
		return Written{}, t.takeBack(f, len(content), err)
	}
	return t.inPlaceDone(f, o.Sync)
}

func verifyTail(f *File, from int64, content []byte) error {
	st, err := statFD(f.fd)
	if err != nil || st.size != from+int64(len(content)) {
		return errors.Join(errDiffers, err)
	}
	buf := make([]byte, min(len(content), copyBuffer))
	for len(content) > 0 {
		n, err := f.ReadAt(buf[:min(len(buf), len(content))], from)
		if err != nil || !bytes.Equal(buf[:n], content[:n]) {
			return errors.Join(errDiffers, err)
		}
		content, from = content[n:], from+int64(n)
	}
	return nil
}

// takeBack shortens a file to its old length unless somebody else wrote too.
func (t *Target) takeBack(f *File, added int, why error) error {
	st, err := statFD(f.fd)
	if err == nil && st.size >= t.st.size && st.size <= t.st.size+int64(added) {
		if err = unix.Ftruncate(f.fd, t.st.size); err == nil {
			return t.name.failure(why)
		}
	}
	return t.name.halfway(errors.Join(why, err), "the file could not be taken back to its old length")
}

// overwrite writes the file itself, for directories that can't be written to.
func (t *Target) overwrite(content io.Reader, o WriteOptions) (Written, error) {
	f, err := t.openOld(unix.O_RDWR)
	if err != nil {
		return Written{}, err
	}
	defer f.Close()
	if o.Keep != nil {
		if err := o.Keep(f); err != nil {
			return Written{}, err
		}
	}
	sum, size, err := t.copyTo(f.fd, content)
	if err == nil {
		err = again(func() error { return unix.Ftruncate(f.fd, size) })
	}
	if err == nil {
		err = verify(f, sum, size)
	}
	if err != nil {
		return Written{}, t.name.halfway(err, "writing the file in place failed")
	}
	w, err := t.inPlaceDone(f, o.Sync)
	w.Sum = sum
	return w, err
}

func (t *Target) inPlaceDone(f *File, s Sync) (Written, error) {
	if s != SyncNone {
		if err := again(func() error { return datasync(f.fd) }); err != nil {
			return Written{}, t.name.halfway(err, "the content could not be written to the disk")
		}
	}
	st, err := statFD(f.fd)
	now, err2 := statAt(t.dir, t.base)
	if err != nil || err2 != nil || now.ident != st.ident {
		return Written{}, t.name.halfway(errors.Join(err, err2), "another program replaced the file at the same moment")
	}
	return Written{Info: st.info(), InPlace: true}, t.settled()
}

// errDiffers is a write layer that lost something without an error.
var errDiffers = errors.New("what is on the disk differs from what was written")

func verify(f *File, sum [sha256.Size]byte, size int64) error {
	st, err := statFD(f.fd)
	if err != nil || st.size != size {
		return errors.Join(errDiffers, err)
	}
	h := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.NewSectionReader(f, 0, size), make([]byte, copyBuffer))
	if err != nil || n != size || [sha256.Size]byte(h.Sum(nil)) != sum {
		return errors.Join(errDiffers, err)
	}
	return nil
}

// copyTo writes everything in bounded memory and returns what it was.
func (t *Target) copyTo(fd int, content io.Reader) (sum [sha256.Size]byte, size int64, err error) {
	h, buf := sha256.New(), make([]byte, copyBuffer)
	for {
		n, err := content.Read(buf)
		if n > 0 {
			h.Write(buf[:n])
			size += int64(n)
			if err := t.writeAll(fd, buf[:n]); err != nil {
				return sum, size, err
			}
		}
		if err == io.EOF {
			return [sha256.Size]byte(h.Sum(nil)), size, nil
		}
		if err != nil {
			return sum, size, err
		}
	}
}

func (t *Target) writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := retry(func() (int, error) { return t.name.root.seam.write(fd, p) })
		if err != nil {
			return err
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		p = p[n:]
	}
	return nil
}
