// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/undo"
	"github.com/postern-gate/postern/internal/testenv"
)

// undoWorld is a world whose changes are kept.
type undoWorld struct {
	*world
	state *State
}

func newUndoWorld(t *testing.T, stateDir string, o UndoOptions, spec map[string]string) *undoWorld {
	t.Helper()
	state, err := OpenState(stateDir, StateOptions{Undo: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	w := newWorld(t, rules{}, spec, func(o *Options) { o.Recorder, o.Locker, o.Keeper = state, state, state })
	return &undoWorld{w, state}
}

func stateBeside(t *testing.T) string { return filepath.Join(t.TempDir(), "state") }

// elsewhere is a state directory on another file system.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "postern-test-") //nolint:usetesting // it is to be there
	if err != nil {
		testenv.Missing(t, "a second file system at /dev/shm")
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "state")
}

func person() Person {
	return Person{Subject: core.Subject{Source: "undo", Level: core.LevelSDK}, Decider: rules{}}
}

// undo takes back what is selected, and returns the id of the undo.
func (w *undoWorld) undo(sel UndoSelect) (string, *UndoPlan) {
	w.t.Helper()
	p, err := w.state.PlanUndo(w.t.Context(), sel, person())
	w.must(err)
	id, err := w.state.Undo(w.t.Context(), p, person())
	w.must(err)
	return id, p
}

// undoBy is undo by somebody, where nobody else is about: what is done is what the
// plan shows.
func (w *undoWorld) undoBy(sel UndoSelect, by Person) (string, *UndoPlan) {
	w.t.Helper()
	p, err := w.state.PlanUndo(w.t.Context(), sel, by)
	w.must(err)
	shown := slices.Clone(p.Steps)
	id, err := w.state.Undo(w.t.Context(), p, by)
	w.must(err)
	for i, s := range p.Steps {
		if i >= len(shown) || s.Problem != shown[i].Problem || s.Why != shown[i].Why || s.Done != (s.Problem == "") {
			w.t.Errorf("step %d is %+v, shown were %+v", i, s, shown)
		}
	}
	return id, p
}

// undone takes back what is selected, all of it.
func (w *undoWorld) undone(sel UndoSelect) string {
	w.t.Helper()
	id, p := w.undoBy(sel, person())
	if p.Problems() > 0 {
		w.t.Fatalf("problems: %+v", p.Steps)
	}
	return id
}

// files is the tree without the times of directories, which every change in
// them moves.
func (w *undoWorld) files() map[string]string {
	all := w.tree()
	for path, what := range all {
		if what[0] == 'd' {
			all[path], _, _ = strings.Cut(what, " ")
		}
	}
	return all
}

func (w *undoWorld) same(what string, before map[string]string) {
	w.t.Helper()
	after := w.files()
	for _, path := range sortedKeys(before, after) {
		if before[path] != after[path] {
			w.t.Errorf("%s: %s is %q, was %q", what, path, after[path], before[path])
		}
	}
}

func sortedKeys(all ...map[string]string) (keys []string) {
	for _, m := range all {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// places are the two kinds of state directories: what is displaced is moved to
// the one and copied to the other.
func places(t *testing.T) map[string]func(*testing.T) string {
	t.Helper()
	return map[string]func(*testing.T) string{"beside": stateBeside, "on another file system": elsewhere}
}

// TestUndoEach: every kind of change is taken back, and what took it back too.
func TestUndoEach(t *testing.T) {
	for place, at := range places(t) {
		for name, m := range mutations(t.Context()) {
			t.Run(place+"/"+name, func(t *testing.T) {
				w := newUndoWorld(t, at(t), UndoOptions{}, tree)
				w.must(os.Chmod(w.path("a.txt"), 0o640))
				w.must(os.Chtimes(w.path("a.txt"), time.Unix(1, 5), time.Unix(1000000000, 123456789)))
				before := w.files()
				out, err := m.do(w.gate, Call{Confirm: true})
				w.must(err)
				if !out.Undoable {
					if place == "beside" || !strings.Contains(out.UndoReason, "file system") {
						t.Fatalf("%+v", out)
					}
					return
				}
				changed := w.files()
				u := w.undone(UndoSelect{ID: out.UndoID})
				w.same("undone", before)
				r := w.undone(UndoSelect{ID: u})
				if m := w.files(); place == "beside" { // a copy or an append has a time of its own
					for path := range changed {
						if strings.Fields(m[path])[0] != strings.Fields(changed[path])[0] {
							t.Errorf("redone: %s is %q, was %q", path, m[path], changed[path])
						}
					}
				}
				w.undone(UndoSelect{ID: r})
				w.same("undone again", before)
				w.noTemps()
			})
		}
	}
}

func (w *undoWorld) noTemps() {
	w.t.Helper()
	for path := range w.tree() {
		if strings.Contains(path, ".postern-tmp-") {
			w.t.Errorf("left in the tree: %s", path)
		}
	}
}

// TestUndoModel: random changes, undos and redos, compared with what the tree
// was at each point.
func TestUndoModel(t *testing.T) {
	for place, at := range places(t) {
		t.Run(place, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				w := newUndoWorld(t, at(t), UndoOptions{}, map[string]string{"a": "A", "b": "B", "d/x": "X", "d/e/y": "Y", "l": "-> a"})
				m := &model{undoWorld: w, r: r}
				initial := w.files()
				for range rapid.IntRange(1, 12).Draw(r, "length") {
					m.step()
				}
				w.undoRest(m, initial)
				_ = w.state.Close()
			})
		})
	}
}

// model is what the tree was before each change that is in effect.
type model struct {
	*undoWorld
	r      *rapid.T
	before []map[string]string
	ids    []string
}

func (m *model) name() string {
	return rapid.SampledFrom([]string{"a", "b", "c", "l", "d", "d/x", "d/n", "d/e", "d/e/y", "f", "f/g", "f/g/h"}).Draw(m.r, "name")
}

func (m *model) step() {
	before := m.files()
	ctx, call := m.t.Context(), Call{Confirm: true}
	content := []byte(rapid.StringN(0, 20, 40).Draw(m.r, "content"))
	var out Outcome
	var err error
	switch op := rapid.SampledFrom([]string{"write", "append", "edit", "mkdir", "move", "copy", "delete", "undo", "redo"}).Draw(m.r, "op"); op {
	case "write":
		out, err = m.gate.Write(ctx, m.name(), content, call)
	case "append":
		out, err = m.gate.Append(ctx, m.name(), append(content, 'x'), call)
	case "edit":
		out, err = m.gate.Edit(ctx, m.name(), func(b []byte) ([]byte, error) { return append(content, b...), nil }, call)
	case "mkdir":
		out, err = m.gate.MakeDir(ctx, m.name(), call)
	case "move":
		out, err = m.gate.Move(ctx, m.name(), m.name(), call)
	case "copy":
		out, err = m.gate.Copy(ctx, m.name(), m.name(), call)
	case "delete":
		out, err = m.gate.Delete(ctx, m.name(), true, call)
	default:
		m.back(op == "redo")
		return
	}
	switch {
	case err != nil:
		m.same("refused", before)
	case out.UndoID != "":
		m.before, m.ids = append(m.before, before), append(m.ids, out.UndoID)
	case out.UndoReason != "": // what came before it can't be checked any more
		m.before, m.ids = nil, nil
	}
}

// back takes the newest change back, and perhaps that too.
func (m *model) back(redo bool) {
	if len(m.ids) == 0 {
		return
	}
	after := m.files()
	last := len(m.ids) - 1
	u := m.undone(UndoSelect{ID: m.ids[last]})
	m.same("undone", m.before[last])
	if redo {
		r := m.undone(UndoSelect{ID: u})
		m.alike("redone", after)
		m.ids[last] = r
		return
	}
	m.ids, m.before = m.ids[:last], m.before[:last]
}

// alike leaves times out: what is added again is added now.
func (m *model) alike(what string, want map[string]string) {
	m.t.Helper()
	got := m.files()
	for _, path := range sortedKeys(want, got) {
		a, b := strings.Fields(want[path]), strings.Fields(got[path])
		if len(a) != len(b) || len(a) > 0 && (a[0] != b[0] || a[len(a)-1] != b[len(b)-1] && len(a) > 2) {
			m.t.Errorf("%s: %s is %q, was %q", what, path, b, a)
		}
	}
}

// undoRest takes back the session, which is what is left.
func (w *undoWorld) undoRest(m *model, initial map[string]string) {
	w.t.Helper()
	for i := len(m.ids) - 1; i >= 0; i-- {
		w.undone(UndoSelect{ID: m.ids[i]})
		w.same("undone at the end", m.before[i])
	}
	w.noTemps()
}

// TestUndoSession: a session that did everything at once is taken back by one
// undo, and that by another.
func TestUndoSession(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, tree)
	before := w.files()
	session := ""
	for i := range 20 {
		name := fmt.Sprintf("f%d", i%5)
		out, err := w.gate.Write(t.Context(), name, []byte(fmt.Sprint(i)), Call{})
		w.must(err)
		session = prefixOf(out.UndoID)
	}
	after := w.files()
	u := w.undone(UndoSelect{Session: session})
	w.same("undone", before)
	w.undone(UndoSelect{ID: u})
	w.same("redone", after)
	w.undone(UndoSelect{Session: session})
	w.same("undone again", before)
}

// TestUndoLengthened: a session that lengthened a file, and then made it shorter than
// what it had added, is undone whole at once, and by its plan.
func TestUndoLengthened(t *testing.T) {
	for place, at := range places(t) {
		t.Run(place, func(t *testing.T) {
			w := newUndoWorld(t, at(t), UndoOptions{}, map[string]string{"h": "3\n"})
			before := w.files()
			out, err := w.gate.Append(t.Context(), "h", []byte("a longer line than what follows\n"), Call{})
			w.must(err)
			_, err = w.gate.Write(t.Context(), "h", []byte("x\n"), Call{})
			w.must(err)
			after := w.files()
			u := w.undone(UndoSelect{Session: prefixOf(out.UndoID)})
			w.same("undone", before)
			w.undone(UndoSelect{ID: u})
			w.same("redone", after)
		})
	}
}

// TestUndoConflict: what changed since is left alone, and the others are done.
func TestUndoConflict(t *testing.T) {
	for place, at := range places(t) {
		t.Run(place, func(t *testing.T) {
			w := newUndoWorld(t, at(t), UndoOptions{}, map[string]string{"a": "A", "b": "B", "c": "C", "m": "M"})
			for _, n := range []string{"a", "b", "new"} {
				_, err := w.gate.Write(t.Context(), n, []byte("agent"), Call{})
				w.must(err)
			}
			_, err := w.gate.Delete(t.Context(), "c", false, Call{Confirm: true})
			w.must(err)
			out, err := w.gate.Move(t.Context(), "m", "moved", Call{})
			w.must(err)
			w.put("a", "person")
			w.put("new", "person")
			w.put("c", "person")
			w.put("m", "person")
			_, p := w.undo(UndoSelect{Session: prefixOf(out.UndoID)})
			if p.Problems() != 4 {
				t.Errorf("%+v", p.Steps)
			}
			for _, s := range p.Steps {
				if (s.Problem == "") != (s.Name == "project://b") || s.Problem != "" && s.Problem != UndoConflict {
					t.Errorf("%+v", s)
				}
			}
			for name, want := range map[string]string{"a": "person", "new": "person", "c": "person", "m": "person", "moved": "M", "b": "B"} {
				if got := w.read(name); got != want {
					t.Errorf("%s is %q", name, got)
				}
			}
		})
	}
}

// TestUndoImage: an image that was edited or removed is an error for its file,
// and never a delete.
func TestUndoImage(t *testing.T) {
	for place, at := range places(t) {
		for what, harm := range map[string]func(path string) error{
			"edited":  func(p string) error { return os.WriteFile(p, []byte("Z"), 0o600) },
			"removed": os.Remove,
			"replaced": func(p string) error {
				_ = os.Remove(p)
				return os.WriteFile(p, []byte("A"), 0o600)
			},
		} {
			t.Run(place+"/"+what, func(t *testing.T) {
				w := newUndoWorld(t, at(t), UndoOptions{}, map[string]string{"a": "A"})
				out, err := w.gate.Write(t.Context(), "a", []byte("new"), Call{})
				w.must(err)
				images, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/images/*"))
				w.must(err)
				if len(images) != 1 {
					t.Fatalf("%q", images)
				}
				w.must(harm(images[0]))
				id, p := w.undo(UndoSelect{ID: out.UndoID})
				if p.Problems() != 1 || id != "" || w.read("a") != "new" {
					t.Errorf("%q %+v %q", id, p.Steps, w.read("a"))
				}
			})
		}
	}
}

// TestUndoBounds: what is beyond the bounds is said before, needs confirm, and
// changes nothing without it.
func TestUndoBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		o   UndoOptions
		why string
		do  func(*Gate, Call) (Outcome, error)
	}{
		"per file": {UndoOptions{PerFile: 3}, "undo.per_file", func(g *Gate, c Call) (Outcome, error) { return g.Write(t.Context(), "a", []byte("x"), c) }},
		"total":    {UndoOptions{Total: 3}, "undo.total", func(g *Gate, c Call) (Outcome, error) { return g.Write(t.Context(), "a", []byte("x"), c) }},
		"none":     {UndoOptions{PerFile: -1}, "undo.per_file", func(g *Gate, c Call) (Outcome, error) { return g.Write(t.Context(), "a", []byte("x"), c) }},
		"a delete": {UndoOptions{PerFile: 3}, "undo.per_file", func(g *Gate, c Call) (Outcome, error) { return g.Delete(t.Context(), "a", false, c) }},
		"entries":  {UndoOptions{MaxEntries: 2}, "undo.max_entries", func(g *Gate, c Call) (Outcome, error) { return g.Delete(t.Context(), "d", true, c) }},
		"in it":    {UndoOptions{PerFile: 3}, "undo.per_file", func(g *Gate, c Call) (Outcome, error) { return g.Delete(t.Context(), "d", true, c) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), tc.o, map[string]string{"a": "AAAA", "d/1": "1111", "d/2": "2"})
			before := w.files()
			out, err := tc.do(w.gate, Call{Confirm: true, DryRun: true})
			w.must(err)
			if out.Undoable || out.Class != core.Destructive || !strings.Contains(out.UndoReason, tc.why) {
				t.Errorf("dry run: %+v", out)
			}
			_, err = tc.do(w.gate, Call{})
			if fault.CodeOf(err) != fault.ConfirmMissing || !strings.Contains(fault.As(err).Rule, "PRECONDITION_FAILED") || !strings.Contains(fault.As(err).Rule, tc.why) {
				t.Errorf("without confirm: %v", err)
			}
			w.same("refused", before)
			out, err = tc.do(w.gate, Call{Confirm: true})
			w.must(err)
			if out.Undoable || out.UndoID != "" || !strings.Contains(out.UndoReason, tc.why) {
				t.Errorf("with confirm: %+v", out)
			}
			p, err := w.state.PlanUndo(t.Context(), UndoSelect{Last: true}, person())
			w.must(err)
			if len(p.Steps) != 1 || p.Steps[0].Problem != UndoUncovered {
				t.Errorf("%+v", p.Steps)
			}
			// Control: within the bounds.
			w = newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "AAAA", "d/1": "1111", "d/2": "2"})
			if out, err = tc.do(w.gate, Call{Confirm: true}); err != nil || !out.Undoable {
				t.Errorf("control: %+v, %v", out, err)
			}
		})
	}
}

// TestUndoHardlink: a file with another name is copied, so that a change of that
// one doesn't change the image.
func TestUndoHardlink(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A"})
	other := filepath.Join(t.TempDir(), "other")
	w.must(os.Link(w.path("a"), other))
	out, err := w.gate.Write(t.Context(), "a", []byte("new"), Call{})
	w.must(err)
	w.must(os.WriteFile(other, []byte("changed"), 0o644))
	w.undone(UndoSelect{ID: out.UndoID})
	if got := w.read("a"); got != "A" {
		t.Errorf("a is %q", got)
	}
	if got, _ := os.ReadFile(other); string(got) != "changed" {
		t.Errorf("the other name has %q", got)
	}
}

// TestUndoTwice: of two that undo the same at once one does it.
func TestUndoTwice(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A"})
	out, err := w.gate.Write(t.Context(), "a", []byte("new"), Call{})
	w.must(err)
	second, err := OpenState(w.state.Path(), StateOptions{})
	w.must(err)
	defer second.Close()
	done := make(chan string, 2)
	for _, s := range []*State{w.state, second} {
		p, err := s.PlanUndo(t.Context(), UndoSelect{ID: out.UndoID}, person())
		w.must(err)
		go func() {
			id, err := s.Undo(t.Context(), p, person())
			if err != nil {
				t.Error(err)
			}
			done <- id
		}()
	}
	if a, b := <-done, <-done; (a == "") == (b == "") {
		t.Errorf("ids %q and %q", a, b)
	}
	if w.read("a") != "A" {
		t.Error(w.read("a"))
	}
}

// TestUndoTorn: what a crash or a disk made of a journal hides what it held, and
// nothing else.
func TestUndoTorn(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "b": "B"})
	first, err := w.gate.Write(t.Context(), "a", []byte("new"), Call{})
	w.must(err)
	second, err := w.gate.Write(t.Context(), "b", []byte("new"), Call{})
	w.must(err)
	names, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/*.jsonl"))
	w.must(err)
	text, err := os.ReadFile(names[0])
	w.must(err)
	w.must(os.WriteFile(names[0], text[:len(text)-20], 0o600))
	x, err := undo.Read(w.state.Path())
	w.must(err)
	if x.Damaged != 1 || len(x.Txns) != 2 {
		t.Errorf("%d damaged, %d changes", x.Damaged, len(x.Txns))
	}
	if _, p := w.undo(UndoSelect{ID: second.UndoID}); p.Problems() != 1 || p.Steps[0].Problem != UndoRunning {
		t.Errorf("%+v", p.Steps)
	}
	w.undone(UndoSelect{ID: first.UndoID})
	if w.read("a") != "A" || w.read("b") != "new" {
		t.Error(w.read("a"), w.read("b"))
	}
}

// TestUndoDirectories: a folder is taken away only with what it held when it was
// made or came back.
func TestUndoDirectories(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/f": "F", "d/e/g": "G"})
	made, err := w.gate.MakeDir(t.Context(), "m", Call{})
	w.must(err)
	w.put("m/person", "x")
	if u, p := w.undo(UndoSelect{ID: made.UndoID}); u != "" || p.Problems() != 1 || w.read("m/person") != "x" {
		t.Errorf("%q %+v", u, p.Steps)
	}
	w.must(os.Remove(w.path("m/person"))) // control
	w.undone(UndoSelect{ID: made.UndoID})

	u := w.undone(UndoSelect{ID: w.delete("d")})
	time.Sleep(20 * time.Millisecond) // longer than a tick of the file system's clock
	w.put("d/e/g", "person")
	if again, p := w.undo(UndoSelect{ID: u}); again != "" || p.Problems() != 1 || w.read("d/e/g") != "person" {
		t.Errorf("%q %+v", again, p.Steps)
	}
	u = w.undone(UndoSelect{ID: w.delete("d")}) // control
	w.undone(UndoSelect{ID: u})
	if _, err := os.Lstat(w.path("d")); err == nil {
		t.Error("it is still there")
	}
}

// TestUndoRemoved: what somebody removed of the images and journals can't be
// undone, and what comes after is kept again.
func TestUndoRemoved(t *testing.T) {
	for _, what := range []string{"undo", "undo/images", "undo/*.jsonl"} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A"})
		lost := w.write("a", "1")
		paths, err := filepath.Glob(filepath.Join(w.state.Path(), what))
		w.must(err)
		for _, p := range paths {
			w.must(os.RemoveAll(p))
		}
		id := w.write("a", "2")
		w.undone(UndoSelect{ID: id})
		if w.read("a") != "1" {
			t.Errorf("%s: %q", what, w.read("a"))
		}
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: lost}, person())
		if err == nil && p.Problems() != 1 || err != nil && fault.CodeOf(err) != fault.PathMissing {
			t.Errorf("%s: %v", what, err)
		}
	}
}
