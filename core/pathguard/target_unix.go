// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// Pin pins the name for Replace, Create, Append or Mkdir. A last component
// that is a link is a *LinkError; a FIFO, socket or device is path.special.
func (n Name) Pin() (*Target, error) { return n.pin(false) }

// PinEntry pins the entry itself, whatever it is, for Remove, RemoveAll and
// Rename: of a link, the link.
func (n Name) PinEntry() (*Target, error) { return n.pin(true) }

func (n Name) pin(entry bool) (*Target, error) {
	parent, err := n.pinnable()
	if err != nil {
		return nil, err
	}
	fd, err := parent.openParent()
	if err != nil {
		return nil, n.unreached(err, entry, false)
	}
	t := &Target{name: n, parent: parent, base: n.Base(), dir: fd}
	if err := t.look(entry); err != nil {
		t.Close()
		if err == unix.ELOOP {
			return nil, n.unreached(err, entry, false)
		}
		return nil, n.failure(err)
	}
	return t, nil
}

func (n Name) openParent() (int, error) {
	return n.root.openAt(n.rel, oPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// look notes what the pinned directory and its entry are.
func (t *Target) look(entry bool) (err error) {
	if t.dirStat, err = statFD(t.dir); err != nil {
		return err
	}
	if err := t.name.known(t.dirStat.ident); err != nil {
		return err
	}
	t.st, err = statAt(t.dir, t.base)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	t.exists = true
	kind := t.st.kind()
	switch {
	case !(mount{t.dirStat.mnt, t.dirStat.dev}).holds(&t.st):
		return unix.EXDEV
	case kind == KindLink && !entry:
		return unix.ELOOP
	case kind.Special() && !entry:
		return t.name.fault(fault.PathSpecial, "", nil)
	}
	if err := t.name.known(t.st.ident); err != nil {
		return err
	}
	return t.spelled()
}

// spelled refuses an entry that a folding file system has under other bytes.
func (t *Target) spelled() error {
	fs, err := traits(t.dir)
	if err != nil || !fs.folds {
		return err
	}
	return hasEntry(t.dir, t.base)
}

// Above identifies the directories that the entry lies in now, from the pinned one
// up to its root's own. It fails where that is not above it any more.
func (t *Target) Above() (ids []ID, err error) {
	top, err := t.name.root.ident()
	if err != nil {
		return nil, t.name.failure(err)
	}
	at := t.dir
	for id := t.dirStat.ident; ; {
		ids = append(ids, ID{id.dev, id.ino})
		if id == top {
			break
		}
		up, next, err := parentOf(at)
		if at != t.dir {
			unix.Close(at)
		}
		if err != nil || next == id { // of "/" the parent is itself
			return nil, t.name.stale(ruleFolder)
		}
		at, id = up, next
	}
	if at != t.dir {
		unix.Close(at)
	}
	return ids, nil
}

func (r *Root) ident() (id ident, err error) {
	fd, err := r.hold()
	if err != nil {
		return id, err
	}
	defer r.mu.RUnlock()
	st, err := statFD(int(fd))
	return st.ident, err
}

func parentOf(dir int) (up int, id ident, err error) {
	if up, err = unix.Openat(dir, "..", oPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return -1, id, err
	}
	st, err := statFD(up)
	if err != nil {
		unix.Close(up)
	}
	return up, st.ident, err
}

// Close lets the directory go.
func (t *Target) Close() error {
	if t.dir >= 0 {
		unix.Close(t.dir)
		t.dir = -1
	}
	return nil
}

// ready proves, before a change, that the directory still has its name and the
// entry is what was judged.
func (t *Target) ready() error {
	if t.dir < 0 {
		return t.name.fault(fault.Bug, "the target is closed", nil)
	}
	if err := t.sameParent(); err != nil {
		return err
	}
	st, err := statAt(t.dir, t.base)
	switch {
	case err == unix.ENOENT && !t.exists:
		return nil
	case err == unix.ENOENT:
		return t.name.stale(ruleGone)
	case err != nil:
		return t.name.failure(err)
	case !t.exists:
		return t.name.stale(ruleThere)
	case st.fingerprint() != t.st.fingerprint():
		return t.name.stale(ruleGone)
	}
	return nil
}

// sameParent opens the directory anew by its canonical name and compares.
func (t *Target) sameParent() error {
	fd, err := t.parent.openParent()
	if err != nil {
		return t.name.stale(ruleFolder)
	}
	defer unix.Close(fd)
	st, err := statFD(fd)
	if err != nil || st.ident != t.dirStat.ident {
		return t.name.stale(ruleFolder)
	}
	return nil
}

// settled proves, after a change, that it happened under the judged name.
func (t *Target) settled() error {
	if err := t.sameParent(); err != nil {
		return t.name.halfway(nil, ruleFolder)
	}
	return nil
}

// arrived proves, after a change, that this file has the judged name.
func (t *Target) arrived(id ident) (Info, error) {
	if err := t.settled(); err != nil {
		return Info{}, err
	}
	st, err := statAt(t.dir, t.base)
	if err != nil || st.ident != id {
		return Info{}, t.name.halfway(err, "another program replaced the file at the same moment")
	}
	return st.info(), nil
}
