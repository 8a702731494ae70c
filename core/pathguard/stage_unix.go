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
	mode    uint32
	old     *File // nil for a new file
	base    string
	tmp     *temp // nil until Commit where no file can be without a name
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
	s := &Staged{t: t, o: o, content: content, mode: 0o600, old: old}
	if err := s.begin(); err != nil {
		unix.Close(old.fd)
		return nil, err
	}
	return s, nil
}

// StageCreate begins a Create.
func (t *Target) StageCreate(content io.Reader, mode fs.FileMode, o WriteOptions) (*Staged, error) {
	if err := t.CanCreate(); err != nil {
		return nil, err
	}
	s := &Staged{t: t, o: o, content: content, mode: uint32(mode.Perm())}
	return s, s.begin()
}

func (s *Staged) begin() (err error) {
	s.base = tempName()
	if s.tmp, err = s.t.bareTemp(s.base, s.mode); err != nil {
		return s.t.name.failure(err)
	}
	return nil
}

// Temp is the name that an unfinished file may have beside the target, and
// which file it is, zero if that is not known yet: what a crash leaves is known
// by it.
func (s *Staged) Temp() (base string, id ID) {
	if s.tmp != nil {
		id = ID{s.tmp.id.dev, s.tmp.id.ino}
	}
	return s.base, id
}

// Filled is the file once it is filled, zero where that is left to Commit, by
// which its time of change moves.
func (s *Staged) Filled() Facts {
	if s.tmp == nil {
		return Facts{}
	}
	return s.tmp.filled.fingerprint().Facts()
}

// Fill writes the content, reads it back and syncs it. It touches nothing else,
// so that it may run beside anything but the other methods. Where the file
// would show, it is left to Commit.
func (s *Staged) Fill() (err error) {
	if s.tmp == nil {
		return nil
	}
	if s.w, err = s.tmp.fill(s.content, s.old, s.o.Like); err != nil {
		return s.t.name.failure(err)
	}
	return nil
}

// Keeping sets where what is displaced goes, if that was not known before.
func (s *Staged) Keeping(o WriteOptions) { s.o.Keep, s.o.Into, s.o.As = o.Keep, o.Into, o.As }

// Commit gives the filled file its name.
func (s *Staged) Commit() (w Written, err error) {
	switch {
	case s.tmp == nil:
		err = s.late(s.content)
	case s.tmp.bare && s.old != nil:
		err = s.appear()
	}
	if err != nil {
		return Written{}, s.t.name.failure(err)
	}
	if s.old != nil {
		err = s.t.swap(s.tmp, s.old, s.o, &s.w)
	} else {
		err = s.place()
	}
	if err != nil {
		return Written{}, err
	}
	s.w.Info, err = s.tmp.settle()
	return s.w, err
}

// appear gives the file the name from which it takes the target's.
func (s *Staged) appear() error {
	err := s.tmp.link(s.base)
	if err == nil {
		s.tmp.keep = false
		s.tmp.filled, err = statFD(s.tmp.fd)
		return err
	}
	return s.instead(err)
}

// place gives a new file its name.
func (s *Staged) place() error {
	t := s.t
	if s.tmp.bare {
		err := t.held(func() error { return s.tmp.link(t.base) })
		if err == nil || err == unix.EEXIST {
			s.w.CAS = true
			return s.placed(err)
		}
		if err := s.instead(err); err != nil {
			return t.name.failure(err)
		}
	}
	err := t.held(func() error { return t.moveNew(t.dir, s.tmp.base, KindFile) })
	s.tmp.keep, s.w.CAS = err == nil, true
	return s.placed(err)
}

func (s *Staged) placed(err error) error {
	if err == nil {
		return nil
	}
	return s.t.name.failure(err)
}

// instead fills another file, with a name, where one without can't get one.
func (s *Staged) instead(why error) error {
	switch why {
	case unix.ENOENT, unix.EPERM, unix.EACCES, unix.EOPNOTSUPP, unix.EINVAL, unix.ELOOP:
	default:
		return why
	}
	bare := s.tmp
	defer unix.Close(bare.fd)
	s.tmp = nil
	content := &File{fd: bare.fd, name: s.t.name}
	return s.late(io.NewSectionReader(content, 0, bare.filled.size))
}

// late makes the file and fills it, both when it may show.
func (s *Staged) late(content io.Reader) (err error) {
	if s.tmp, err = s.t.newTemp(s.base, s.mode); err != nil {
		return err
	}
	s.w, err = s.tmp.fill(content, s.old, s.o.Like)
	return err
}

// Discard removes what is unfinished.
func (s *Staged) Discard() {
	if s.tmp != nil {
		s.tmp.discard()
		s.tmp = nil
	}
	if s.old != nil {
		unix.Close(s.old.fd)
		s.old = nil
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
