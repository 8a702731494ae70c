// SPDX-License-Identifier: Apache-2.0

package pathguard

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/postern-gate/postern/core/fault"
)

// Remove deletes a file, a link or an empty directory.
func (t *Target) Remove(o WriteOptions) error {
	if err := t.CanRemove(); err != nil {
		return err
	}
	if err := t.keep(o); err != nil {
		return err
	}
	if err := t.ready(); err != nil {
		return err
	}
	if err := t.held(func() error { return t.dir.Remove(t.base) }); err != nil {
		return t.name.failure(err)
	}
	_, err := t.settled()
	return err
}

// Descendants calls judge with every entry beneath a pinned directory.
func (t *Target) Descendants(ctx context.Context, max int, judge func(Name, Info) error) error {
	if !t.exists || t.st.kind() != KindDir {
		return nil
	}
	count := 0
	return descend(ctx, t.name, func(n Name, i Info) error {
		if count++; count > max {
			return t.name.fault(fault.LimitExceeded, "the directory holds more entries than one call may judge", nil)
		}
		return judge(n, i)
	})
}

func descend(ctx context.Context, n Name, visit func(Name, Info) error) error {
	d, err := n.OpenDir()
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		batch, err := d.Entries(256)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range batch {
			if ctx.Err() != nil {
				return n.fault(fault.Cancelled, "", ctx.Err())
			}
			entry, err := n.Join(e.Name)
			if err != nil {
				return err
			}
			info, err := entry.Lstat()
			if err == nil {
				err = visit(entry, info)
			}
			if err == nil && info.Kind == KindDir {
				err = descend(ctx, entry, visit)
			}
			if err != nil {
				return err
			}
		}
	}
}

// RemoveAll deletes a directory with all that is beneath it, after judge was
// asked about every descendant.
func (t *Target) RemoveAll(ctx context.Context, judge func(Name) error, o WriteOptions) error {
	if !t.exists || t.st.kind() != KindDir {
		return t.Remove(o)
	}
	if err := t.CanRemove(); err != nil {
		return err
	}
	var all []*Target
	defer func() {
		for _, d := range all {
			_ = d.Close()
		}
	}()
	err := t.Descendants(ctx, MaxEntries, func(n Name, _ Info) error {
		if err := judge(n); err != nil {
			return err
		}
		d, err := n.PinEntry()
		if err == nil {
			all = append(all, d)
			err = n.movable(d.st.ident)
		}
		return err
	})
	if err != nil {
		return err
	}
	if o.Exactly != nil {
		err := o.Exactly(func(yield func(Name, Info) bool) {
			for _, d := range all {
				if !yield(d.name, d.Info()) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		if err := all[i].dir.Remove(all[i].base); err != nil {
			return t.name.halfway(err, "not everything was removed")
		}
	}
	if err := t.dir.Remove(t.base); err != nil {
		return t.name.halfway(err, "the directory itself was not removed")
	}
	_, err = t.settled()
	return err
}

func mayMove(src, dst *Target) error {
	if src.name.root != dst.name.root {
		return dst.name.fault(fault.IOFailed, "the two names are beneath different roots: copy it and delete the first", nil)
	}
	return nil
}

// CanRemoveAll is the preview of RemoveAll.
func (t *Target) CanRemoveAll(ctx context.Context, max int, judge func(Name, Info) error) error {
	if err := t.CanRemove(); err != nil {
		return err
	}
	return t.Descendants(ctx, max, judge)
}

// Rename moves the entry itself to an absent name: a file by a second link,
// which fails when the name is taken; Windows does not rename a directory over
// anything.
func Rename(src, dst *Target) error {
	if err := CanRename(src, dst); err != nil {
		return err
	}
	top, err := src.name.root.hold()
	if err != nil {
		return err
	}
	err = src.held(func() error {
		if src.st.kind() != KindFile {
			return top.Rename(src.name.rel, dst.name.rel)
		}
		if err := top.Link(src.name.rel, dst.name.rel); err != nil {
			return err
		}
		return top.Remove(src.name.rel)
	})
	src.name.root.mu.RUnlock()
	switch {
	case errors.Is(err, fs.ErrExist):
		return dst.name.stale(ruleThere)
	case err != nil:
		return src.name.failure(err)
	}
	now, err := dst.settled()
	if err == nil && now.Info.Kind != src.st.kind() {
		err = dst.name.halfway(nil, ruleGone)
	}
	return err
}
