// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/state/undo"
)

// TestUndoElsewhere: an undo reaches the folder that the change was made in, and
// no other that stands at its path since.
func TestUndoElsewhere(t *testing.T) {
	other := func(w *undoWorld) string {
		dir := filepath.Join(t.TempDir(), "public")
		w.must(os.MkdirAll(filepath.Join(dir, "root", "d"), 0o777))
		return dir
	}
	for name, harm := range map[string]func(w *undoWorld){
		"nothing":   func(*undoWorld) {},
		"root link": func(w *undoWorld) { p := other(w); w.must(os.Rename(w.dir, w.dir+"-m")); w.must(os.Symlink(p, w.dir)) },
		"parent link": func(w *undoWorld) {
			p, up := other(w), filepath.Dir(w.dir)
			w.must(os.Rename(up, up+"-m"))
			w.must(os.Symlink(p, up))
		},
		"other root":   func(w *undoWorld) { w.must(os.Rename(w.dir, w.dir+"-m")); w.must(os.MkdirAll(w.path("d"), 0o777)) },
		"other folder": func(w *undoWorld) { w.must(os.Rename(w.path("d"), w.path("m"))); w.must(os.Mkdir(w.path("d"), 0o777)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/secret": "S", "d/f": "F", "e/x": "X"})
			ids := []string{w.delete("d/secret")}
			out, err := w.gate.Move(t.Context(), "d/f", "e/f", Call{Confirm: true})
			w.must(err)
			ids = append(ids, out.UndoID)
			harm(w)
			for _, id := range ids {
				if name == "nothing" { // control
					w.undone(UndoSelect{ID: id})
					continue
				}
				p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
				w.must(err)
				if len(p.Steps) != 1 || p.Steps[0].Problem != UndoConflict {
					t.Errorf("plan: %+v", p.Steps)
				}
				if u, p := w.undo(UndoSelect{ID: id}); u != "" || p.Problems() != 1 || p.Steps[0].Problem != UndoConflict {
					t.Errorf("%q %+v", u, p.Steps)
				}
			}
			for _, f := range []string{"d/secret", "d/f"} {
				if _, err := os.Stat(w.path(f)); (err == nil) != (name == "nothing") {
					t.Errorf("%s: %v", f, err)
				}
			}
		})
	}
}

// cut leaves of the journal what a power cut does: how it ended is lost, and
// what the new file was where that was not synced; a later process looks.
func (w *undoWorld) cut(lines int, harm func()) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/*.jsonl"))
	w.must(err)
	b, err := os.ReadFile(names[0])
	w.must(err)
	w.afterCrash(names[0], []byte(strings.Join(strings.SplitAfter(string(b), "\n")[:lines], "")), harm)
}

// afterCrash is a later process that finds this of a journal, once the harm is
// done.
func (w *undoWorld) afterCrash(journal string, text []byte, harm func()) {
	w.t.Helper()
	w.must(w.state.Close())
	w.must(os.WriteFile(journal, text, 0o600))
	var err error
	w.state, err = OpenState(w.state.Path(), StateOptions{})
	w.must(err)
	w.t.Cleanup(func() { _ = w.state.Close() })
	harm()
	l := undo.Open(w.state.Path(), UndoOptions{}.log(), func() (map[string]bool, error) { return nil, nil })
	defer l.Close()
	a := newAftermath(nil)
	defer a.close()
	w.must(l.Recover(w.t.Context(), a.top))
}

// TestUndoNotMine: after a crash what a person wrote since is not taken for the
// agent's, and a root that is away then is looked at again.
func TestUndoNotMine(t *testing.T) {
	for name, tc := range map[string]struct {
		lines int
		harm  func(w *undoWorld)
		want  string
	}{
		"control":  {2, func(*undoWorld) {}, "OLD"},
		"unknown":  {1, func(*undoWorld) {}, "new"},
		"in place": {2, func(w *undoWorld) { w.put("a", "PERSON") }, "PERSON"},
		"replaced": {2, func(w *undoWorld) { w.put("t", "PERSON"); w.must(os.Rename(w.path("t"), w.path("a"))) }, "PERSON"},
	} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "OLD"})
		w.write("a", "new")
		w.cut(tc.lines, func() { tc.harm(w) })
		_, p := w.undo(UndoSelect{Last: true})
		if w.read("a") != tc.want || (p.Problems() == 0) != (name == "control") {
			t.Errorf("%s: %q %+v", name, w.read("a"), p.Steps)
		}
	}
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "OLD"})
	w.write("a", "new")
	w.cut(2, func() { w.must(os.Rename(w.dir, w.dir+"-away")) })
	w.must(os.Rename(w.dir+"-away", w.dir))
	w.cut(2, func() {})
	w.undone(UndoSelect{Last: true})
	if w.read("a") != "OLD" {
		t.Error(w.read("a"))
	}
}

// TestUndoFolderNotMine: a folder that is there after a crash may be a person's:
// they look.
func TestUndoFolderNotMine(t *testing.T) {
	for name, harm := range map[string]func(w *undoWorld){
		"before it was made": func(w *undoWorld) { w.must(os.Remove(w.path("d"))); w.put("d/", "") },
		"after":              func(*undoWorld) {},
	} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, nil)
		made, err := w.gate.MakeDir(t.Context(), "d", Call{})
		w.must(err)
		w.cut(1, func() { harm(w) })
		_, p := w.undo(UndoSelect{ID: made.UndoID})
		if len(p.Steps) != 1 || p.Steps[0].Problem != UndoAttention {
			t.Errorf("%s: %+v", name, p.Steps)
		}
		if _, err := os.Lstat(w.path("d")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, nil)
	made, err := w.gate.MakeDir(t.Context(), "d", Call{})
	w.must(err)
	w.cut(1, func() { w.must(os.Remove(w.path("d"))) })
	if _, p := w.undo(UndoSelect{ID: made.UndoID}); len(p.Steps) != 0 {
		t.Errorf("one that is not there: %+v", p.Steps)
	}
}

// TestUndoRedoSession: what an undo brought back and changed then is taken away
// again by its redo; what somebody changed since is not.
func TestUndoRedoSession(t *testing.T) {
	for _, person := range []bool{false, true} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/e/f": "F", "d/g": "G"})
		session := prefixOf(w.write("d/e/f", "1"))
		w.delete("d")
		u := w.undone(UndoSelect{Session: session})
		if person {
			w.put("d/g", "person")
		}
		_, p := w.undo(UndoSelect{ID: u})
		if _, err := os.Stat(w.path("d")); (err == nil) != person || (p.Problems() > 0) != person {
			t.Errorf("person %t: %+v %v", person, p.Steps, err)
		}
	}
}

// TestUndoFinal: what an undo would take away for good is left out.
func TestUndoFinal(t *testing.T) {
	for place, at := range places(t) {
		w := newUndoWorld(t, at(t), UndoOptions{PerFile: 10}, nil)
		id := w.write("big", strings.Repeat("x", 100))
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
		w.must(err)
		u, done := w.undo(UndoSelect{ID: id})
		kept := place == "beside"
		if (u != "") != kept || (p.Problems() == 0) != kept || !kept && (p.Steps[0].Problem != UndoFinal || done.Steps[0].Problem != UndoFinal) {
			t.Errorf("%s: %q %+v %+v", place, u, p.Steps, done.Steps)
		}
		if _, err := os.Stat(w.path("big")); (err != nil) != kept {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// TestUndoLinkedDelete: a deleted file with another name comes back whatever
// happens to that, and a folder with one is said to be not covered.
func TestUndoLinkedDelete(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "d/a": "A"})
	link := filepath.Join(t.TempDir(), "other")
	w.must(os.Link(w.path("a"), link))
	id := w.delete("a")
	w.must(os.WriteFile(link, []byte("X"), 0o644))
	w.undone(UndoSelect{ID: id})
	if w.read("a") != "A" {
		t.Error(w.read("a"))
	}
	w.must(os.Link(w.path("d/a"), link+"2"))
	out, err := w.gate.Delete(t.Context(), "d", true, Call{Confirm: true, DryRun: true})
	w.must(err)
	if out.Undoable || !strings.Contains(out.UndoReason, "another name") {
		t.Errorf("%+v", out)
	}
	w.must(os.Remove(link + "2")) // control
	if out, err = w.gate.Delete(t.Context(), "d", true, Call{Confirm: true}); err != nil || !out.Undoable {
		t.Errorf("%+v %v", out, err)
	}
}

// TestUndoRemadeFolder: a folder that an undo made anew is the one that was made
// before, also where it could not get the same inode again.
func TestUndoRemadeFolder(t *testing.T) {
	for place, at := range places(t) {
		w := newUndoWorld(t, at(t), UndoOptions{}, nil)
		out, err := w.gate.MakeDir(t.Context(), "m", Call{})
		w.must(err)
		gone := w.delete("m")
		for i := range 20 { // which take what inodes are free
			w.put(fmt.Sprintf("other-%d/", i), "")
		}
		w.undone(UndoSelect{ID: gone})
		if _, p := w.undo(UndoSelect{ID: out.UndoID}); p.Problems() > 0 {
			t.Errorf("%s: %+v", place, p.Steps)
		}
		if _, err := os.Lstat(w.path("m")); err == nil {
			t.Errorf("%s: it is still there", place)
		}
	}
}
