// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
)

// Do is what a step does to its place.
type Do string

// The kinds of steps. What takes one back is a step of another kind.
const (
	Replace  Do = "replace"
	Create   Do = "create"
	Append   Do = "append"
	Truncate Do = "truncate"
	Mkdir    Do = "mkdir"
	Rename   Do = "rename"
	Remove   Do = "remove"
)

// How what a step displaces is kept.
type How string

// The ways. A step that displaces nothing has none.
const (
	Moved     How = "moved"     // the inode itself, out of the tree
	Copied    How = "copied"    // its content and attributes, before the change
	Exchanged How = "exchanged" // the image's place is taken by what it displaces
	Adopted   How = "adopted"   // the image comes back to a name that is free
)

// Place is a name beneath a root. Path is where the root lies, "" in a journal
// that doesn't say.
type Place struct {
	Root string `json:"root"`
	Path string `json:"path"`
	Rel  string `json:"rel"`
}

// String is the canonical name.
func (p Place) String() string { return p.Root + "://" + p.Rel }

// Near reports whether the root contains the path, or lies beneath it. What
// doesn't say where its root lies is near nothing.
func (p Place) Near(path string) bool {
	return p.Path != "" && (above(p.Path, path) || above(path, p.Path))
}

// Step is one change of one name.
type Step struct {
	N int `json:"n"`
	Place
	Do    Do     `json:"do"`
	To    *Place `json:"to,omitempty"`    // of a rename
	Top   Folder `json:"top,omitzero"`    // which directory the root is
	ToTop Folder `json:"to_top,omitzero"` // and the root of To, where that is another one
	Up    Folder `json:"up,omitzero"`     // and the one that the name is in, zero for one that is made with it
	// Mounts are those mount points which its roots may enter that the names are
	// beneath.
	Mounts []string        `json:"mounts,omitempty"`
	Was    pathguard.Facts `json:"was"`             // what is there before, zero for nothing
	How    How             `json:"how,omitempty"`   // what is displaced is kept
	Image  string          `json:"image,omitempty"` // under this name
	Held   pathguard.Facts `json:"held,omitzero"`   // what the image was before an exchange
	Like   *pathguard.Like `json:"like,omitempty"`  // beside the content of a copy
	Size   int64           `json:"size,omitempty"`  // bytes that the image counts for
	Added  int64           `json:"added,omitempty"` // bytes that an append adds, or a truncate takes
	Temp   string          `json:"temp,omitempty"`  // the unfinished file beside it
	File   uint64          `json:"file,omitempty"`  // inode of that
	Of     *Ref            `json:"of,omitempty"`    // the step that this one takes back
	Stood  []byte          `json:"stood,omitempty"` // of a rename: the folders beneath, see Stand
}

// Places are those of its names.
func (s *Step) Places() []Place {
	if s.To == nil {
		return []Place{s.Place}
	}
	return []Place{s.Place, *s.To}
}

// Enter notes which mount points, those that its root may enter, a place of the
// step is beneath.
func (s *Step) Enter(p Place, mounts []string) {
	for _, m := range mounts {
		if above(m, p.Rel) && !slices.Contains(s.Mounts, m) {
			s.Mounts = append(s.Mounts, m)
		}
	}
}

// Ref names a step.
type Ref struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// Done is what became of a step.
type Done struct {
	N     int             `json:"n"`
	Now   pathguard.Facts `json:"now"`            // of what is there after
	Image pathguard.Facts `json:"image,omitzero"` // as kept
}

// State is how a group of steps ended.
type State string

// The states. A group whose end is not written is prepared.
const (
	Prepared  State = "prepared"
	Committed State = "committed"
	Aborted   State = "aborted"
	Attention State = "attention" // nobody can tell; a person looks
)

// Facts are short for those of a file.
type Facts = pathguard.Facts

// line is one line of a journal.
type line struct {
	Kind    string    `json:"k"` // begin, file, done, end
	ID      string    `json:"id"`
	Time    time.Time `json:"t,omitzero"`
	Agent   string    `json:"agent,omitempty"`
	Session string    `json:"session,omitempty"`
	Source  string    `json:"source,omitempty"`
	Op      string    `json:"op,omitempty"`
	Undoes  bool      `json:"undoes,omitempty"` // it takes back another change
	Lost    string    `json:"lost,omitempty"`   // why it can't be undone
	Steps   []Step    `json:"steps,omitempty"`
	Done    []Done    `json:"done,omitempty"`
	N       int       `json:"n,omitempty"`     // of a file: the step
	File    uint64    `json:"file,omitempty"`  // that will be its inode
	Filled  Facts     `json:"filled,omitzero"` // and all of it, once it is filled
	First   int       `json:"first,omitempty"` // of an end: its group's first step
	State   State     `json:"state,omitempty"`
	Why     string    `json:"why,omitempty"`
	Corr    string    `json:"corr,omitempty"` // what the records of it share, where that isn't the id
}

// A line of a journal is a checksum of eight hex digits, a blank, and a JSON
// object. A line that a crash cut short, or a disk changed, is known by it.
const sumLen = 9

// castagnoli is the polynomial that processors know.
const castagnoli = crc32.Castagnoli

func appendLine(b []byte, l line) []byte {
	text, _ := json.Marshal(l) // strings and numbers never fail
	b = fmt.Appendf(b, "%08x ", crc32.Checksum(text, crc32.MakeTable(castagnoli)))
	return append(append(b, text...), '\n')
}

// parseLine returns false for anything that was not written whole.
func parseLine(b []byte) (l line, ok bool) {
	if len(b) < sumLen || b[sumLen-1] != ' ' {
		return l, false
	}
	text := b[sumLen:]
	if want := fmt.Appendf(nil, "%08x ", crc32.Checksum(text, crc32.MakeTable(castagnoli))); !bytes.Equal(want, b[:sumLen]) {
		return l, false
	}
	if json.Unmarshal(text, &l) != nil || !l.valid() {
		return line{}, false
	}
	return l, true
}

// valid refuses what no journal of ours holds. Ids and operations reach a
// terminal as they are.
func (l *line) valid() bool {
	if l.ID == "" || !word(l.ID) || !word(l.Corr) || !word(l.Op) || l.Filled.Size < 0 {
		return false
	}
	for i := range l.Steps {
		if !l.Steps[i].valid() {
			return false
		}
	}
	return !slices.ContainsFunc(l.Done, func(d Done) bool { return d.Now.Size < 0 || d.Image.Size < 0 })
}

// maxWord is longer than any id or operation.
const maxWord = 128

func word(s string) bool {
	return len(s) <= maxWord && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
	})
}

// valid refuses what no journal of ours holds, and names that would leave the
// directory of the images.
func (s *Step) valid() bool {
	switch s.Do {
	case Replace, Create, Append, Truncate, Mkdir, Rename, Remove:
	default:
		return false
	}
	return s.N >= 0 && s.Root != "" && s.Rel != "" && (s.Do == Rename) == (s.To != nil) &&
		s.validMounts() && plain(s.Image) && plain(s.Temp) && (s.Of == nil || word(s.Of.ID)) &&
		s.Size >= 0 && s.Added >= 0 && s.Was.Size >= 0 && s.Held.Size >= 0
}

// validMounts refuses what is no mount point on the way to one of the names, and
// more than there can be.
func (s *Step) validMounts() bool {
	for i, m := range s.Mounts {
		within := func(p Place) bool { return above(m, p.Rel) }
		if m == "" || !core.Canonical(m) || !slices.ContainsFunc(s.Places(), within) || slices.Contains(s.Mounts[:i], m) {
			return false
		}
	}
	return true
}

// may is false for a file that such a step can't leave.
func (s *Step) may(now pathguard.Facts) bool {
	switch s.Do {
	case Append:
		return now.Size >= s.Was.Size
	case Truncate:
		return now.Size <= s.Was.Size
	case Replace, Create, Mkdir, Rename, Remove:
	}
	return true
}

func plain(name string) bool {
	return name != "." && name != ".." && !bytes.ContainsAny([]byte(name), "/\x00")
}
