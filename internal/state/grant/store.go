// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/lock"
	"github.com/postern-gate/postern/internal/state/secret"
)

// Bounds, and the times that no policy sets.
const (
	// MaxPending is how many questions of one agent about one folder wait at once,
	// MaxAll how many of all, and how many answers are kept that still hold.
	MaxPending = 32
	MaxAll     = 256
	// MaxQuestion bounds the texts of a question in bytes: what a person can't read they can't
	// agree to.
	MaxQuestion = 128 << 10
	// SessionLife is how long a yes for a session or a pattern holds at most,
	// MaxUntil the longest that a person can give, AlwaysLife how long always is.
	SessionLife = 8 * time.Hour
	MaxUntil    = 7 * 24 * time.Hour
	AlwaysLife  = 365 * 24 * time.Hour
	// NoLife is how long an identical question is answered by the last no.
	NoLife = time.Minute
	// NoesInRow of a person pause an agent.
	NoesInRow = 3
	// keepSpent is how long what is over is kept beyond its own time, so that a
	// copy that is put back is known, and litter of a crash is left alone.
	keepSpent  = 24 * time.Hour
	keepLitter = time.Hour
	lockWait   = 10 * time.Second
	// storeKey is the lock of the store: no file's, whose keys are hashes.
	storeKey = 2
)

// The folders. A file's name is the digest of what is asked in pending, and
// the id of the question elsewhere.
const (
	pendingDir = "pending"
	grantsDir  = "grants"
	spentDir   = "spent"
	agentsDir  = "agents"
	// asked ends the name of a question in spent, beside its answer.
	asked = ".question"
)

// Event is what happened to a question or an answer.
type Event string

// The events that the store tells.
const (
	Asked    Event = "asked"
	Approved Event = "approved"
	Denied   Event = "denied"
	Spent    Event = "spent"
	Revoked  Event = "revoked"
	Expired  Event = "expired"
	Paused   Event = "paused"
	Resumed  Event = "resumed"
)

// Note tells one event.
type Note struct {
	Event    Event
	ID, Corr string
	Kind     Kind
	For      Binding
	Approver string
	Shown    string
	Reason   string
}

// Options are the parts of a store.
type Options struct {
	Clock Clock
	// Record is told of each event; of an answer, a revocation and a pause
	// before it holds, so that its error keeps it from doing so. It must be on
	// disk then.
	Record func(Note) error
	// Step is called between the steps of a change, for tests that end the
	// process there.
	Step func(string)
}

// Store is the questions and answers of a state directory. It is safe for
// concurrent use, by any number of processes.
type Store struct {
	dir   string
	o     Options
	clock Clock
	lock  lock.File

	mu    sync.Mutex
	key   []byte
	known map[string]known
}

// known is a record that was read before, and the file that it was read from.
type known struct {
	info  fs.FileInfo
	grant *Grant
}

// Open returns the store of a state directory. Nothing is made before the
// first question.
func Open(stateDir string, o Options) *Store {
	if o.Record == nil {
		o.Record = func(Note) error { return nil }
	}
	return &Store{
		dir: stateDir, o: o, clock: o.Clock.orSystem(),
		lock: lock.Open(filepath.Join(stateDir, "locks")), known: map[string]known{},
	}
}

func (s *Store) step(name string) {
	if s.o.Step != nil {
		s.o.Step(name)
	}
}

func (s *Store) note(n Note) error { return s.o.Record(n) }

func (s *Store) enter(ctx context.Context) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	return s.lock.Lock(ctx, storeKey)
}

// secret returns the key. It is made when make is set.
func (s *Store) secret(makeIt bool) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	path := s.path("keys", "grant")
	if makeIt {
		if _, err := secret.Load(path); err != nil {
			return nil, failed(err)
		}
	}
	key, _, err := readPrivate(path)
	if err == nil && len(key) != secret.Size {
		err = errRecord
	}
	if err != nil {
		return nil, failed(err)
	}
	s.key = key
	return key, nil
}

// read reads one record. A file that is none, for whatever reason, is an error.
func (s *Store) read(dir, name, kind string, v any) error {
	key, err := s.secret(false)
	if err != nil {
		return err
	}
	data, _, err := readPrivate(s.path(dir, name))
	if err != nil {
		return err
	}
	return unseal(key, kind, name, data, v)
}

func (s *Store) question(name string) (*Question, error) {
	var q Question
	if err := s.read(pendingDir, name, "question", &q); err != nil {
		return nil, err
	}
	if q.For.exact() != name {
		return nil, errRecord
	}
	return &q, nil
}

func (s *Store) answer(dir, id string) (*Grant, error) {
	var g Grant
	err := s.read(dir, id, "answer", &g)
	if err == nil && g.ID != id {
		err = errRecord
	}
	return &g, err
}

// names lists the records of a folder; what begins with a dot isn't one.
func (s *Store) names(dir string) []string {
	found, err := os.ReadDir(s.path(dir))
	if err != nil {
		return nil
	}
	var all []string
	for _, f := range found {
		if !strings.HasPrefix(f.Name(), ".") {
			all = append(all, f.Name())
		}
	}
	return all
}

// exists reports whether the name is taken; what can't be told is taken.
func (s *Store) exists(dir, name string) bool {
	_, err := os.Lstat(s.path(dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// questionOver: a question ends with its boot, since a yes for once does.
func (s *Store) questionOver(q *Question, now Moment) bool {
	return !q.Asked.sameBoot(now) || q.Asked.over(now, q.Life)
}

// over reports whether the time of an answer has passed.
func (s *Store) over(g *Grant, now Moment) bool {
	switch {
	case g.Given.over(now, g.Life):
		return true
	case g.Given.sameBoot(now):
		return false
	}
	return g.Kind == Once || s.setBack(now)
}

// setBack reports whether the wall clock stands before the last change here:
// of another boot it is all that tells how much time has passed.
func (s *Store) setBack(now Moment) bool {
	for _, dir := range []string{pendingDir, grantsDir, spentDir} {
		info, err := os.Stat(s.path(dir))
		if err == nil && now.Wall.Before(info.ModTime().Add(-2*time.Second)) {
			return true
		}
	}
	return false
}

// alphabet has no letters that are taken for digits or for each other.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// newID is what a person types: 40 random bits. It gives no right to anything.
func newID() string {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return string(b[:])
}

// ValidID reports whether s has the form of an id.
func ValidID(s string) bool {
	return len(s) == 8 && strings.Trim(s, alphabet) == ""
}

func failed(err error) error {
	return &fault.Error{
		Code: fault.IOFailed, Op: "ask", Rule: "what people are asked and answer can't be kept",
		Hint: "free space or repair the state directory", Err: err,
	}
}
