// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"io/fs"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
)

// plan decides how what a step displaces is kept. What an undo takes away is
// moved whatever its size, so that it is never the end of it.
func (l *Log) plan(store *pathguard.Store, s *Planned, undoes bool) string {
	if s.Do == Truncate {
		if s.Tail < 0 || s.Tail > s.displaced().Size {
			return "it is shorter than what would be taken from its end"
		}
		s.How, s.Size = Copied, s.Tail
		return l.perFile(s.Size)
	}
	if s.Bring != "" || s.Do != Replace && s.Do != Remove {
		return ""
	}
	return l.planDisplaced(s, store.Near(s.Target), undoes)
}

// displaced is what the step takes the place of.
func (s *Planned) displaced() pathguard.Info {
	info := s.Target.Info()
	if s.Then == nil {
		return info
	}
	if s.Then.Ino != info.Fingerprint.Facts().Ino {
		info.Nlink = 1 // what an undo brings has one name
	}
	info.Kind, info.Size = s.Then.Kind(), s.Then.Size
	return info
}

func (l *Log) planDisplaced(s *Planned, near, undoes bool) string {
	info := s.displaced()
	switch {
	case info.Kind == pathguard.KindDir && s.Entries <= 1 && !near:
		return planEmpty(s.Target, undoes)
	case info.Kind == pathguard.KindDir:
		return l.planDir(s, near, undoes)
	case info.Kind != pathguard.KindFile && !near:
		return "only files are kept when the state directory is on another file system"
	}
	s.Size, s.How = info.Size, Moved
	if !near || info.Nlink > 1 && info.Kind == pathguard.KindFile { // another name could change it
		s.How = Copied
	}
	if undoes && s.How == Moved {
		return ""
	}
	return l.perFile(s.Size)
}

func (l *Log) planDir(s *Planned, near, undoes bool) string {
	switch {
	case !near:
		return "a directory that holds something is not kept when the state directory is on another file system"
	case l.overlay:
		return "a directory can't be moved away on an overlay file system"
	case !undoes && s.Linked:
		return "a file in it has another name, which could change what is kept of it"
	case !undoes && l.o.MaxEntries > 0 && s.Entries > int64(l.o.MaxEntries):
		return "it holds more entries than undo.max_entries (" + strconv.Itoa(l.o.MaxEntries) + ")"
	}
	if s.How, s.Size = Moved, s.Bytes; undoes {
		return ""
	}
	return l.perFile(s.Largest)
}

func (l *Log) perFile(n int64) string {
	if n <= l.o.PerFile {
		return ""
	}
	return "a file of " + size(n) + " is larger than undo.per_file (" + size(l.o.PerFile) + ")"
}

// size draws bytes the way a policy writes them.
func size(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if by := int64(1) << (30 - 10*i); n >= by {
			return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(by), 'f', 1, 64), ".0") + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// planEmpty is for an empty directory that is made anew: as ours, under the umask,
// and without a special bit. What an undo takes away was made so too, but somebody
// may have given it away.
func planEmpty(t *pathguard.Target, undoes bool) string {
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	switch mode := t.Info().Mode; {
	case !t.Ours():
		return "a directory of another owner or group is not kept when the state directory is on another file system"
	case !undoes && (mode&special != 0 || mode.Perm()&umask() != 0):
		return "a directory of this mode is not kept when the state directory is on another file system"
	}
	return ""
}
