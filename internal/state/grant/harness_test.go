// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// testClock is a clock that tests set.
type testClock struct {
	mu   sync.Mutex
	wall time.Time
	up   time.Duration
	boot string
}

func newClock() *testClock {
	return &testClock{wall: time.Now().Round(0), up: time.Hour, boot: "boot-1"}
}

func (c *testClock) clock() Clock {
	get := func() (time.Time, time.Duration, string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.wall, c.up, c.boot
	}
	return Clock{
		Wall: func() time.Time { w, _, _ := get(); return w },
		Up:   func() time.Duration { _, u, _ := get(); return u },
		Boot: func() string { _, _, b := get(); return b },
	}
}

// pass lets time go by on both clocks.
func (c *testClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.up = c.wall.Add(d), c.up+d
}

func (c *testClock) set(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = wall
}

func (c *testClock) reboot() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up, c.boot = time.Second, c.boot+"+"
}

// world is a state directory with a store.
type world struct {
	t     testing.TB
	dir   string
	clock *testClock
	store *Store
	mu    sync.Mutex
	notes []Note
	fail  error // of the log
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), clock: newClock()}
	w.store = w.open(nil)
	return w
}

// open is another process's view of the same directory.
func (w *world) open(step func(string)) *Store {
	return Open(w.dir, Options{Clock: w.clock.clock(), Step: step, Record: func(n Note) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.fail != nil {
			return w.fail
		}
		w.notes = append(w.notes, n)
		return nil
	}})
}

func (w *world) events(e Event) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.notes {
		if x.Event == e {
			n++
		}
	}
	return n
}

const testLife = 15 * time.Minute

func (w *world) ask(b Binding) *Question {
	w.t.Helper()
	q, err := w.store.Ask(context.Background(), b, Card{Rule: "fs.write: ask", Undo: "no"}, "corr-1", testLife)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

func (w *world) decide(q *Question, kind Kind) *Grant {
	w.t.Helper()
	g, err := w.store.Decide(context.Background(), q.ID, Answer{Kind: kind, Approver: "test", Shown: "x", Life: time.Hour, Pattern: "project://src/**"})
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

func (w *world) spend(id string, b Binding) error {
	_, err := w.store.Spend(context.Background(), id, &b, "corr-2")
	return err
}

func (w *world) path(name ...string) string {
	return filepath.Join(append([]string{w.dir}, name...)...)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// write is a binding for a write beneath src.
func write1() Binding {
	return Binding{
		Asker:  Asker{Agent: "a", Session: "s", Host: true, Source: "serve"},
		Server: "postern", Tool: "write_file", Class: "mutating", Arguments: "args-1",
		Operations: []Operation{{Action: "fs.write", Resource: "project://src/a.go"}},
		Objects:    []Object{{Name: "project://src/a.go", State: "1abc in 1:2", Hash: "h"}}, Policy: "p1",
	}
}

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != want {
		t.Helper()
		t.Errorf("error %v (%s), want %s", err, fault.CodeOf(err), want)
	}
}

func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Name())
	}
	return names
}
