// SPDX-License-Identifier: Apache-2.0

package pathguard

import "unicode/utf8"

// Entry is one line of a directory.
type Entry struct {
	Name string // the raw bytes
	Kind Kind   // the entry's own; unknown only if it went away meanwhile
	// Reachable is false for a name that is not UTF-8: it is shown escaped
	// and no spelling of it opens anything.
	Reachable bool
}

func newEntry(name string, kind Kind) Entry {
	return Entry{Name: name, Kind: kind, Reachable: utf8.ValidString(name)}
}
