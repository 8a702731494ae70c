// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/live"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/undo"
)

// State is the state directory that every postern process of one user shares:
// the Recorder and the Locker of a gate.
type State struct {
	dir   state.Dir
	log   *audit.Log
	locks lock.File
	live  live.Dir
	undo  *undo.Log

	mu    sync.Mutex
	self  *live.Process // once there is a gate
	roots map[string]string
	// others are processes that asked for what this one does: its records have
	// their ids.
	others map[string]*live.Process
}

var (
	_ Recorder  = (*State)(nil)
	_ Locker    = (*State)(nil)
	_ Keeper    = (*State)(nil)
	_ announcer = (*State)(nil)
)

// StateOptions are how the log is kept. The zero value is the shipped default
// but for Keep. Processes of one state directory should agree; where they
// don't, each holds for what that process does.
type StateOptions struct {
	HashedPaths bool          // no name of a file is told, only a class and a keyed hash
	SegmentSize int64         // bytes at which a segment ends, 0 for 64 MiB
	Keep        time.Duration // age at which whole segments are removed, 0 for never
	Undo        UndoOptions
}

// UndoOptions bound what is kept for undo. The zero value is the shipped
// default: 1000 entries a change, 64 MiB an image, 1 GiB in all, 14 days. What is
// negative bounds everything: nothing is kept.
type UndoOptions struct {
	MaxEntries     int           // entries that one change may touch
	PerFile, Total int64         // bytes of one image and of all
	Keep           time.Duration // age at which a change can't be undone any more
}

func (o UndoOptions) log() undo.Options {
	return undo.Options{
		MaxEntries: cmp.Or(o.MaxEntries, 1000), PerFile: cmp.Or(o.PerFile, 64<<20),
		Total: cmp.Or(o.Total, 1<<30), Keep: cmp.Or(o.Keep, 14*24*time.Hour),
	}
}

// LocateState returns the path of the state directory by the environment:
// POSTERN_STATE, else $XDG_STATE_HOME/postern, else ~/.local/state/postern.
func LocateState(getenv func(string) string) (string, error) { return state.Locate(getenv) }

// CheckState returns the refusal of a directory that OpenState would not use, and
// makes nothing: nil for one that is absent, or of an earlier layout.
func CheckState(path string) error { return state.Check(path) }

// OpenState prepares the directory (mode 0700, made if missing) and the log.
// It fails with config.invalid for a directory that others can enter. A log
// that can't be used now is no error: every change is then refused with its
// code (audit.unwritable, audit.broken, audit.truncated) until that is mended,
// reads follow Options.ReadsNeedAudit, and Problem tells. A root must not be
// equal to or beneath the directory, and a gate over a root above it must
// Protect it.
func OpenState(path string, o StateOptions) (*State, error) {
	dir, err := state.Open(path)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(dir.Path(), audit.Options{HashedPaths: o.HashedPaths, SegmentSize: o.SegmentSize, Keep: o.Keep})
	if err != nil {
		return nil, err
	}
	s := &State{dir: dir, log: log, locks: lock.Open(dir.Join("locks")), live: live.Open(dir.Path())}
	s.undo = undo.Open(dir.Path(), o.Undo.log(), s.living)
	return s, nil
}

// living is the processes that act now, by the prefix of their ids.
func (s *State) living() (map[string]bool, error) {
	all, err := s.live.List(context.Background())
	if err != nil {
		return nil, err
	}
	alive := map[string]bool{prefixOf(idPrefix()): true}
	for _, p := range all {
		alive[p.Prefix] = alive[p.Prefix] || p.Alive
	}
	return alive, nil
}

// Cover says why a change could not be undone; see Keeper.
func (s *State) Cover(c *undo.Change) string { return s.undo.Cover(c) }

// Begin writes down a change that is about to happen; see Keeper.
func (s *State) Begin(c *undo.Change) (*undo.Entry, error) { return s.undo.Begin(c) }

// Lost writes down a change that can't be undone; see Keeper.
func (s *State) Lost(c *undo.Change, why string) error { return s.undo.Lost(c, why) }

// Path returns the absolute path of the directory, without links.
func (s *State) Path() string { return s.dir.Path() }

// Record appends to the audit log; see Recorder.
func (s *State) Record(e core.Event, sync bool) error { return s.log.Record(e, sync) }

// Problem returns why nothing can be recorded now, nil when something can.
func (s *State) Problem() error { return s.log.Problem() }

// LockWith holds numbers against every other process; see Locker.
func (s *State) LockWith(ctx context.Context, own, shared []int64) (func(), error) {
	return s.locks.LockWith(ctx, own, shared)
}

// Close writes what is buffered and closes the log. Nothing may act by this
// state any more.
func (s *State) Close() error {
	err := s.log.Close()
	s.undo.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.self == nil {
		return err
	}
	if err != nil {
		return err // an intent may want looking after
	}
	err = s.self.Close()
	for _, p := range s.others {
		err = errors.Join(err, p.Close())
	}
	s.others = nil
	return err
}

// announcer is a Recorder that others ask what became of an intent.
type announcer interface {
	announce(*pathguard.Workspace) error
	standFor(prefix string) error
}

// announce says, before the first intent, that this process acts, and where
// its roots lie. A name that two roots have stands for neither.
func (s *State) announce(w *pathguard.Workspace) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	roots := s.roots
	for _, r := range w.Roots() {
		path, known := roots[r.Name()]
		switch {
		case known && (path == "" || path == r.Resolved()):
			continue
		case known:
			path = ""
		default:
			path = r.Resolved()
		}
		if roots = maps.Clone(roots); roots == nil {
			roots = map[string]string{}
		}
		roots[r.Name()] = path
	}
	var err error
	switch {
	case s.self == nil:
		s.self, err = s.live.Announce(strings.TrimSuffix(idPrefix(), "-"), roots)
	case !maps.Equal(roots, s.roots):
		err = s.self.Update(roots)
	}
	if err == nil {
		s.roots = roots
	}
	return err
}

// standFor says, before an intent under the id of another process, that this one
// acts under it: the call was asked about there, and that process may have ended.
func (s *State) standFor(prefix string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if prefix == prefixOf(idPrefix()) || s.others[prefix] != nil {
		return nil
	}
	p, err := s.live.Announce(prefix, s.roots)
	if err != nil {
		return err
	}
	if s.others == nil {
		s.others = map[string]*live.Process{}
	}
	s.others[prefix] = p
	return nil
}

func (c *crossing) announce() error {
	s, ok := c.gate.o.Recorder.(announcer)
	if !ok {
		return nil
	}
	if err := s.announce(c.gate.o.Workspace); err != nil {
		return err
	}
	return s.standFor(prefixOf(c.corr))
}
