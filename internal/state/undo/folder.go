// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// Folder is which directory it was. Born is nanoseconds since 1970, zero where
// the file system keeps none: an inode is used again after its file is gone.
type Folder struct {
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born,omitempty"`
}

// FolderOf is the directory that a name leads to now, zero for none.
func FolderOf(n pathguard.Name) (f Folder) {
	info, err := n.Lstat()
	if err != nil || info.Kind != pathguard.KindDir {
		return f
	}
	return FolderIn(info)
}

// FolderIn is the directory that these facts are of.
func FolderIn(info pathguard.Info) (f Folder) {
	facts := info.Fingerprint.Facts()
	f.Dev, f.Ino = facts.Dev, facts.Ino
	if !info.BirthTime.IsZero() {
		f.Born = info.BirthTime.UnixNano()
	}
	return f
}

// same is by inode and time of birth. The device counts only where no time is
// known: it may be numbered anew at each start of the machine.
func (f Folder) same(now Folder) bool {
	switch {
	case f.Ino != now.Ino || f == (Folder{}):
		return false
	case f.Born != 0 && now.Born != 0:
		return f.Born == now.Born
	}
	return f.Dev == now.Dev
}

// SameFolder reports whether it is the directory that was recorded, or the one
// that an undo made in its place.
func (x *Index) SameFolder(now, want Folder) bool {
	if want.same(now) {
		return true
	}
	return x.instead(now, want)
}

// instead reports a directory that an undo made in the place of the other.
func (x *Index) instead(now, want Folder) bool {
	now.Dev, want.Dev = 0, 0
	_, remade := x.remade[now]
	return remade && now.Ino != 0 && x.folder(now) == x.folder(want)
}

// Remade notes that an undo made a directory anew.
func (x *Index) Remade(now, was pathguard.Facts) {
	if now.Kind() == pathguard.KindDir && was.Kind() == pathguard.KindDir {
		x.remade[folderIn(now)] = folderIn(was)
	}
}

// folderIn is which directory the facts are of, without its device.
func folderIn(f pathguard.Facts) Folder { return Folder{Ino: f.Ino, Born: f.Born} }

func (x *Index) folder(f Folder) Folder {
	for range len(x.remade) + 1 {
		next, ok := x.remade[f]
		if !ok || next == f {
			return f
		}
		f = next
	}
	return f
}

// The reasons why a step's place is not the one that it was made in, or nobody
// can tell.
const (
	RuleLeads  = "the path of its root leads elsewhere now"
	RuleRoot   = "another folder stands where its root was"
	RuleFolder = "the folder that it was in is another one now"
	RuleUnread = "it can't be looked at"
	RuleUntold = "the journal doesn't say which folder its other root was"
)

// Astray says why what the name of a place's root leads to is not the root that
// the step was made beneath, "" if it is.
func (s *Step) Astray(p Place, top pathguard.Name) string {
	was, other := s.Top, p.Root != s.Root || p.Path != s.Path
	if other {
		was = s.ToTop
	}
	switch {
	case top.Root().Resolved() != p.Path:
		return RuleLeads
	case other && was == (Folder{}): // it is older than that field
		return RuleUntold
	case !was.same(FolderOf(top)):
		return RuleRoot
	}
	return ""
}

// usualUmask is taken for the process's where that can't be told.
const usualUmask = 0o022

// resolve is the name of one of the step's places, judged by nobody: it is only
// looked at, and changed only where the journal says that we were.
func (s *Step) resolve(open OpenRoot, p Place) (pathguard.Name, bool) {
	n, ok := open(p.Root, p.Path, s.Mounts)
	if !ok || n.Root().Missing() {
		return n, false
	}
	for entry := range strings.SplitSeq(p.Rel, "/") {
		var err error
		if n, err = n.Join(entry); err != nil {
			return n, false
		}
	}
	return n, true
}

// FactsOf are what a name leads to now, zero for nothing. What can't be looked at
// is an error.
func FactsOf(n pathguard.Name) (f pathguard.Facts, err error) {
	info, err := n.Lstat()
	if err == nil {
		return info.Fingerprint.Facts(), nil
	}
	if fault.CodeOf(err) == fault.PathSymlink { // or a name that is only spelled alike
		var t *pathguard.Target
		if t, err = n.PinEntry(); err == nil {
			defer t.Close()
			if t.Exists() {
				f = t.Fingerprint().Facts()
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return f, err
}
