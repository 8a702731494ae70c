// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

// ID tells one entry from another while either exists.
type ID struct{ Dev, Ino uint64 }

// IDs identifies the pinned directory and the entry, for locks; the entry's is
// zero for absence.
func (t *Target) IDs() (dir, entry ID) {
	dir = ID{t.dirStat.dev, t.dirStat.ino}
	if t.exists {
		entry = ID{t.st.dev, t.st.ino}
	}
	return dir, entry
}

// Writable returns the refusal that Replace and Append would begin with, and
// changes nothing: a preview of a write ends here.
func (t *Target) Writable() error { return t.replaceable() }
