// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// Decider judges a request. *policy.Policy is one.
type Decider interface {
	Evaluate(core.Request) core.Verdict
	// ConfirmRequired and IfMatchRequired say which preconditions the policy
	// asks of calls with this action.
	ConfirmRequired(core.Action) bool
	IfMatchRequired(core.Action) bool
	// Version identifies the policy in records.
	Version() string
}

// Recorder appends to the audit log. With sync it returns only when the event
// is on disk; without, it may buffer and reports an earlier failure. One that
// stands before a *State embeds it, since the gate tells a State where its
// roots lie: the intents of a process that nobody knows are taken for those of
// a dead one (State.Recover).
type Recorder interface {
	Record(e core.Event, sync bool) error
}

// Locker holds numbers (0 ≤ key < 2⁶²) until the returned function is called: those
// of own against every other caller and process, the others against those that want
// them for their own. A number of both is its own. It waits until the context ends.
type Locker interface {
	LockWith(ctx context.Context, own, shared []int64) (release func(), err error)
}

// Keeper keeps what changes displace. A *State is one; there is no other way to
// make one.
type Keeper interface {
	// Cover returns why a change could not be undone, "" if it could, and has no
	// effect: a dry run ends after it.
	Cover(*undo.Change) string
	// Begin writes down what is about to happen, before it does.
	Begin(*undo.Change) (*undo.Entry, error)
	// Lost writes down what can't be undone, and why.
	Lost(c *undo.Change, why string) error
}

// Clock tells the time of records.
type Clock interface {
	Now() time.Time
}

// Options are the parts of a Gate.
type Options struct {
	Workspace *pathguard.Workspace
	Decider   Decider
	Recorder  Recorder
	Locker    Locker
	Approver  Approver // nil: nobody can be asked, so "ask" is refused
	Keeper    Keeper   // nil: nothing can be undone, and results say so
	Clock     Clock    // nil: the system's clock
	Watcher   *Watcher // nil: nothing can be watched
	Subject   core.Subject
	// Asking returns what the door knows of the one call that the gate is for;
	// it is called where a person is asked. It may be nil.
	Asking func() Asking
	// PolicyFile is where a person would allow what the policy asks about; it
	// is named in refusals only.
	PolicyFile string
	// ReadsNeedAudit denies reads too while the log can't be written: each then
	// waits until its record is on disk.
	ReadsNeedAudit bool
	// LockWait bounds how long a mutation waits for another one of the same
	// file. Zero means 10 seconds.
	LockWait time.Duration
	// MaxEntries bounds how many descendants a move, copy or delete of a
	// directory may have. Zero means 10,000.
	MaxEntries int
}

const (
	defaultLockWait   = 10 * time.Second
	defaultMaxEntries = 10_000
)

// Gate is the boundary for one subject. It is safe for concurrent use.
type Gate struct {
	o      Options
	folder string // of the first root, "" for none: what is beneath no root is told with it
}

// New returns a gate, or an error when a part is missing without which
// nothing can be decided, recorded or kept apart.
func New(o Options) (*Gate, error) {
	switch {
	case o.Workspace == nil:
		return nil, errors.New("enforce: no workspace")
	case o.Decider == nil:
		return nil, errors.New("enforce: no decider")
	case o.Recorder == nil:
		return nil, errors.New("enforce: no recorder")
	case o.Locker == nil:
		return nil, errors.New("enforce: no locker")
	}
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.LockWait == 0 {
		o.LockWait = defaultLockWait
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = defaultMaxEntries
	}
	if s, ok := o.Recorder.(announcer); ok {
		_ = s.announce(o.Workspace) // as long as there is space; an intent tries again
	}
	g := &Gate{o: o}
	if roots := o.Workspace.Roots(); len(roots) > 0 {
		g.folder = roots[0].Resolved()
	}
	return g, nil
}

// Workspace returns the roots that the gate guards.
func (g *Gate) Workspace() *pathguard.Workspace { return g.o.Workspace }

func (g *Gate) asking() Asking {
	if g.o.Asking == nil {
		return Asking{}
	}
	return g.o.Asking()
}

// WithSubject returns a gate over the same parts for another subject.
func (g *Gate) WithSubject(s core.Subject) *Gate {
	o := g.o
	o.Subject = s
	return &Gate{o, g.folder}
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }
