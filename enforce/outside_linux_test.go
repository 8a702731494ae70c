// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
)

// secretive is a policy that hides what is in hidden and knows a secret.
type secretive struct{ rules }

func (s secretive) Evaluate(q core.Request) core.Verdict {
	v := s.rules.Evaluate(q)
	switch name := q.Resource.String(); {
	case strings.HasPrefix(name, "project://hidden/"):
		v.Decision = core.Deny
	case strings.HasSuffix(name, "/.env"):
		v.Decision, v.Class = core.Deny, "dotenv"
	}
	return v
}

// watched is a world whose root is watched.
type watched struct {
	*undoWorld
	seen *Outside
}

func watchWorld(t *testing.T, w *undoWorld, o OutsideOptions) *watched {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	o.Workspace = w.gate.o.Workspace
	if o.Decider == nil {
		o.Decider = secretive{}
	}
	if o.pace == (outsidePace{}) {
		o.pace = outsidePace{quiet: 100 * time.Millisecond, between: 100 * time.Millisecond}
	}
	seen, err := w.state.WatchOutside(t.Context(), o)
	w.must(err)
	select {
	case <-seen.Ready():
	case <-time.After(20 * time.Second):
		t.Fatal("it is never ready")
	}
	ww := &watched{w, seen}
	t.Cleanup(func() {
		seen.Close()
		_, err := w.state.log.Anchor()
		w.must(err)
		goleak.VerifyNone(t, leaks)
	})
	return ww
}

// end ends the watch and returns its records, as event, op and resource or n.
func (w *watched) end() (told []string) {
	w.t.Helper()
	w.seen.Close()
	_, err := w.state.log.Anchor() // which writes all
	w.must(err)
	for _, r := range records(w.t, w.state.Path()) {
		if r["source"] != WatcherSource {
			continue
		}
		if r["decision"] != "none" || r["agent"] != "" || r["level"] != "none" || r["corr"] != w.seen.id {
			w.t.Errorf("%v", r)
		}
		what := fmt.Sprint(r["event"], " ", r["op"])
		if r["resource"] != nil {
			what += fmt.Sprint(" ", r["resource"])
		}
		if r["n"] != nil {
			what += fmt.Sprint(" ", r["n"])
		}
		told = append(told, what)
	}
	return told
}

// settled waits until the watcher has nothing left to settle.
func (w *watched) settled() {
	w.t.Helper()
	for over := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		w.seen.mu.Lock()
		n := len(w.seen.pending)
		w.seen.mu.Unlock()
		if n == 0 {
			return
		}
		if time.Now().After(over) {
			w.t.Fatalf("%d are pending", n)
		}
	}
}

func (w *watched) wants(told []string, want ...string) {
	w.t.Helper()
	have := strings.Join(told, "\n") + "\n"
	for _, s := range want {
		if !strings.Contains(have, s+"\n") {
			w.t.Errorf("no %q in\n%s", s, have)
		}
	}
	if len(told) != len(want) {
		w.t.Errorf("%d records, want %d:\n%s", len(told), len(want), have)
	}
}

// pause lets a quiet time pass, so that what follows is another change.
func (w *watched) pause() { time.Sleep(50 * time.Millisecond); w.settled() }

// TestOutside: what other programs do is recorded by how it ended, and what the
// gate does is not.
func TestOutside(t *testing.T) {
	base := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{
		"a.txt": "A", "b": "b", "old": "o", "d/x": "x", "d/y": "y", "hidden/": "", "gone/z": "z", ".git/HEAD": "ref",
	})
	w := watchWorld(t, base, OutsideOptions{})
	w.write("a.txt", "by the gate")
	w.write("new", "by the gate")
	w.delete("gone")
	_, err := w.gate.Move(t.Context(), "d", "moved", Call{})
	w.must(err)
	w.undone(UndoSelect{ID: w.delete("moved/x")})
	w.pause()
	w.put("b", "outside")
	w.put("made", "outside")
	w.put("temp", "outside")
	w.must(os.Remove(w.path("temp")))
	w.must(os.Remove(w.path("old")))
	w.put("hidden/plan", "outside")
	w.put(".env", "S=1")
	w.put("moved/y", "outside")
	w.put(".git/index", "outside")
	w.must(os.Rename(w.path("moved"), w.path("renamed")))
	w.pause()
	w.put("a.txt", "outside, after the gate")
	told := w.end()
	for i, s := range told {
		if rest, ok := strings.CutPrefix(s, "outside fs.create dotenv:"); ok && len(rest) == 24 {
			told[i] = "a secret"
		}
		if strings.HasPrefix(s, "watching fs.watch ") {
			told[i] = "watching"
		}
	}
	w.wants(told, "watching", "outside fs.write project://b", "outside fs.create project://made", "outside fs.delete project://old",
		"outside fs.watch 1", "a secret", "outside fs.delete project://moved", "outside fs.write project://renamed", "outside fs.write project://a.txt",
		"outside fs.delete project://moved/y")
}

// TestOutsideControl: without the journals the gate's own changes are taken for
// somebody else's, so it is they that tell them apart.
func TestOutsideControl(t *testing.T) {
	for _, journal := range []bool{true, false} {
		base := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a.txt": "A"})
		w := watchWorld(t, base, OutsideOptions{})
		if !journal {
			w.gate.o.Keeper = nil
		}
		w.write("a.txt", "by the gate")
		w.pause()
		if n := len(w.end()); journal != (n == 1) {
			t.Errorf("journal %v: %d records", journal, n)
		}
	}
}

// TestOutsideBeyondUndo: a change that is not kept is known all the same.
func TestOutsideBeyondUndo(t *testing.T) {
	base := newUndoWorld(t, stateBeside(t), UndoOptions{PerFile: -1}, map[string]string{"a.txt": "A"})
	w := watchWorld(t, base, OutsideOptions{})
	out, err := w.gate.Write(t.Context(), "a.txt", []byte("by the gate"), Call{Confirm: true})
	w.must(err)
	if out.Undoable {
		t.Fatalf("%+v", out)
	}
	w.pause()
	w.wants(w.end(), "watching fs.watch 1")
}

// TestOutsideStorm: ten thousand files are counted, and few records are made.
func TestOutsideStorm(t *testing.T) {
	const files = 10_000
	base := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a.txt": "A"})
	w := watchWorld(t, base, OutsideOptions{pace: outsidePace{quiet: 200 * time.Millisecond, between: time.Second, named: 16}})
	for i := range files {
		if i%100 == 0 {
			w.must(os.Mkdir(w.path(fmt.Sprint("d", i/100)), 0o755))
		}
		w.must(os.WriteFile(w.path(fmt.Sprint("d", i/100, "/", i)), []byte("x"), 0o644))
	}
	w.write("a.txt", "by the gate")
	w.pause()
	told := w.end()
	if len(told) > 60 {
		t.Errorf("%d records", len(told))
	}
	c, err := w.state.outsideSince(t.Context(), time.Time{})
	w.must(err)
	if !c.Watched || c.Files > files || !c.Missed && c.Files != files {
		t.Errorf("%+v", c)
	}
	if n := len(w.seen.pending); n != 0 {
		t.Errorf("%d are held", n)
	}
}

// TestOutsideHeld: what can't be held is said, not waited for.
func TestOutsideHeld(t *testing.T) {
	base := newUndoWorld(t, stateBeside(t), UndoOptions{}, nil)
	w := watchWorld(t, base, OutsideOptions{pace: outsidePace{quiet: time.Hour, held: 3}})
	for i := range 10 {
		w.put(fmt.Sprint(i), "x")
	}
	for over := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w.seen.mu.Lock()
		missed, n := w.seen.missed, len(w.seen.pending)
		w.seen.mu.Unlock()
		if missed != "" && n == 3 {
			break
		}
		if time.Now().After(over) {
			t.Fatal(missed, n)
		}
	}
	c := 0
	for _, s := range w.end() {
		if s == "outside_missed fs.watch" {
			c++
		}
	}
	if c != 1 {
		t.Errorf("%d are said", c)
	}
}

// TestOutsideWaits: a call that has not ended is waited for, and one that never
// ends is not waited for too long.
func TestOutsideWaits(t *testing.T) {
	base := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a.txt": "A"})
	w := watchWorld(t, base, OutsideOptions{pace: outsidePace{quiet: 50 * time.Millisecond, waits: time.Second}})
	journal := filepath.Join(w.state.Path(), "undo", "0000000000000000-x.jsonl")
	w.write("first", "x") // which makes the folder
	begin, err := os.ReadFile(w.journals()[0])
	w.must(err)
	line, _, _ := strings.Cut(string(begin), "\n")
	w.pause()
	w.must(os.WriteFile(journal, []byte(line+"\n"), 0o600)) // it begins, and never ends
	w.put("first", "somebody")
	time.Sleep(300 * time.Millisecond)
	w.seen.mu.Lock()
	n := len(w.seen.pending)
	w.seen.mu.Unlock()
	if n != 1 {
		t.Errorf("%d wait", n)
	}
	w.settled()
	w.wants(w.end(), "watching fs.watch 1", "outside fs.write project://first")
}

func (w *watched) journals() []string {
	all, err := filepath.Glob(filepath.Join(w.state.Path(), "undo", "*.jsonl"))
	w.must(err)
	return all
}

// TestOutsideUnreachable: names that no spelling reaches, and a file of postern's
// own, are counted without a name; a hashed log has no name at all.
func TestOutsideUnreachable(t *testing.T) {
	state, err := OpenState(stateBeside(t), StateOptions{HashedPaths: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	base := newWorld(t, rules{}, map[string]string{"policy": "x"}, func(o *Options) { o.Recorder, o.Locker, o.Keeper = state, state, state })
	base.must(base.gate.o.Workspace.Protect(base.path("policy")))
	w := watchWorld(t, &undoWorld{base, state}, OutsideOptions{})
	w.put("policy", "y")
	w.must(os.WriteFile(w.path("bad\xffname"), nil, 0o644))
	w.put("plain", "x")
	w.pause()
	told := w.end()
	total := 0
	for _, s := range told {
		var n int
		if _, err := fmt.Sscanf(s, "outside fs.watch %d", &n); err == nil {
			total += n
		}
		if strings.Contains(s, "project://") {
			t.Errorf("a name is told: %s", s)
		}
	}
	if total != 2 || !strings.Contains(strings.Join(told, "\n"), "outside fs.create path:") {
		t.Errorf("%q", told)
	}
}

// TestOutsideState: a state directory beneath the root is not watched, so that no
// record makes another one.
func TestOutsideState(t *testing.T) {
	dir := t.TempDir()
	base := newUndoWorld(t, filepath.Join(dir, "state"), UndoOptions{}, nil)
	top := filepath.Dir(dir) // which holds the folder of the world too
	root, err := pathguard.OpenRoot(top, pathguard.Options{Name: "project"})
	base.must(err)
	t.Cleanup(func() { _ = root.Close() })
	base.gate.o.Workspace, err = pathguard.NewWorkspace(root)
	base.must(err)
	base.must(base.gate.o.Workspace.Protect(base.state.Path()))
	w := watchWorld(t, base, OutsideOptions{})
	w.put("f", "x")
	w.pause()
	for range 3 {
		base.must(base.state.Problem()) // which writes what is recorded
		time.Sleep(150 * time.Millisecond)
	}
	rel, err := filepath.Rel(top, w.path("f"))
	base.must(err)
	w.wants(w.end(), "watching fs.watch 4", "outside fs.create project://"+rel)
}

// TestOutsideRoots: what is lost of a root is said, and the other is watched on.
func TestOutsideRoots(t *testing.T) {
	base := newUndoWorld(t, stateBeside(t), UndoOptions{}, nil)
	other := filepath.Join(t.TempDir(), "other")
	w := base.world
	w.must(os.Mkdir(other, 0o755))
	one, err := pathguard.OpenRoot(w.dir, pathguard.Options{Name: "project"})
	w.must(err)
	two, err := pathguard.OpenRoot(other, pathguard.Options{Name: "other"})
	w.must(err)
	t.Cleanup(func() { _, _ = one.Close(), two.Close() })
	w.gate.o.Workspace, err = pathguard.NewWorkspace(one, two)
	w.must(err)
	ww := watchWorld(t, base, OutsideOptions{})
	w.must(os.RemoveAll(other))
	w.put("here", "x")
	for over := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if folders, _ := ww.seen.Extent(); folders == 1 {
			break
		}
		if time.Now().After(over) {
			t.Fatal("nobody notices")
		}
	}
	ww.pause()
	told := strings.Join(ww.end(), "\n")
	if !strings.Contains(told, "outside_missed fs.watch") || !strings.Contains(told, "outside fs.create project://here") {
		t.Error(told)
	}
}
