// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
)

// apart is a locker for which folders above a target are nobody's matter.
type apart struct{ Locker }

func (a apart) LockWith(ctx context.Context, own, _ []int64) (func(), error) {
	return a.Locker.LockWith(ctx, own, nil)
}

// aMoment is long for a call and short for a test.
const aMoment = 200 * time.Millisecond

// meanwhile is a gate of whose first call another begins right after the intent, and
// has a moment to end before the effect.
func (w *world) meanwhile(d Decider, guarded bool, moment time.Duration, other func()) (g *Gate, ended func()) {
	var once sync.Once
	done := make(chan struct{})
	l := &log{}
	l.seen = func(e core.Event) {
		if e.Phase != core.PhaseIntent {
			return
		}
		once.Do(func() {
			go func() { defer close(done); other() }()
			select {
			case <-done:
			case <-time.After(moment):
			}
		})
	}
	return w.open(d, func(o *Options) { o.Recorder, o.Locker = l, w.locker(guarded) }), func() { <-done }
}

func (w *world) locker(guarded bool) Locker {
	if guarded {
		return w.gate.o.Locker
	}
	return apart{w.gate.o.Locker}
}

// entering are the calls that put something beneath a folder, which a built-in list
// would not let under the folder's new name.
var entering = map[string]func(*testing.T, *Gate) error{
	"write": func(t *testing.T, g *Gate) error {
		_, err := g.Write(t.Context(), "v/settings.json", []byte("{}"), Call{})
		return err
	},
	"write deeper": func(t *testing.T, g *Gate) error {
		_, err := g.Write(t.Context(), "v/a/b/settings.json", []byte("{}"), Call{})
		return err
	},
	"over a file": func(t *testing.T, g *Gate) error {
		_, err := g.Write(t.Context(), "v/a/x.md", []byte("{}"), Call{})
		return err
	},
	"make a folder": func(t *testing.T, g *Gate) error {
		_, err := g.MakeDir(t.Context(), "v/a/hooks", Call{})
		return err
	},
	"move a file": func(t *testing.T, g *Gate) error {
		_, err := g.Move(t.Context(), "beside", "v/settings.json", Call{Confirm: true})
		return err
	},
	"move a folder": func(t *testing.T, g *Gate) error {
		_, err := g.Move(t.Context(), "folder", "v/a/hooks", Call{Confirm: true})
		return err
	},
	"copy": func(t *testing.T, g *Gate) error {
		_, err := g.Copy(t.Context(), "beside", "v/settings.json", Call{})
		return err
	},
}

func enteringWorld(t *testing.T) (*world, *policy.Policy) {
	d := shippedWith(t, policy.Config{Layers: []policy.Layer{{Deny: []policy.Pattern{{Text: "new/**/settings.json"}, {Text: "new/**/hooks/**"}}}}})
	return newWorld(t, d, map[string]string{"v/a/b/x.md": "", "v/a/x.md": "", "beside": "{}", "folder/run": "x"}), d
}

// protectedThere lists what lies beneath the folder's new name and must not.
func (w *world) protectedThere() (all []string) {
	for _, n := range []string{"settings.json", "a/b/settings.json", "a/hooks"} {
		if _, err := os.Lstat(w.path("new/" + n)); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// TestMoveBesideEntering: while something is put into a folder the folder gets no other
// name, and while it is moved nothing is put into it: whichever comes first, nothing
// is under a name that the policy protects. Without the locks of the folders above, it
// would be.
func TestMoveBesideEntering(t *testing.T) {
	move := func(t *testing.T, g *Gate) error {
		_, err := g.Move(t.Context(), "v", "new", Call{Confirm: true})
		return err
	}
	through := 0
	for name, enter := range entering {
		for _, guarded := range []bool{true, false} {
			for _, moveFirst := range []bool{true, false} {
				w, d := enteringWorld(t)
				first, second := enter, move
				if moveFirst {
					first, second = move, enter
				}
				var secondErr error
				other := w.open(d, func(o *Options) { o.Locker = w.locker(guarded) })
				g, ended := w.meanwhile(d, guarded, aMoment, func() { secondErr = second(t, other) })
				firstErr := first(t, g)
				ended()
				there := w.protectedThere()
				label := fmt.Sprintf("%s, the move first %v", name, moveFirst)
				switch {
				case !guarded: // the last looks at the folder itself, which there always were, find some of them
					through += min(len(there), 1)
				case len(there) > 0 || firstErr != nil:
					t.Errorf("%s: %q: %v, %v", label, there, firstErr, secondErr)
				case moveFirst && name == "make a folder": // with those above it, anew
				case moveFirst && fault.CodeOf(secondErr) != fault.PathMissing:
					t.Errorf("%s: %v", label, secondErr)
				case !moveFirst && name != "over a file" && fault.CodeOf(secondErr) != fault.PolicyDenied:
					t.Errorf("%s: %v", label, secondErr)
				}
			}
		}
	}
	if through < 4 {
		t.Errorf("%d got through without the guard", through)
	}
}

// TestUndoBesideEntering: nor does an undo give a folder back a name while something is
// put into it.
func TestUndoBesideEntering(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{".claude/rules/x.md": ""})
		out, err := w.gate.Move(t.Context(), ".claude", "v", Call{Confirm: true})
		w.must(err)
		d := shippedWith(t, policy.Config{})
		var step UndoStep
		g, ended := w.meanwhile(d, guarded, aMoment, func() { step = w.returned(out.UndoID, Person{Decider: d}) })
		if _, err = g.Write(t.Context(), "v/settings.json", []byte("{}"), Call{}); (err == nil) != guarded {
			t.Errorf("guarded %v: %v", guarded, err)
		}
		ended()
		_, err = os.Lstat(w.path(".claude/settings.json"))
		if (err != nil) != guarded || step.Done == guarded {
			t.Errorf("guarded %v: %v, %+v", guarded, err, step)
		}
	}
}

// TestEnteringRace is an attacker's own loop: two calls at once, again and again.
func TestEnteringRace(t *testing.T) {
	w := newWorld(t, shippedWith(t, policy.Config{}), map[string]string{"v/x.md": ""})
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	through := map[bool]int{}
	for i := range rounds {
		var wg sync.WaitGroup
		var moved error
		wg.Add(2)
		go func() {
			defer wg.Done()
			_, moved = w.gate.Move(t.Context(), "v", ".claude", Call{Confirm: true})
		}()
		go func() {
			defer wg.Done()
			time.Sleep(time.Duration(i%20) * 50 * time.Microsecond)
			_, _ = w.gate.Write(t.Context(), "v/settings.json", []byte("{}"), Call{})
		}()
		wg.Wait()
		through[moved == nil]++
		if _, err := os.Lstat(w.path(".claude/settings.json")); err == nil {
			t.Fatalf("round %d: the list's name has content", i)
		}
		_ = os.Remove(w.path("v/settings.json"))
		_ = os.Rename(w.path(".claude"), w.path("v"))
	}
	t.Logf("moved %d times, refused %d", through[true], through[false])
}

// TestFoldersWhileWaiting: a call whose folder was moved and another put in its place
// while it waited takes the locks of that one.
func TestFoldersWhileWaiting(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"v/f": "old", "w/f": "other"})
	held, err := w.gate.o.Workspace.Parse("v")
	w.must(err)
	target, err := held[0].PinEntry()
	w.must(err)
	defer target.Close()
	_, id := target.IDs()
	release, err := w.gate.o.Locker.LockWith(t.Context(), []int64{inodeKey(id)}, nil)
	w.must(err)
	wrote := make(chan error)
	go func() {
		_, err := w.gate.Write(t.Context(), "v/f", []byte("new"), Call{})
		wrote <- err
	}()
	time.Sleep(50 * time.Millisecond)
	w.must(os.Rename(w.path("v"), w.path("away")))
	w.must(os.Rename(w.path("w"), w.path("v")))
	next := lockOf(t, w, "v")
	release()
	select {
	case err := <-wrote:
		t.Fatalf("it did not wait for the folder that is there now: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	next()
	w.must(<-wrote)
	if w.read("v/f") != "new" || w.read("away/f") != "old" {
		t.Errorf("%q, %q", w.read("v/f"), w.read("away/f"))
	}
}

func lockOf(t *testing.T, w *world, name string) (release func()) {
	t.Helper()
	names, err := w.gate.o.Workspace.Parse(name)
	w.must(err)
	target, err := names[0].PinEntry()
	w.must(err)
	defer target.Close()
	_, id := target.IDs()
	release, err = w.gate.o.Locker.LockWith(t.Context(), []int64{inodeKey(id)}, nil)
	w.must(err)
	return release
}

// TestMoveOutOfACopy: nothing is moved out of a folder while a copy still makes what is
// in it, under a name that the policy would not let the rest get. Without the locks of
// the names above, it would be.
func TestMoveOutOfACopy(t *testing.T) {
	spec := map[string]string{"A/v/a1.md": "", "A/v/settings.json": "{}"}
	for i := range 20 {
		spec[fmt.Sprintf("A/v/f%02d.md", i)] = "f"
	}
	for _, guarded := range []bool{true, false} {
		w := newWorld(t, shippedWith(t, policy.Config{}), spec)
		g := w.open(w.gate.o.Decider, func(o *Options) { o.Locker = w.locker(guarded) })
		hits, rounds := 0, 100
		if !guarded {
			rounds = 2000
		}
		for i := 0; i < rounds && hits == 0; i++ {
			var wg sync.WaitGroup
			wg.Go(func() { _, _ = g.Copy(t.Context(), "A", "C", Call{}) })
			for until := time.Now().Add(20 * time.Millisecond); time.Now().Before(until); {
				if _, err := os.Lstat(w.path("C/v")); err == nil {
					break
				}
			}
			time.Sleep(time.Duration(i%10) * 200 * time.Microsecond)
			_, _ = g.Move(t.Context(), "C/v", ".claude", Call{Confirm: true})
			wg.Wait()
			if _, err := os.Lstat(w.path(".claude/settings.json")); err == nil {
				hits++
			}
			w.must(os.RemoveAll(w.path("C")))
			w.must(os.RemoveAll(w.path(".claude")))
		}
		if (hits > 0) == guarded {
			t.Errorf("guarded %v: %d hits", guarded, hits)
		}
	}
}

// TestCopyHoldsNobodyUp: what a copy only reads others may change meanwhile.
func TestCopyHoldsNobodyUp(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"A/sub/f": "f"})
	g, ended := w.meanwhile(rules{}, true, 5*time.Second, func() {
		if _, err := w.gate.Write(t.Context(), "A/sub/new", []byte("n"), Call{}); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(w.path("C")); err == nil {
			t.Error("it waited until the copy was made")
		}
	})
	if _, err := g.Copy(t.Context(), "A", "C", Call{}); err != nil {
		t.Error(err)
	}
	ended()
}
