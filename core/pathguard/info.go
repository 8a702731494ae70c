// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"io/fs"
	"time"
)

// Kind is what an entry is. A link is a kind of its own: nothing here ever
// reports the kind of what a link leads to.
type Kind uint8

// The kinds. The zero value is unknown and is never opened.
const (
	KindUnknown Kind = iota
	KindFile
	KindDir
	KindLink
	KindFIFO
	KindSocket
	KindDevice
)

var kindNames = [...]string{"unknown", "file", "dir", "link", "fifo", "socket", "device"}

// String returns file, dir, link, fifo, socket, device or unknown.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return kindNames[KindUnknown]
	}
	return kindNames[k]
}

// Special reports whether it is neither a file, a directory nor a link: such
// an entry is listed, moved and deleted, but never opened or written.
func (k Kind) Special() bool { return k != KindFile && k != KindDir && k != KindLink }

// Info is what is known of an entry, taken by handle and never through a link.
type Info struct {
	Kind Kind
	Size int64       // bytes; of a link the length of its target's name
	Mode fs.FileMode // type, permission, setuid, setgid and sticky bits
	// BirthTime is zero where the file system keeps none.
	ModTime, AccessTime, BirthTime time.Time
	// Nlink is the number of names. A regular file with more than one may be
	// known elsewhere under a name outside every root.
	Nlink       uint64
	Fingerprint Fingerprint
}

// ident is what tells one file from another while either is held open.
type ident struct{ dev, ino uint64 }

// stat is the raw form; times are nanoseconds since 1970, 0 for none.
type stat struct {
	ident
	mnt                        uint64 // id of the mount, 0 where unknown
	size                       int64
	mode                       uint32 // as POSIX has it
	nlink, uid, gid            uint32
	atime, mtime, ctime, btime int64
	frozen                     bool // immutable or append-only, whatever the mode says
}

// The POSIX file type bits and the others that Go spells differently.
const (
	typeShift   = 12
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeLink    = 0o120000
	modeFIFO    = 0o010000
	modeSocket  = 0o140000
	modeChar    = 0o020000
	modeBlock   = 0o060000
	modeSetuid  = 0o4000
	modeSetgid  = 0o2000
	modeSticky  = 0o1000
	modeBits    = 0o7777
)

// kinds is what the four bits of a POSIX file type mean; a directory lists the
// same bits.
var kinds = [16]struct {
	kind Kind
	mode fs.FileMode
}{
	modeFIFO >> typeShift:    {KindFIFO, fs.ModeNamedPipe},
	modeChar >> typeShift:    {KindDevice, fs.ModeDevice | fs.ModeCharDevice},
	modeDir >> typeShift:     {KindDir, fs.ModeDir},
	modeBlock >> typeShift:   {KindDevice, fs.ModeDevice},
	modeRegular >> typeShift: {KindFile, 0},
	modeLink >> typeShift:    {KindLink, fs.ModeSymlink},
	modeSocket >> typeShift:  {KindSocket, fs.ModeSocket},
}

func (s *stat) kind() Kind { return kinds[s.mode>>typeShift&15].kind }

func (s *stat) goMode() fs.FileMode {
	m := fs.FileMode(s.mode&0o777) | kinds[s.mode>>typeShift&15].mode
	for i, bit := range [...]fs.FileMode{fs.ModeSticky, fs.ModeSetgid, fs.ModeSetuid} {
		if s.mode&(modeSticky<<i) != 0 {
			m |= bit
		}
	}
	return m
}

func (s *stat) info() Info {
	return Info{
		Kind: s.kind(), Size: s.size, Mode: s.goMode(), Nlink: uint64(s.nlink),
		ModTime: instant(s.mtime), AccessTime: instant(s.atime),
		BirthTime: instant(s.btime), Fingerprint: s.fingerprint(),
	}
}

func (s *stat) fingerprint() Fingerprint {
	f := Fingerprint{
		version: fingerprintVersion, dev: s.dev, ino: s.ino, size: s.size,
		mtime: s.mtime, ctime: s.ctime, mode: s.mode,
	}
	if s.kind() == KindDir {
		f.born = s.btime
	}
	return f
}

// sameBut reports whether now is still what was judged, after a rename of ours:
// a rename changes ctime, so that one is left out.
func (s *stat) sameBut(now *stat) bool {
	return s.ident == now.ident && s.size == now.size && s.mtime == now.mtime && s.mode == now.mode
}

func instant(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
