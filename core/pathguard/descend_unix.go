// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"context"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
)

// found is one descendant, in an order where a directory comes before what is
// beneath it.
type found struct {
	name Name
	rel  string // beneath the target
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
	return t.walkDown(ctx, max, func(f found) error { return judge(f.name, f.st.info()) })
}

func (t *Target) walkDown(ctx context.Context, max int, visit func(found) error) error {
	count := 0
	todo := []found{{t.name, "", t.st}}
	for len(todo) > 0 {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		fd, err := t.openFound(&dir)
		if err != nil {
			return dir.name.failure(err)
		}
		err = eachEntryOf(ctx, fd, &dir, func(f found) error {
			if count++; count > max {
				return t.name.fault(fault.LimitExceeded, "the directory holds more entries than one call may judge", nil)
			}
			if f.st.kind() == KindDir {
				todo = append(todo, f)
			}
			return visit(f)
		})
		unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// eachEntryOf lists one directory and looks at each of its entries.
func eachEntryOf(ctx context.Context, fd int, dir *found, visit func(found) error) error {
	var failed error
	err := eachEntry(fd, func(e Entry) bool {
		failed = ctx.Err()
		if failed != nil {
			failed = &fault.Error{Code: fault.Cancelled, Resource: dir.name.String(), Err: failed}
			return false
		}
		var f found
		if f.name, failed = dir.name.Join(e.Name); failed != nil {
			return false
		}
		if failed = f.name.guarded(); failed != nil {
			return false
		}
		f.rel = strings.TrimPrefix(dir.rel+"/"+e.Name, "/")
		var err error
		if f.st, err = statAt(fd, e.Name); err != nil {
			failed = f.name.failure(err)
			return false
		}
		if !(mount{dir.st.mnt, dir.st.dev}).holds(&f.st) {
			failed = f.name.fault(fault.PathMount, "", nil)
			return false
		}
		if failed = f.name.known(f.st.ident); failed == nil {
			failed = visit(f)
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return dir.name.failure(err)
	}
	return nil
}

// openFound opens a directory beneath the target again, and only if it is the
// one that was seen.
func (t *Target) openFound(f *found) (int, error) {
	dir, err := t.openBelow(f.rel)
	if err != nil {
		return -1, err
	}
	st, err := statFD(dir)
	if err == nil && st.ident != f.st.ident {
		err = f.name.stale(ruleGone)
	}
	if err != nil {
		unix.Close(dir)
		return -1, err
	}
	return dir, nil
}

// openBelow opens a directory beneath the target, component by component from
// the pinned one, through no link.
func (t *Target) openBelow(rel string) (int, error) {
	dir := t.dir
	for part := range strings.SplitSeq(path.Join(t.base, rel), "/") {
		next, err := retry(func() (int, error) {
			return unix.Openat(dir, part, oPath|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
		if dir != t.dir {
			unix.Close(dir)
		}
		if err != nil {
			return -1, err
		}
		dir = next
	}
	return dir, nil
}

// removeJudged removes one descendant if it is still the one that was judged.
func (t *Target) removeJudged(f *found) error {
	parent, err := t.openBelow(path.Dir(f.rel))
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	base, flags := path.Base(f.rel), 0
	if f.st.kind() == KindDir {
		flags = unix.AT_REMOVEDIR
	}
	st, err := statAt(parent, base)
	switch {
	case err == unix.ENOENT:
		return nil // somebody else removed it
	case err != nil:
		return err
	case st.ident != f.st.ident, flags == 0 && !f.st.sameBut(&st):
		return f.name.stale(ruleGone)
	}
	return again(func() error { return unix.Unlinkat(parent, base, flags) })
}
