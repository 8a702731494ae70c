// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"encoding/binary"
	"hash/fnv"

	"github.com/postern-gate/postern/core/pathguard"
)

// lock holds every target of the crossing: by the directory and name that it
// has, and by its inode, so that its other names wait too.
func (c *crossing) lock(ctx context.Context) error {
	var keys []int64
	for i := range c.operands {
		if t := c.operands[i].target; t != nil {
			keys = append(keys, lockKeys(t)...)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.gate.o.LockWait)
	defer cancel()
	release, err := c.gate.o.Locker.Lock(ctx, keys...)
	c.release = release
	return err
}

func lockKeys(t *pathguard.Target) []int64 {
	dir, entry := t.IDs()
	keys := []int64{hash62('n', dir, t.Name().Base())}
	if t.Exists() {
		keys = append(keys, hash62('i', entry, ""))
	}
	return keys
}

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
