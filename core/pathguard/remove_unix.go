// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// Remove deletes a file, a link (never its target), a special file or an empty
// directory. A file is first moved aside and compared with what was judged, so
// that nothing else is deleted; Keep is given it before it is gone.
func (t *Target) Remove(o WriteOptions) error {
	if err := t.CanRemove(); err != nil {
		return err
	}
	var err error
	switch {
	case t.st.kind() != KindDir:
		err = t.removeFile(o)
	case o.Into == nil:
		err = unlink(t.dir, t.base, unix.AT_REMOVEDIR)
	case holdsOnly(t.dir, t.base, nil, false, 0): // nothing was judged beneath it, so nothing may be there
		return t.moveDir(nil, o)
	default:
		err = unix.ENOTEMPTY
	}
	if err != nil {
		return t.name.failure(err)
	}
	return t.settled()
}

func (t *Target) removeFile(o WriteOptions) error {
	keep := func() error { return nil }
	if o.Keep != nil && t.st.kind() == KindFile {
		old, err := t.openOld(unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer old.Close()
		keep = func() error { return o.Keep(old) }
	}
	if o.Into != nil {
		return t.moveFile(keep, o)
	}
	aside := o.As
	if aside == "" {
		aside = tempName()
	}
	err := t.held(func() error { return t.name.root.seam.rename(t.dir, t.base, t.dir, aside) })
	switch {
	case err == nil:
	case lacks(err):
		return t.removeBlind(keep)
	case err == unix.ENOENT:
		return t.name.stale(ruleGone)
	default:
		return err
	}
	st, err := statAt(t.dir, aside)
	if err != nil || !t.st.sameBut(&st) {
		return t.putBack(aside, t.name.stale(ruleGone))
	}
	if err := keep(); err != nil {
		return t.putBack(aside, err)
	}
	return unlink(t.dir, aside, 0)
}

// moveFile moves the entry to where it is kept and compares it there.
func (t *Target) moveFile(keep func() error, o WriteOptions) error {
	if err := keep(); err != nil {
		return err
	}
	if err := o.Into.takes(t, t.base, o.As); err != nil {
		if err == unix.ENOENT {
			return t.name.stale(ruleGone)
		}
		return err
	}
	st, err := statAt(o.Into.fd, o.As)
	if err == nil && t.st.sameBut(&st) {
		return nil
	}
	if err := t.held(func() error { return t.moveNew(o.Into.fd, o.As, st.kind()) }); err != nil {
		return t.name.halfway(err, "what was there could not be put back and is kept with the images")
	}
	return t.name.stale(ruleGone)
}

// removeBlind removes by name, where nothing can be moved aside.
func (t *Target) removeBlind(keep func() error) error {
	if err := keep(); err != nil {
		return err
	}
	if err := t.ready(); err != nil {
		return err
	}
	return unlink(t.dir, t.base, 0)
}

func (t *Target) putBack(aside string, why error) error {
	err := t.held(func() error { return t.name.root.seam.rename(t.dir, aside, t.dir, t.base) })
	if err != nil {
		return t.name.halfway(errors.Join(why, err), "what was there could not be put back and is kept as "+aside)
	}
	return why
}

// Rename moves the entry itself, of a link the link, to an absent name; both
// targets come from PinEntry. It never replaces anything. What is moved is
// what was judged, or it is moved back. For a directory the caller judges what
// is beneath it first, see Descendants.
func Rename(src, dst *Target) error {
	if err := CanRename(src, dst); err != nil {
		return err
	}
	err := src.held(func() error { return dst.moveNew(src.dir, src.base, src.st.kind()) })
	switch err {
	case nil:
		return renamed(src, dst)
	case unix.EEXIST, unix.ENOTEMPTY:
		return dst.name.stale(ruleThere)
	case unix.ENOENT:
		return src.name.stale(ruleGone)
	case unix.EXDEV:
		return dst.name.fault(fault.IOFailed, ruleApart, err)
	}
	return src.name.failure(err)
}

// renamed proves that what moved is what was judged, or moves it back.
func renamed(src, dst *Target) error {
	st, err := statAt(dst.dir, dst.base)
	if err != nil || !src.movedAs(&st) {
		if err := src.moveNew(dst.dir, dst.base, st.kind()); err != nil {
			return src.name.halfway(err, "the entry was replaced at the same moment")
		}
		return src.name.stale(ruleGone)
	}
	for _, t := range [...]*Target{src, dst} {
		if err := t.settled(); err != nil {
			return err
		}
	}
	return nil
}

// movedAs compares what arrived with what was judged. The times of a directory
// say that nothing was added to it meanwhile; file systems that are not known
// to leave them alone in a rename are not asked.
func (t *Target) movedAs(st *stat) bool {
	if t.st.kind() == KindDir && t.name.root.traits().folds {
		return t.st.ident == st.ident
	}
	return t.st.sameBut(st)
}

// RemoveAll deletes a directory with all that is beneath it, up to MaxEntries.
// judge is asked about every descendant before anything is removed; its first
// error ends the call with nothing changed. Only what was judged is removed,
// by handle and never through a link; what appeared meanwhile stays, and the
// call then says that it got half way. Mount points are refused. Keep is not
// asked: what must be kept of the descendants, judge sees.
func (t *Target) RemoveAll(ctx context.Context, judge func(Name) error, o WriteOptions) error {
	if !t.exists || t.st.kind() != KindDir {
		return t.Remove(o)
	}
	all, err := t.collect(ctx, judge, o)
	switch {
	case err != nil:
		return err
	case o.Into != nil:
		return t.moveAll(all, o)
	}
	all = append([]found{{t.name, t.st}}, all...)
	for i := len(all) - 1; i >= 0; i-- {
		err := ctx.Err()
		if err == nil {
			err = all[i].remove(o.Exactly != nil)
		}
		switch {
		case err == nil, err == unix.ENOENT && i > 0: // somebody else removed it
		case i == len(all)-1:
			return t.name.failure(err)
		default:
			return t.name.halfway(err, "not everything was removed")
		}
	}
	return t.settled()
}

// collect judges all that is beneath a directory, and all of it as a whole.
func (t *Target) collect(ctx context.Context, judge func(Name) error, o WriteOptions) (all []found, err error) {
	err = t.removal(ctx, MaxEntries, func(f found) error {
		all = append(all, f)
		return judge(f.name)
	})
	if err != nil || o.Exactly == nil {
		return all, err
	}
	return all, o.Exactly(func(yield func(Name, Info) bool) {
		for i := range all {
			if !yield(all[i].name, all[i].st.info()) {
				return
			}
		}
	})
}

// CanRemoveAll is the preview of RemoveAll, with a bound and a judge that is
// given the facts too.
func (t *Target) CanRemoveAll(ctx context.Context, max int, judge func(Name, Info) error) error {
	return t.removal(ctx, max, func(f found) error { return judge(f.name, f.st.info()) })
}

func (t *Target) removal(ctx context.Context, max int, judge func(found) error) error {
	if err := t.CanRemove(); err != nil || t.st.kind() != KindDir {
		return err
	}
	return t.walkDown(ctx, max, func(dir int, up *stat, f found) error {
		if err := judge(f); err != nil {
			return err
		}
		return t.refused(mayChange(dir, up, &f.st)) // names no entry: it may be hidden
	})
}
