// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/regular"
)

const (
	// Ranges of the lock file.
	roomKey = 1 // the count of what is kept
	runKey  = 2 // one undo at a time
	// journalsKey is for what makes journals smaller, and for who settles what
	// they say: a line without its fellow would be taken for a crash.
	journalsKey = 3

	roomWait = 5 * time.Second
	// slack is how many parts of the bound are freed at once, so that a full
	// store isn't counted for every change.
	slack = 32
)

// counters is what is kept in all. They lie in a file that is changed under the
// lock, so that no process has to count what others keep.
type counters struct{ bytes, entries int64 }

// claim is who needs how much room. Images in needs don't give way to it, and those in
// away will have left by then. dry changes nothing.
type claim struct {
	owner       string
	needs, away map[string]bool
	need        counters
	dry         bool
}

// reserve takes room for an image before it is made, and evicts the oldest ones
// that are in the way. With dry it only says whether it could. The answer is
// "" for yes.
func (l *Log) reserve(c claim) (why string, err error) {
	release, err := l.counting()
	if err != nil {
		return "", unusable("the lock of the images can't be had", err)
	}
	defer release()
	have, ok := l.readRoom()
	if !ok || have.bytes+c.need.bytes > l.o.Total || have.entries+c.need.entries > int64(l.o.MaxImages) {
		var fits bool
		if have, fits, err = l.evict(c); err != nil {
			return "", err
		}
		if !fits {
			return "what is kept of other agents, and of running sessions, leaves no room for it under undo.total (" + size(l.o.Total) + ")", nil
		}
	}
	if c.dry {
		return "", nil
	}
	have.bytes, have.entries = have.bytes+c.need.bytes, have.entries+c.need.entries
	return "", l.writeRoom(have)
}

// free gives room back.
func (l *Log) free(bytes, entries int64) {
	release, err := l.counting()
	if err != nil {
		return // it is counted anew when it matters
	}
	defer release()
	if have, ok := l.readRoom(); ok {
		_ = l.writeRoom(counters{max(0, have.bytes-bytes), max(0, have.entries-entries)})
	}
}

// countingLock is the lock of the count. It is held for moments, and waited for
// whether or not the call that needs it is still wanted.
func countingLock(f lock.File) func() (func(), error) {
	return func() (func(), error) {
		ctx, cancel := context.WithTimeout(context.Background(), roomWait)
		defer cancel()
		return f.Lock(ctx, roomKey)
	}
}

func (l *Log) readRoom() (counters, bool) {
	b, err := regular.Read(l.join("room"))
	if err != nil || len(b) != 16 {
		return counters{}, false
	}
	c := counters{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))}
	return c, c.bytes >= 0 && c.entries >= 0
}

// writeRoom needs no sync: after a power cut Recover counts anew.
func (l *Log) writeRoom(c counters) error {
	b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(c.bytes)), uint64(c.entries))
	f, err := regular.OpenFile(l.join("room"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return unusable("the count of the images can't be written", err)
	}
	_, err = f.WriteAt(b, 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return unusable("the count of the images can't be written", err)
	}
	return nil
}

// kept is an image.
type kept struct {
	path, prefix, id string
	owner, name      string // digests of the agent and of the place
	at               time.Time
	counters
}

// list looks at every image, the oldest first.
func (l *Log) list() ([]kept, error) {
	found, err := os.ReadDir(l.join(imagesName))
	if err != nil {
		return nil, unusable("the images can't be listed", err)
	}
	var all []kept
	for _, f := range found {
		at, id, ok := stamped(f.Name())
		if !ok {
			continue
		}
		k := kept{path: l.join(imagesName, f.Name()), at: at}
		parts := strings.Split(strings.TrimSuffix(id, pathguard.OldSuffix), ".")
		if k.id = parts[0]; len(parts) == 4 {
			k.owner, k.name = parts[2], parts[3]
		}
		k.prefix, _, _ = strings.Cut(id, "-")
		k.counters = measure(k.path)
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b kept) int { return a.at.Compare(b.at) })
	return all, nil
}

func measure(path string) (c counters) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		c.entries++
		if err != nil {
			return nil //nolint:nilerr // it counts as one
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			c.bytes += info.Size()
		}
		return nil
	})
	return c
}

// pinned is the newest change of each process that acts now.
func (l *Log) pinned(all []kept) (map[string]bool, error) {
	alive, err := l.alive()
	if err != nil {
		return nil, err
	}
	newest := map[string]string{}
	for _, k := range all {
		if alive[k.prefix] {
			newest[k.prefix] = k.id
		}
	}
	ids := map[string]bool{}
	for _, id := range newest {
		ids[id] = true
	}
	return ids, nil
}

// remove removes an image, a directory with all that it holds. A directory that
// nobody may write is made so first: it is nobody's but ours now.
func remove(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}
