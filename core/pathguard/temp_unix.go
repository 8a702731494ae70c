// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// temp is a file that is not yet what its final name says.
type temp struct {
	t     *Target
	fd    int
	base  string
	id    ident
	named ident // what has the temp name: the file, or what it displaced
	keep  bool  // nothing of ours has the temp name any more
	bare  bool  // it has no name yet
	// filled is the finished file, to tell whether somebody wrote to it.
	filled stat
}

// bareTemp makes an empty file that has no name: nothing shows of it, and a crash
// leaves nothing. It is nil where the file system has no such files.
func (t *Target) bareTemp(base string, mode uint32) (*temp, error) {
	fd, st, err := looked(t.name.root.seam.bare(t.name.root, t.parent.rel, mode))
	switch err {
	case nil:
		return &temp{t: t, fd: fd, base: base, id: st.ident, named: st.ident, keep: true, bare: true}, nil
	case unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT, unix.ENOSYS:
		return nil, nil //nolint:nilnil // a file with a name is made later
	}
	return nil, err
}

// link gives a bare file a name in the pinned directory, over nothing.
func (p *temp) link(base string) error {
	if err := again(func() error { return p.t.name.root.seam.link(p.fd, p.t.dir, base) }); err != nil {
		return err
	}
	p.bare = false
	return nil
}

// newTemp makes an empty file beside the target, in one step from the root, so
// that it can't come to be anywhere else; then compares with the pinned
// directory.
func (t *Target) newTemp(base string, mode uint32) (*temp, error) {
	fd, st, err := looked(t.name.root.openAt(joinRel(t.parent.rel, base), unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|openFlags, mode))
	if err != nil {
		return nil, err
	}
	tmp := &temp{t: t, fd: fd, base: base, id: st.ident, named: st.ident}
	if at, err := statAt(t.dir, base); err != nil || at.ident != st.ident {
		tmp.abandon()
		return nil, t.name.stale(ruleFolder)
	}
	return tmp, nil
}

// discard removes what has the temp name and closes the file, in this order:
// while it is open no other file gets its inode number.
func (p *temp) discard() {
	p.unname()
	unix.Close(p.fd)
}

// unname removes what has the temp name: the unfinished file, or the displaced
// one, and nothing else.
func (p *temp) unname() {
	if !p.keep {
		unlinkIf(p.t.dir, p.base, p.named)
	}
	p.keep = true
}

// settle proves where the finished file is, once nothing has the temp name. It
// is still open, so that its identity is its own.
func (p *temp) settle() (Info, error) {
	p.unname()
	return p.t.arrived(p.id)
}

// abandon removes an empty temp file that was made in a directory which is not
// the pinned one, if that one is still to be found.
func (p *temp) abandon() {
	defer unix.Close(p.fd)
	if dir, err := p.t.parent.openParent(); err == nil {
		unlinkIf(dir, p.base, p.id)
		unix.Close(dir)
	}
}

// fill gives the file its final metadata first, so that no content ever shows
// under a wider mode, then the content, which is read back, and syncs it.
func (p *temp) fill(content io.Reader, old *File, like *Like) (w Written, err error) {
	if old != nil && like == nil {
		if w.Warnings, err = p.inherit(old); err != nil {
			return w, err
		}
	}
	err = p.t.copyTo(&File{fd: p.fd, name: p.t.name}, content)
	if errors.Is(err, errDiffers) {
		err = p.t.name.fault(fault.IOFailed, errDiffers.Error(), err)
	}
	if err != nil {
		return w, err
	}
	switch {
	case like != nil:
		if w.Warnings, err = p.become(like); err != nil {
			return w, err
		}
	case old != nil && old.st.mode&(modeSetuid|modeSetgid) != 0:
		// Writing took these away.
		if err := unix.Fchmod(p.fd, old.st.mode&modeBits); err != nil {
			return w, err
		}
	}
	if err = p.t.sync(p.fd); err == nil {
		p.filled, err = statFD(p.fd)
	}
	return w, err
}

// inherit keeps owner, user attributes, ACL and mode of the old file.
func (p *temp) inherit(old *File) (warnings []string, err error) {
	n := p.t.name
	st, err := statFD(p.fd)
	if err != nil {
		return nil, err
	}
	if st.uid != old.st.uid || st.gid != old.st.gid {
		if err := unix.Fchown(p.fd, int(old.st.uid), int(old.st.gid)); err != nil {
			return nil, n.fault(fault.IOFailed, ruleOwner, err)
		}
	}
	warnings, err = copyAttributes(p.fd, old.fd)
	if err != nil {
		return nil, n.fault(fault.IOFailed, "the file's attributes or ACL can't be kept, so nothing was changed", err)
	}
	if err := unix.Fchmod(p.fd, old.st.mode&modeBits); err != nil {
		return nil, err
	}
	st, err = statFD(p.fd)
	if err == nil && (st.uid != old.st.uid || st.gid != old.st.gid || (st.mode^old.st.mode)&modeBits != 0) {
		err = n.fault(fault.IOFailed, ruleOwner, nil)
	}
	return warnings, err
}
