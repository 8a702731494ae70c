// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"io"
	"io/fs"
	"os"

	"github.com/postern-gate/postern/core/fault"
)

// Store is where displaced entries are kept; there is none on Windows yet.
type Store struct{}

// OldSuffix ends the name of an entry that is on its way to the name without it.
const OldSuffix = ".old"

var errNoStore = error(&fault.Error{Code: fault.IOFailed, Rule: "nothing can be undone on Windows yet"})

// OpenStore fails here.
func OpenStore(string) (*Store, error) { return nil, errNoStore }

// Close does nothing here.
func (s *Store) Close() {}

// Gone is false here.
func (s *Store) Gone() bool { return false }

// Near is false here.
func (s *Store) Near(*Target) bool { return false }

// Facts are of nothing here.
func (s *Store) Facts(string) Facts { return Facts{} }

// Ours is true here.
func (t *Target) Ours() bool { return true }

// Adopt fails here.
func (t *Target) Adopt(*Store, string, Facts) (Written, error) { return Written{}, errNoStore }

// Exchange fails here.
func (t *Target) Exchange(*Store, string, Facts) (Written, error) { return Written{}, errNoStore }

// Truncate fails here.
func (t *Target) Truncate(int64, int64, WriteOptions) (Written, error) { return Written{}, errNoStore }

// Source fails here.
func (t *Target) Source() (*File, error) { return nil, errNoStore }

// Like fails here.
func (f *File) Like() (Like, error) { return Like{}, errNoStore }

// CopyTo fails here.
func (f *File) CopyTo(*os.File) error { return errNoStore }

// Staged is a change that begins with its Commit here.
type Staged struct {
	t       *Target
	o       WriteOptions
	content io.Reader
	mode    fs.FileMode
	fresh   bool
}

// StageReplace begins a Replace.
func (t *Target) StageReplace(content io.Reader, o WriteOptions) (*Staged, error) {
	return &Staged{t: t, o: o, content: content}, t.CanReplace()
}

// StageCreate begins a Create.
func (t *Target) StageCreate(content io.Reader, mode fs.FileMode, o WriteOptions) (*Staged, error) {
	return &Staged{t, o, content, mode, true}, t.CanCreate()
}

// Temp is nothing here.
func (s *Staged) Temp() (base string, id ID) { return "", ID{} }

// Filled is nothing here.
func (s *Staged) Filled() Facts { return Facts{} }

// Fill does nothing here.
func (s *Staged) Fill() error { return nil }

// Keeping sets what becomes of what is displaced.
func (s *Staged) Keeping(o WriteOptions) { s.o.Keep = o.Keep }

// Commit is the whole change.
func (s *Staged) Commit() (Written, error) {
	if s.fresh {
		return s.t.Create(s.content, s.mode)
	}
	return s.t.Replace(s.content, s.o)
}

// Discard does nothing here.
func (s *Staged) Discard() {}
