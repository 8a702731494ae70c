// SPDX-License-Identifier: Apache-2.0

package pathguard

// File is a regular file, open for reading under the name that was judged.
// Only Name.Open makes one. Close it; nothing else does. Its methods may be
// called at the same time, but none during or after Close.
type File struct {
	fd   fileHandle
	name Name
	st   stat
}

// Name returns the canonical name it was opened with.
func (f *File) Name() Name { return f.name }

// Info returns the facts as of the opening.
func (f *File) Info() Info { return f.st.info() }

// Fingerprint returns the fingerprint as of the opening.
func (f *File) Fingerprint() Fingerprint { return f.st.fingerprint() }

// Size returns the length in bytes as of the opening.
func (f *File) Size() int64 { return f.st.size }
