// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"encoding/binary"
	"hash/fnv"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// needs are the locks of a crossing: what it changes for its own, and shared every
// folder that this lies in. So no folder is given another name, with what was judged
// beneath the old one, while something is put into it, and nothing is put into one from
// the moment that all beneath it is judged until it has its new name.
type needs struct {
	own    []int64 // each target, by the folder and name that it has and by its inode
	shared []int64
	dirs   []int64 // inodes of folders, of either
}

func (c *crossing) needs() (n needs, err error) {
	for i := range c.operands {
		if t := c.operands[i].target; t != nil {
			if err := n.add(t); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (n *needs) add(t *pathguard.Target) error {
	dir, entry := t.IDs()
	n.own = append(n.own, hash62('n', dir, t.Name().Base()))
	if t.Exists() { // its other names wait too
		key := inodeKey(entry)
		n.own = append(n.own, key)
		if t.Info().Kind == pathguard.KindDir {
			n.dirs = append(n.dirs, key)
		}
	}
	above, err := t.Above()
	for _, id := range above {
		n.shared = append(n.shared, inodeKey(id))
	}
	n.dirs = append(n.dirs, n.shared...)
	return err
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
