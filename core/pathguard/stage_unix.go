// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// Staged is a change of a file whose new content is written, and synced, before
// anything shows of it: time in which others may sync what belongs to it. It is
// for one Fill, then one Commit; Discard it in any case.
type Staged struct {
	t       *Target
	o       WriteOptions
	content io.Reader
	old     *File // nil for a new file
	tmp     *temp
	w       Written
}

// StageReplace begins a Replace: all that it would refuse is refused here.
func (t *Target) StageReplace(content io.Reader, o WriteOptions) (*Staged, error) {
	if err := t.CanReplace(); err != nil {
		return nil, err
	}
	old, err := t.openOld(unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	tmp, err := t.newTemp(0o600)
	if err != nil {
		unix.Close(old.fd)
		return nil, t.name.failure(err)
	}
	return &Staged{t: t, o: o, content: content, old: old, tmp: tmp}, nil
}

// StageCreate begins a Create.
func (t *Target) StageCreate(content io.Reader, mode fs.FileMode, o WriteOptions) (*Staged, error) {
	if err := t.CanCreate(); err != nil {
		return nil, err
	}
	tmp, err := t.newTemp(uint32(mode.Perm()))
	if err != nil {
		return nil, t.name.failure(err)
	}
	return &Staged{t: t, o: o, content: content, tmp: tmp}, nil
}

// Temp is the name of the unfinished file beside the target, and which file it
// is: what a crash leaves is known by it.
func (s *Staged) Temp() (base string, id ID) { return s.tmp.base, ID{s.tmp.id.dev, s.tmp.id.ino} }

// Fill writes the content, reads it back and syncs it. It touches nothing else,
// so that it may run beside anything but the other methods.
func (s *Staged) Fill() (err error) {
	if s.w, err = s.tmp.fill(s.content, s.old, s.o.Like); err != nil {
		return s.t.name.failure(err)
	}
	return nil
}

// Keeping sets where what is displaced goes, if that was not known before.
func (s *Staged) Keeping(o WriteOptions) { s.o.Keep, s.o.Into, s.o.As = o.Keep, o.Into, o.As }

// Commit gives the filled file its name.
func (s *Staged) Commit() (Written, error) {
	if s.old != nil {
		if err := s.t.swap(s.tmp, s.old, s.o, &s.w); err != nil {
			return Written{}, err
		}
	} else {
		if err := s.t.held(func() error { return s.t.moveNew(s.t.dir, s.tmp.base, KindFile) }); err != nil {
			return Written{}, s.t.name.failure(err)
		}
		s.tmp.keep, s.w.CAS = true, true
	}
	var err error
	s.w.Info, err = s.tmp.settle()
	return s.w, err
}

// Discard removes what is unfinished.
func (s *Staged) Discard() {
	if s.tmp.fd < 0 {
		return
	}
	s.tmp.discard()
	s.tmp.fd = -1
	if s.old != nil {
		unix.Close(s.old.fd)
	}
}

// finish is the whole change at once.
func (s *Staged) finish(err error) (Written, error) {
	if err != nil {
		return Written{}, err
	}
	defer s.Discard()
	if err := s.Fill(); err != nil {
		return Written{}, err
	}
	return s.Commit()
}

// become gives the file what an image had. An owner that can't be given back is
// a warning: the content is what matters.
func (p *temp) become(like *Like) (warnings []string, err error) {
	st, err := statFD(p.fd)
	if err != nil {
		return nil, err
	}
	mode := like.Mode & modeBits
	if st.uid != like.UID || st.gid != like.GID {
		if unix.Fchown(p.fd, int(like.UID), int(like.GID)) != nil {
			warnings = []string{"its owner or group could not be given back"}
			mode &^= modeSetuid | modeSetgid
		}
	}
	if err := setAttributes(p.fd, like.Attrs); err != nil {
		warnings = append(warnings, "an attribute or the access list could not be given back")
	}
	return warnings, errors.Join(unix.Fchmod(p.fd, mode), setMTime(p.fd, like.MTime))
}

// Like returns what the file has beside its content.
func (f *File) Like() (Like, error) {
	attrs, err := attributes(f.fd)
	if err != nil {
		return Like{}, f.name.fault(fault.IOFailed, "its attributes can't be read", err)
	}
	for name := range attrs {
		if !ours(name) {
			delete(attrs, name)
		}
	}
	return Like{f.st.mode & modeBits, f.st.uid, f.st.gid, f.st.mtime, attrs}, nil
}

// Source opens what the target holds, for reading.
func (t *Target) Source() (*File, error) { return t.openOld(unix.O_RDONLY) }
