// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/lock"
)

// State is the state directory that every postern process of one user shares:
// the Recorder and the Locker of a gate.
type State struct {
	dir   state.Dir
	log   *audit.Log
	locks lock.File
}

var (
	_ Recorder = (*State)(nil)
	_ Locker   = (*State)(nil)
)

// LocateState returns the path of the state directory by the environment:
// POSTERN_STATE, else $XDG_STATE_HOME/postern, else ~/.local/state/postern.
func LocateState(getenv func(string) string) (string, error) { return state.Locate(getenv) }

// CheckState returns the refusal that OpenState would begin with, and makes
// nothing: nil for a directory that is absent.
func CheckState(path string) error { return state.Check(path) }

// OpenState prepares the directory (mode 0700, made if missing) and opens the
// log. It fails with config.invalid for a directory that others can enter, and
// with audit.unwritable. A root must not be equal to or beneath it, and a gate
// over a root above it must Protect it.
func OpenState(path string) (*State, error) {
	dir, err := state.Open(path)
	if err != nil {
		return nil, err
	}
	log, err := audit.Open(dir.Join("audit"), dir.Join("keys"))
	if err != nil {
		return nil, err
	}
	return &State{dir: dir, log: log, locks: lock.Open(dir.Join("locks"))}, nil
}

// Path returns the absolute path of the directory, without links.
func (s *State) Path() string { return s.dir.Path() }

// Record appends to the audit log; see Recorder.
func (s *State) Record(e core.Event, sync bool) error { return s.log.Record(e, sync) }

// Lock holds numbers against every other process; see Locker.
func (s *State) Lock(ctx context.Context, keys ...int64) (func(), error) {
	return s.locks.Lock(ctx, keys...)
}

// Close writes what is buffered and closes the log.
func (s *State) Close() error { return s.log.Close() }
