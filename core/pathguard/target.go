// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// ErrMayHaveApplied is in the chain of an error after which the effect may be
// there, in whole or in part: read again what was to be changed.
var ErrMayHaveApplied = errors.New("the change may have been applied")

// WriteOptions go with a change. The zero value keeps nothing.
type WriteOptions struct {
	// Keep is given the displaced file, open for reading, before it is gone
	// for good. Its error takes the change back.
	Keep func(*File) error
	// Into is where the displaced entry is moved to, under the name As, which
	// is free, instead of being removed; a directory with all that it holds.
	// Where that fails the change is taken back. Not on Windows. As without Into
	// is the name, of TempName, beside the file that is removed that it has until
	// it is gone.
	Into *Store
	As   string
	// Like is what the new file is given instead of what the old one has.
	Like *Like
	// Exactly, if set, is given all that a removal found beneath a directory,
	// once it was judged and before anything is removed; its error ends the
	// call. Then only what is still as it was found goes.
	Exactly func(iter.Seq2[Name, Info]) error
}

// Like is what a file has beside its content.
type Like struct {
	Mode     uint32 // permission, setuid, setgid and sticky bits, as POSIX has them
	UID, GID uint32
	MTime    int64             // nanoseconds since 1970
	Attrs    map[string][]byte // user.* and the access list
}

func (o WriteOptions) keep(f *File) error {
	if o.Keep == nil {
		return nil
	}
	return o.Keep(f)
}

// Written is what became of a change.
type Written struct {
	Info Info // of the file as it is now
	// CAS says that what was displaced was compared with what was judged in
	// one step. False: the file system has no exchange, and a change in the
	// moment between would have been lost.
	CAS bool
	// Warnings name what differs from before and is not ours to keep.
	Warnings []string
}

// Target is one entry of a directory, pinned for one change: the directory by
// handle, the entry by what it was when it was judged, or its absence. Each
// change refuses when that is no longer so. It is good for one change; Close it
// in any case. It is not for use by several goroutines at once.
type Target struct {
	name, parent Name
	base         string
	dir          dirHandle
	dirStat, st  stat
	exists       bool
}

// pinnable returns the directory of a name that may be changed.
func (n Name) pinnable() (parent Name, err error) {
	if n.loose {
		return parent, n.fault(fault.PathEscape, "", nil)
	}
	if err := n.guarded(); err != nil {
		return parent, err
	}
	parent, ok := n.Parent()
	if !ok {
		return parent, n.fault(fault.PolicyDenied, ruleRoot, nil)
	}
	return parent, nil
}

// Name returns the canonical name that was judged.
func (t *Target) Name() Name { return t.name }

// Exists reports whether the entry was there when it was pinned.
func (t *Target) Exists() bool { return t.exists }

// Info returns the facts as of the pinning; the zero Info for absence.
func (t *Target) Info() Info {
	if !t.exists {
		return Info{}
	}
	return t.st.info()
}

// Fingerprint returns that of the entry as pinned; zero for absence.
func (t *Target) Fingerprint() Fingerprint { return t.Info().Fingerprint }

// ID tells one entry from another while either exists.
type ID struct{ Dev, Ino uint64 }

// IDs identifies the pinned directory and the entry, for locks; the entry's is
// zero for absence.
func (t *Target) IDs() (dir, entry ID) {
	return ID{t.dirStat.dev, t.dirStat.ino}, ID{t.st.dev, t.st.ino}
}

// CanReplace returns the refusal that Replace begins with, and changes nothing:
// the preview of a call ends here. So do the others for what they are named
// after. What nobody can know before is left: a full disk, another program.
func (t *Target) CanReplace() error {
	if err := t.writable(); err != nil {
		return err
	}
	return t.mayReplace()
}

// CanAppend is the preview of Append. A file with other names is refused: they
// would change too, and may lie outside.
func (t *Target) CanAppend() error {
	if err := t.writable(); err != nil {
		return err
	}
	if t.st.nlink > 1 {
		return t.name.fault(fault.PathDenied, "the file has more than one name, and appending would change the others", nil)
	}
	return nil
}

func (t *Target) writable() error {
	switch {
	case !t.exists:
		return t.name.fault(fault.PathMissing, ruleAbsent, nil)
	case t.st.kind() != KindFile:
		return t.name.fault(fault.IOFailed, "it is not a file", nil)
	}
	if err := t.name.fits(KindFile); err != nil {
		return err
	}
	if err := t.ready(); err != nil {
		return err
	}
	return t.mayWrite()
}

// CanCreate is the preview of Create.
func (t *Target) CanCreate() error {
	if err := t.name.fits(KindFile); err != nil {
		return err
	}
	return t.CanMkdir()
}

// CanMkdir is the preview of Mkdir.
func (t *Target) CanMkdir() error {
	if t.exists {
		return t.name.stale(ruleThere)
	}
	if err := t.ready(); err != nil {
		return err
	}
	return t.mayTurn()
}

// CanRemove is the preview of Remove.
func (t *Target) CanRemove() error {
	if !t.exists {
		return t.name.fault(fault.PathMissing, ruleAbsent, nil)
	}
	if err := t.name.fits(t.st.kind()); err != nil {
		return err
	}
	if err := t.name.movable(t.st.ident); err != nil {
		return err
	}
	if err := t.ready(); err != nil {
		return err
	}
	return t.mayTurn()
}

// CanRename is the preview of Rename.
func CanRename(src, dst *Target) error {
	if src.name.root == dst.name.root && strings.HasPrefix(dst.name.rel, src.name.rel+"/") {
		return dst.name.fault(fault.RequestInvalid, "a directory can't be moved into itself", nil)
	}
	if err := src.CanRemove(); err != nil {
		return err
	}
	if err := dst.name.fits(src.st.kind()); err != nil {
		return err
	}
	if err := dst.CanMkdir(); err != nil {
		return err
	}
	return mayMove(src, dst)
}

// MaxEntries bounds what one call on a directory judges, and so what it moves
// or removes.
const MaxEntries = 10_000

const (
	// A rename that another program holds up is tried this often, this far
	// apart: long enough for a scanner or an editor, short enough for a call.
	heldTries = 10
	heldPause = 20 * time.Millisecond
)

// tempPrefix starts the name of every file of ours that is not yet, or no
// longer, what its final name says.
const tempPrefix = ".postern-tmp-"

// TempName is a new name for something that is on its way.
func TempName() string { return tempName() }

func tempName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails, by its documentation
	return tempPrefix + hex.EncodeToString(b[:])
}

const (
	ruleGone     = "it is not what it was when the call was judged"
	ruleThere    = "something has this name already"
	ruleReadOnly = "the file is read-only; a person changes its mode first"
	ruleNotOurs  = "the file is not writable for this user"
	ruleOwner    = "this process can't keep the file's owner or group, so nothing was changed"
	ruleApart    = "the two names are on different file systems: copy it and delete the first"
	ruleFolder   = "the folder was moved or replaced meanwhile"
	ruleAbsent   = "there is nothing with this name"
	ruleKept     = "what it displaces can't be moved to where it would be kept"
)

// stale is a change by somebody else between the judgement and the effect.
func (n Name) stale(rule string) *fault.Error { return n.fault(fault.PreconditionFailed, rule, nil) }

// halfway marks an error after which the effect may be there.
func (n Name) halfway(cause error, rule string) *fault.Error {
	return n.fault(fault.IOFailed, rule+"; the change may have been applied: read it again", errors.Join(ErrMayHaveApplied, cause))
}
