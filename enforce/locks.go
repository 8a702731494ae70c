// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// needs are the locks of a crossing: what it changes for its own, and shared what it
// only reads and every folder that either lies in, by its name too: one that another
// call makes, with what is in it, has no inode before. So no folder is given another
// name, with what was judged beneath the old one, while something is put into it, and
// nothing is put into one from the moment that all beneath it is judged until it has its
// new name.
type needs struct {
	own    []int64 // each target, by the folder and name that it has and by its inode
	shared []int64
	dirs   []int64 // inodes of folders, of either
}

func (c *crossing) needs() (n needs, err error) {
	for i := range c.operands {
		if o := &c.operands[i]; o.target != nil {
			if err := n.add(o.target, o.changes()); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (n *needs) add(t *pathguard.Target, changes bool) error {
	dir, entry := t.IDs()
	keys := []int64{nameKey(dir, t.Name())}
	if t.Exists() { // its other names wait too
		keys = append(keys, inodeKey(entry))
		if t.Info().Kind == pathguard.KindDir {
			n.dirs = append(n.dirs, inodeKey(entry))
		}
	}
	if changes {
		n.own = append(n.own, keys...)
	} else {
		n.shared = append(n.shared, keys...)
	}
	above, err := t.Above()
	if err != nil {
		return err
	}
	at, _ := t.Name().Parent()
	for i, id := range above {
		n.shared, n.dirs = append(n.shared, inodeKey(id)), append(n.dirs, inodeKey(id))
		if i+1 < len(above) { // but for the root's own
			n.shared = append(n.shared, nameKey(above[i+1], at))
			at, _ = at.Parent()
		}
	}
	return nil
}

// changes reports whether the operand is more than read.
func (o *operand) changes() bool {
	return slices.ContainsFunc(o.actions, core.Action.Mutates)
}

// lockTries is how often a crossing whose folders became others while it waited takes
// the locks of those.
const lockTries = 5

// hold takes the locks of what will change and then resolves and judges it
// once more, because a wait may have let others in. Reads need neither: they
// already hold the judged file. A guarded handler opens its paths by itself and
// may cross this gate again, so it isn't made to wait for its own locks.
//
// Whatever a person was asked about is looked at again too: a yes holds for what
// was there when it was asked for.
func (c *crossing) hold(ctx context.Context) error {
	locks := c.mutates() && c.tool == nil
	if !locks && c.asked == nil {
		return nil
	}
	if !locks {
		return c.again()
	}
	ctx, cancel := context.WithTimeout(ctx, c.gate.o.LockWait)
	defer cancel()
	for range lockTries {
		held, err := c.lock(ctx)
		if err != nil {
			return err
		}
		if err := c.again(); err != nil {
			return err
		}
		now, err := c.needs()
		if err != nil {
			return err
		}
		if held.holds(now) {
			return nil
		}
		c.unlock()
	}
	return &fault.Error{Code: fault.PreconditionFailed, Retry: true, Rule: "its folder was moved or replaced again and again while the call waited"}
}

// holds reports whether what is locked are the folders that matter now. A file that was
// replaced meanwhile is held by its name.
func (n *needs) holds(now needs) bool {
	held := make(map[int64]bool, len(n.dirs))
	for _, key := range n.dirs {
		held[key] = true
	}
	for _, key := range now.dirs {
		if !held[key] {
			return false
		}
	}
	return true
}

func (c *crossing) lock(ctx context.Context) (needs, error) {
	n, err := c.needs()
	if err != nil || len(n.own) == 0 {
		return n, err
	}
	c.release, err = c.gate.o.Locker.LockWith(ctx, n.own, n.shared)
	return n, err
}

func nameKey(dir pathguard.ID, n pathguard.Name) int64 { return hash62('n', dir, n.Base()) }

func inodeKey(id pathguard.ID) int64 { return hash62('i', id, "") }

// hash62 leaves the two top bits clear: a lock is a range of a file, whose
// offsets are signed and end before the largest one.
func hash62(kind byte, id pathguard.ID, name string) int64 {
	var b [17]byte
	b[0] = kind
	binary.LittleEndian.PutUint64(b[1:], id.Dev)
	binary.LittleEndian.PutUint64(b[9:], id.Ino)
	h := fnv.New64a()
	_, _ = h.Write(b[:])
	_, _ = h.Write([]byte(name))
	return int64(h.Sum64() >> 2)
}
