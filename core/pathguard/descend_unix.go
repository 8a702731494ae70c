// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// found is the target or one of its descendants, in an order where a directory
// comes before what is beneath it.
type found struct {
	name Name
	st   stat
}

// Descendants calls judge with every entry beneath a pinned directory, a
// directory before what is in it, links as themselves. It ends at judge's
// first error, and with limit.exceeded above max entries. A mount point, and a
// name that no policy could judge because it is not UTF-8, are refused.
func (t *Target) Descendants(ctx context.Context, max int, judge func(Name, Info) error) error {
	if !t.exists || t.st.kind() != KindDir {
		return nil
	}
	return t.walkDown(ctx, max, func(_ int, _ *stat, f found) error { return judge(f.name, f.st.info()) })
}

func (t *Target) walkDown(ctx context.Context, max int, visit func(dir int, up *stat, f found) error) error {
	count := 0
	todo := []found{{t.name, t.st}}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		err := dir.each(ctx, func(fd int, f found) error {
			if count++; count > max {
				return t.name.fault(fault.LimitExceeded, "the directory holds more entries than one call may judge", nil)
			}
			if f.st.kind() == KindDir {
				todo = append(todo, f)
			}
			return visit(fd, &dir.st, f)
		})
		if err != nil {
			return dir.name.failure(err)
		}
	}
	return nil
}

// each opens a directory by its name, if it is still the one that was seen,
// and looks at each of its entries.
func (f *found) each(ctx context.Context, visit func(dir int, f found) error) error {
	dir, st, err := f.name.open(oPath | unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if st.ident != f.st.ident {
		return f.name.stale(ruleGone)
	}
	var failed error
	err = eachEntry(dir, func(e Entry) bool {
		if failed = ctx.Err(); failed != nil {
			failed = f.name.fault(fault.Cancelled, "", failed)
			return false
		}
		var entry found
		if entry, failed = f.entry(dir, e.Name); failed == nil {
			failed = visit(dir, entry)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

func (f *found) entry(dir int, base string) (found, error) {
	name, err := f.name.Join(base)
	if err != nil {
		return found{}, err
	}
	if err := name.guarded(); err != nil {
		return found{}, err
	}
	st, err := statAt(dir, base)
	switch {
	case err != nil:
		return found{}, name.failure(err)
	case !(mount{f.st.mnt, f.st.dev}).holds(&st):
		return found{}, name.fault(fault.PathMount, "", nil)
	}
	return found{name, st}, name.known(st.ident)
}

// remove removes an entry if it is still the one that was judged. A directory
// has other times by now, since what was in it is gone; so has a file whose
// other name is, but then it has a name less.
func (f *found) remove(exactly bool) error {
	up, _ := f.name.Parent()
	dir, err := up.openParent()
	if err != nil {
		return f.name.stale(ruleFolder)
	}
	defer unix.Close(dir)
	flags := 0
	if f.st.kind() == KindDir {
		flags = unix.AT_REMOVEDIR
	}
	st, err := statAt(dir, f.name.Base())
	switch {
	case err != nil:
		return err
	case st.ident != f.st.ident, flags == 0 && (!f.st.sameBut(&st) || exactly && st.nlink == f.st.nlink && st.ctime != f.st.ctime):
		return f.name.stale(ruleGone)
	}
	return unlink(dir, f.name.Base(), flags)
}
