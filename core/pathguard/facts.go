// SPDX-License-Identifier: Apache-2.0

package pathguard

// Facts are what a fingerprint is made of, for a record that outlives the
// process. Times are nanoseconds since 1970, Mode is as POSIX has it. The zero
// value stands for absence.
// Born is the time of birth of a directory, zero where the file system keeps
// none: an inode is used again at once after its directory is gone.
type Facts struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime"`
	CTime int64  `json:"ctime"`
	Mode  uint32 `json:"mode"`
	Born  int64  `json:"born,omitempty"`
}

// Facts returns the parts.
func (f Fingerprint) Facts() Facts {
	return Facts{f.dev, f.ino, f.size, f.mtime, f.ctime, f.mode, f.born}
}

// Moved reports whether now may be the same state of the same entry after it
// was only moved: a rename changes the time of change, and of a directory what
// it holds may be another by now.
func (f Facts) Moved(now Facts) bool {
	if f.Mode>>typeShift != now.Mode>>typeShift || f.Ino != now.Ino || f == (Facts{}) {
		return false
	}
	if f.Mode>>typeShift == modeDir>>typeShift {
		return f.Born == now.Born || f.Born == 0 || now.Born == 0
	}
	return f.Size == now.Size && f.MTime == now.MTime && f.Mode == now.Mode
}

// Kind is what the facts are of.
func (f Facts) Kind() Kind {
	if f == (Facts{}) {
		return KindUnknown
	}
	return kinds[f.Mode>>typeShift&15].kind
}
