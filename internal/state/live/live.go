// SPDX-License-Identifier: Apache-2.0

// Package live tells which postern processes act now, and where the roots of
// those lie that ended without a word. A process that is about to change
// something keeps a file, held by a kernel lock that is gone with it; there is
// no pid to believe.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/regular"
)

const (
	// Ranges of the folder's own lock file: its entries come and go under the
	// first, and the dead are looked after under the second.
	entries   = 0
	aftermath = 1
	// alive is the range of a process's file that it holds. It lies beyond what
	// is written there, since a locked range can't be read on every system.
	alive = 1 << 40
	// lockWait bounds how long an entry waits for others that come and go.
	lockWait = 10 * time.Second
)

// Dir is the folder of the processes' files in a state directory.
type Dir struct {
	path string
	lock lock.File
}

// Open returns the folder beneath a state directory. Nothing is made before
// the first Announce.
func Open(stateDir string) Dir {
	return Dir{filepath.Join(stateDir, "live"), lock.Open(filepath.Join(stateDir, "live.lock"))}
}

// Process is the file of this process.
type Process struct {
	dir  Dir
	path string
	drop func()
}

// Announce makes the file of a process whose ids begin with prefix, readable
// by this user alone. roots are the absolute paths of the roots by name.
func (d Dir) Announce(prefix string, roots map[string]string) (*Process, error) {
	done, err := d.enter(context.Background())
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, failed(err)
	}
	file, err := os.CreateTemp(d.path, prefix+".*")
	if err != nil {
		return nil, failed(err)
	}
	_, err = file.Write(encode(roots))
	if err = errors.Join(err, file.Close()); err == nil {
		var drop func()
		if drop, err = lock.Open(file.Name()).Lock(passed(context.Background()), alive); err == nil {
			return &Process{d, file.Name(), drop}, nil
		}
	}
	_ = os.Remove(file.Name())
	return nil, failed(err)
}

// Update replaces the roots.
func (p *Process) Update(roots map[string]string) error {
	done, err := p.dir.enter(context.Background())
	if err != nil {
		return err
	}
	defer done()
	if err := os.WriteFile(p.path, encode(roots), 0o600); err != nil {
		return failed(err)
	}
	return nil
}

// Close removes the file. What the process did must have its records by then.
func (p *Process) Close() error {
	done, err := p.dir.enter(context.Background())
	if err != nil {
		return err
	}
	defer done()
	p.drop()
	return os.Remove(p.path)
}

// Entry is the file of some process.
type Entry struct {
	Prefix string
	Alive  bool
	Roots  map[string]string // of a dead one; nil where they can't be read
	path   string
}

// List returns the files that are there.
func (d Dir) List(ctx context.Context) ([]Entry, error) {
	if _, err := os.Lstat(d.path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	done, err := d.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found, err := os.ReadDir(d.path)
	if err != nil {
		return nil, failed(err)
	}
	var all []Entry
	for _, f := range found {
		prefix, _, _ := strings.Cut(f.Name(), ".")
		e := Entry{Prefix: prefix, path: filepath.Join(d.path, f.Name())}
		drop, err := lock.Open(e.path).Lock(passed(ctx), alive)
		switch {
		case fault.CodeOf(err) == fault.LockHeld:
			e.Alive = true
		case err != nil:
			return nil, err
		default:
			drop()
			e.Roots = decode(e.path)
		}
		all = append(all, e)
	}
	return all, nil
}

// Remove removes the file of a dead process.
func (d Dir) Remove(ctx context.Context, e Entry) error {
	done, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	return os.Remove(e.path)
}

// Alone waits until no other process looks after the dead, and keeps others
// from it until the returned function is called.
func (d Dir) Alone(ctx context.Context) (func(), error) { return d.lock.Lock(ctx, aftermath) }

func (d Dir) enter(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return d.lock.Lock(ctx, entries)
}

// passed is a context under which a lock is tried once.
func passed(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

func encode(roots map[string]string) []byte {
	b, _ := json.Marshal(roots) // a map of strings never fails
	return b
}

// decode returns nil for a file that a crash cut short.
func decode(path string) map[string]string {
	b, err := regular.Read(path)
	var roots map[string]string
	if err != nil || json.Unmarshal(b, &roots) != nil {
		return nil
	}
	return roots
}

func failed(err error) error {
	return &fault.Error{
		Code: fault.AuditUnwritable, Op: "record", Rule: "the file that says that this process acts can't be made",
		Hint: "free space or repair the state directory", Err: err,
	}
}
