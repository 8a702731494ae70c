// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/lock"
)

const (
	sessions  = "sessions"
	approvers = "approvers"
	// held is the range that a process locks of its own file, beyond what could
	// be written there.
	held = 1 << 40
)

// Presence is a file that its process holds locked: the lock is gone with it.
type Presence struct {
	s    *Store
	path string
	Name string
	drop func()
}

// Attend says that somebody is there to answer, until Leave or the end of this
// process.
func (s *Store) Attend(ctx context.Context) (*Presence, error) { return s.appear(ctx, approvers) }

// Appear makes the file that proves that this process lives.
func (s *Store) Appear(ctx context.Context) (*Presence, error) { return s.appear(ctx, sessions) }

func (s *Store) appear(ctx context.Context, dir string) (*Presence, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	p := &Presence{s: s, Name: hex.EncodeToString(b[:])}
	p.path = s.path(dir, p.Name)
	if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
		return nil, failed(err)
	}
	f, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, failed(err)
	}
	_ = f.Close()
	if p.drop, err = lock.Open(p.path).Lock(ended(ctx), held); err != nil {
		_ = os.Remove(p.path)
		return nil, err
	}
	return p, nil
}

// Leave takes the file away.
func (p *Presence) Leave() error {
	done, err := p.s.enter(context.Background())
	if err != nil {
		return err
	}
	defer done()
	p.drop()
	return os.Remove(p.path)
}

// Attended reports whether a process is there whose person can answer. Files
// that nobody holds are removed.
func (s *Store) Attended(ctx context.Context) bool {
	done, err := s.enter(ctx)
	if err != nil {
		return false
	}
	defer done()
	return len(s.alive(ctx, approvers)) > 0
}

// alive lists who holds its file. The caller holds the lock.
func (s *Store) alive(ctx context.Context, dir string) map[string]bool {
	found, err := os.ReadDir(s.path(dir))
	if err != nil {
		return nil
	}
	all := map[string]bool{}
	for _, f := range found {
		path := s.path(dir, f.Name())
		if !f.Type().IsRegular() || strings.HasPrefix(f.Name(), ".") {
			continue
		}
		drop, err := lock.Open(path).Lock(ended(ctx), held)
		switch {
		case fault.CodeOf(err) == fault.LockHeld:
			all[f.Name()] = true
		case err == nil:
			drop()
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				continue // swept another time
			}
		}
	}
	return all
}

// ended is a context under which a lock is tried once.
func ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
