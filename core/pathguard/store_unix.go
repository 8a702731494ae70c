// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// Store is a directory of the operator's own, outside every root, that
// displaced entries are moved to and from which they come back. What moves
// keeps everything that it has: owner, times, attributes.
type Store struct {
	fd  int
	mnt mount
}

// OpenStore opens the directory by its path, in which nothing is a link.
func OpenStore(path string) (*Store, error) {
	fd, st, err := looked(openPlain(path))
	if err != nil {
		return nil, badRoot(path, "it can't be opened as a directory", err)
	}
	return &Store{fd, mount{st.mnt, st.dev}}, nil
}

// Close lets the directory go.
func (s *Store) Close() { unix.Close(s.fd) }

// Near reports whether an entry can be moved between the target's directory and
// the store: both are on one mount.
func (s *Store) Near(t *Target) bool { return s.mnt.holds(&t.dirStat) }

// Facts are those of an entry of the store, the zero Facts where there is none.
func (s *Store) Facts(entry string) Facts {
	st, err := statAt(s.fd, entry)
	if err != nil {
		return Facts{}
	}
	return st.fingerprint().Facts()
}

// takes moves an entry in. The name is one that nothing has.
func (s *Store) takes(t *Target, base, as string) error {
	err := t.held(func() error { return t.name.root.seam.renameTo(t.dir, base, s.fd, as) })
	if err == unix.EXDEV || err == unix.ENOENT && s.Gone() {
		return t.name.fault(fault.IOFailed, ruleKept, err)
	}
	return err
}

// Gone reports a store that somebody removed.
func (s *Store) Gone() bool { return handle(s.fd).removed() }

// Adopt moves an entry of the store to the absent name, if it is still what
// it was when it was kept. For a directory the identity is compared.
func (t *Target) Adopt(s *Store, entry string, kept Facts) (Written, error) {
	if err := t.CanMkdir(); err != nil {
		return Written{}, err
	}
	st, err := t.image(s, entry, kept)
	if err != nil {
		return Written{}, err
	}
	if err := t.held(func() error { return t.moveNew(s.fd, entry, st.kind()) }); err != nil {
		return Written{}, t.name.failure(err)
	}
	info, err := t.arrived(st.ident)
	return Written{Info: info, CAS: true}, err
}

// Exchange gives the name to a file of the store and takes what had it there,
// under the entry's name, in one step.
func (t *Target) Exchange(s *Store, entry string, kept Facts) (Written, error) {
	if err := t.CanReplace(); err != nil {
		return Written{}, err
	}
	st, err := t.image(s, entry, kept)
	if err != nil {
		return Written{}, err
	}
	swap := func() error {
		return t.held(func() error { return t.name.root.seam.across(s.fd, entry, t.dir, t.base) })
	}
	if err := swap(); lacks(err) {
		return t.exchangeBlind(s, entry, st)
	} else if err != nil {
		return Written{}, t.name.failure(err)
	}
	gone, err := statAt(s.fd, entry)
	if err != nil || !t.st.sameBut(&gone) {
		return Written{}, t.exchangeBack(s, entry, st, swap)
	}
	info, err := t.arrived(st.ident)
	return Written{Info: info, CAS: true}, err
}

// OldSuffix ends the name of an entry that is on its way to the name without it.
const OldSuffix = ".old"

// exchangeBlind does the same where there is no exchange: a second name keeps
// what the rename takes the first from.
func (t *Target) exchangeBlind(s *Store, entry string, image stat) (Written, error) {
	if err := unix.Linkat(t.dir, t.base, s.fd, entry+OldSuffix, 0); err != nil {
		return Written{}, t.name.fault(fault.IOFailed, ruleKept, err)
	}
	if err := t.held(func() error { return t.name.root.seam.renameTo(s.fd, entry, t.dir, t.base) }); err != nil {
		unlinkIf(s.fd, entry+OldSuffix, t.st.ident)
		return Written{}, t.name.failure(err)
	}
	if err := unix.Renameat(s.fd, entry+OldSuffix, s.fd, entry); err != nil {
		return Written{}, t.name.halfway(err, ruleKept)
	}
	info, err := t.arrived(image.ident)
	return Written{Info: info}, err
}

// exchangeBack gives the name back to what another program put there.
func (t *Target) exchangeBack(s *Store, entry string, image stat, swap func() error) error {
	now, err := statAt(t.dir, t.base)
	if err == nil && now.ident == image.ident {
		if err = swap(); err == nil {
			if now, err = statAt(s.fd, entry); err == nil && now.ident == image.ident {
				return t.name.stale(ruleGone)
			}
			err = errors.Join(err, swap()) // somebody was faster still: theirs stays
		}
	}
	return t.name.halfway(err, "the file changed twice meanwhile, and one state of it is kept with the images")
}

func (t *Target) image(s *Store, entry string, kept Facts) (stat, error) {
	st, err := statAt(s.fd, entry)
	now := st.fingerprint().Facts()
	switch {
	case err == unix.ENOENT:
		return st, t.name.fault(fault.IOFailed, "its before-image is gone", err)
	case err != nil:
		return st, t.name.failure(err)
	case st.kind() == KindDir && now.Dev == kept.Dev && kept.Moved(now), now == kept:
		return st, nil
	}
	return st, t.name.fault(fault.IOFailed, "its before-image was changed since it was kept", nil)
}

// moveAll moves a directory with all that is beneath it into the store, in one
// step. What was not judged is not taken: the directory is then moved back.
func (t *Target) moveAll(all []found, o WriteOptions) error {
	judged := make(map[ident]stat, len(all))
	for i := range all {
		judged[all[i].st.ident] = all[i].st
	}
	return t.moveDir(judged, o)
}

func (t *Target) moveDir(judged map[ident]stat, o WriteOptions) error {
	if err := o.Into.takes(t, t.base, o.As); err != nil {
		return t.name.failure(err)
	}
	st, err := statAt(o.Into.fd, o.As)
	exactly := o.Exactly != nil
	if err == nil && st.ident == t.st.ident && (!exactly || t.movedAs(&st)) && holdsOnly(o.Into.fd, o.As, judged, exactly, 0) {
		return t.settled()
	}
	if err := t.held(func() error { return t.moveNew(o.Into.fd, o.As, KindDir) }); err != nil {
		return t.name.halfway(err, "what it holds changed meanwhile, and it could not be moved back")
	}
	return t.name.stale("what it holds changed meanwhile")
}

// maxDepth bounds how deep a directory is walked by handles.
const maxDepth = 1000

// holdsOnly reports whether everything beneath an entry is among the judged,
// exactly as it was then if that is asked. What is gone or has another name
// shows in the times of its directory.
func holdsOnly(dir int, entry string, judged map[ident]stat, exactly bool, depth int) bool {
	fd, err := openat(dir, entry, oPath|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil || depth > maxDepth {
		return false
	}
	defer unix.Close(fd)
	only := true
	err = eachEntry(fd, func(e Entry) bool {
		st, err := statAt(fd, e.Name)
		was, known := judged[st.ident]
		only = err == nil && known && (!exactly || st.fingerprint() == was.fingerprint()) &&
			(st.kind() != KindDir || holdsOnly(fd, e.Name, judged, exactly, depth+1))
		return only
	})
	return err == nil && only
}

// Truncate shortens a file in place to what it was before something was added,
// and gives it the time of that. Keep is given the file first.
func (t *Target) Truncate(size, mtime int64, o WriteOptions) (Written, error) {
	if err := t.CanAppend(); err != nil {
		return Written{}, err
	}
	if size < 0 || size > t.st.size {
		return Written{}, t.name.stale("it is shorter than it would become")
	}
	f, err := t.openOld(unix.O_RDWR)
	if err != nil {
		return Written{}, err
	}
	defer f.Close()
	if err := o.keep(f); err != nil {
		return Written{}, err
	}
	if err := again(func() error { return unix.Ftruncate(f.fd, size) }); err != nil {
		return Written{}, t.name.failure(err)
	}
	if err := errors.Join(setMTime(f.fd, mtime), t.sync(f.fd)); err != nil {
		return Written{}, t.name.halfway(err, "the file is shorter, and could not be finished")
	}
	info, err := t.arrived(f.st.ident)
	return Written{Info: info}, err
}
