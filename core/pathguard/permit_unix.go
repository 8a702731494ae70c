// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"slices"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// What the system would say, asked without an effect. Each change begins with
// what its preview asks, so that the two can't differ.

// mayWrite honours the read-only bit although a rename could go around it. The
// content is read back, so it must be readable too.
func (t *Target) mayWrite() error {
	if t.st.mode&0o222 == 0 || t.st.frozen {
		return t.name.fault(fault.IOFailed, ruleReadOnly, unix.EACCES)
	}
	err := may(t.dir, t.base, unix.W_OK)
	switch err {
	case unix.EACCES, unix.EPERM:
		return t.name.fault(fault.IOFailed, ruleNotOurs, err)
	case nil:
		err = may(t.dir, t.base, unix.R_OK)
	}
	return t.refused(err)
}

// mayReplace: another file takes the place of the old one, and its owner. A new
// file belongs to the effective user and group, or to the directory's group.
func (t *Target) mayReplace() error {
	if err := t.mayTurn(); err != nil || capable(capChown) {
		return err
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return t.name.failure(err)
	}
	groups = append(groups, unix.Getegid(), int(t.newGroup()))
	if t.st.uid != uint32(unix.Geteuid()) || !slices.Contains(groups, int(t.st.gid)) {
		return t.name.fault(fault.IOFailed, ruleOwner, unix.EPERM)
	}
	return nil
}

// newGroup is the group of what this process makes in the directory.
func (t *Target) newGroup() uint32 {
	if t.dirStat.mode&groupFromDir != 0 {
		return t.dirStat.gid
	}
	return uint32(unix.Getegid())
}

// Ours reports whether the entry has the owner and the group that this process
// would give another one in its place.
func (t *Target) Ours() bool { return t.st.uid == uint32(unix.Geteuid()) && t.st.gid == t.newGroup() }

// mayTurn: the directory lets its entry come or go.
func (t *Target) mayTurn() error { return t.refused(t.mayRename()) }

// mayRename is the error of a directory that doesn't let this process rename
// its entry; without one a refusal has another cause.
func (t *Target) mayRename() error {
	if !t.exists {
		return mayChange(t.dir, &t.dirStat, nil)
	}
	return mayChange(t.dir, &t.dirStat, &t.st)
}

// mayChange is the error of a directory that doesn't let this process add or
// remove entries, or this one. In a sticky directory only the owner of one of
// the two may.
func mayChange(dir int, up, entry *stat) error {
	if err := may(dir, ".", unix.W_OK|unix.X_OK); err != nil {
		return err
	}
	uid := uint32(unix.Geteuid())
	switch {
	case up.frozen || entry != nil && entry.frozen:
		return unix.EPERM
	case entry == nil, up.mode&modeSticky == 0, uid == up.uid, uid == entry.uid, capable(capFowner):
		return nil
	}
	return unix.EACCES
}

// mayMove: within one mount; and a directory that goes elsewhere gets another
// "..", which is a change of its own.
func mayMove(src, dst *Target) error {
	if !(mount{src.dirStat.mnt, src.dirStat.dev}).holds(&dst.dirStat) {
		return dst.name.fault(fault.IOFailed, ruleApart, unix.EXDEV)
	}
	if src.st.kind() != KindDir || src.dirStat.ident == dst.dirStat.ident {
		return nil
	}
	return src.refused(may(src.dir, src.base, unix.W_OK))
}

func (t *Target) refused(err error) error {
	if err == nil {
		return nil
	}
	return t.name.failure(err)
}
