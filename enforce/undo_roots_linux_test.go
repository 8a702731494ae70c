// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// rootsWorld is a world whose gate has a second root.
type rootsWorld struct {
	*undoWorld
	other string
}

// newRootsWorld makes the other root beside the first, or beneath it.
func newRootsWorld(t *testing.T, beneath bool) *rootsWorld {
	t.Helper()
	w := &rootsWorld{undoWorld: newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"f": "F", "d/e/x": "X"})}
	if w.other = w.dir + "-other"; beneath {
		w.other = w.path("other")
	}
	w.must(os.Mkdir(w.other, 0o755))
	var roots []*pathguard.Root
	for name, dir := range map[string]string{"project": w.dir, "other": w.other} {
		root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: name})
		w.must(err)
		t.Cleanup(func() { _ = root.Close() })
		roots = append(roots, root)
	}
	ws, err := pathguard.NewWorkspace(roots...)
	w.must(err)
	w.gate, err = New(Options{Workspace: ws, Decider: rules{}, Recorder: w.state, Locker: w.state, Keeper: w.state})
	w.must(err)
	return w
}

// both is what is in both roots.
func (w *rootsWorld) both() map[string]string {
	all := w.files()
	dir := w.dir
	w.dir = w.other
	maps.Copy(all, w.files())
	w.dir = dir
	return all
}

func (w *rootsWorld) move(from, to string) string {
	w.t.Helper()
	out, err := w.gate.Move(w.t.Context(), from, to, Call{Confirm: true})
	w.must(err)
	if !out.Undoable {
		w.t.Fatalf("%+v", out)
	}
	return out.UndoID
}

// TestUndoBetweenRoots: a move from one root to another is taken back, and so is
// that, as often as somebody likes.
func TestUndoBetweenRoots(t *testing.T) {
	for name, tc := range map[string]struct {
		beneath  bool
		from, to string
	}{
		"file":         {false, "project://f", "other://g"},
		"folder":       {false, "project://d", "other://d"},
		"into beneath": {true, "project://f", "other://g"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRootsWorld(t, tc.beneath)
			before := w.both()
			id := w.move(tc.from, tc.to)
			after := w.both()
			for range 2 {
				u := w.undone(UndoSelect{ID: id})
				if now := w.both(); !maps.Equal(now, before) {
					t.Errorf("undone: %v", diff(now, before))
				}
				id = w.undone(UndoSelect{ID: u})
				if now := w.both(); !maps.Equal(now, after) {
					t.Errorf("redone: %v", diff(now, after))
				}
			}
			u := w.move(tc.to, tc.from) // and the other way round
			w.undone(UndoSelect{ID: u})
			w.undone(UndoSelect{ID: id})
			if now := w.both(); !maps.Equal(now, before) {
				t.Errorf("undone: %v", diff(now, before))
			}
		})
	}
}

// TestUndoOtherRootAstray: the other root is looked at like the first, and the plan
// says what the undo does.
func TestUndoOtherRootAstray(t *testing.T) {
	for name, tc := range map[string]struct {
		harm func(w *rootsWorld)
		want string
	}{
		"nothing": {func(*rootsWorld) {}, ""},
		"another": {func(w *rootsWorld) {
			w.must(os.Rename(w.other, w.other+"-away"))
			w.must(os.Mkdir(w.other, 0o755))
			w.must(os.Link(w.other+"-away/g", w.other+"/g"))
		}, undo.RuleRoot},
		"a link": {func(w *rootsWorld) {
			w.must(os.Rename(w.other, w.other+"-away"))
			w.must(os.Symlink(w.other+"-away", w.other))
		}, undo.RuleLeads},
		"an older journal": {func(w *rootsWorld) {
			w.reword(func(step map[string]any) { delete(step, "to_top") })
		}, undo.RuleUntold},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRootsWorld(t, false)
			id := w.move("project://f", "other://g")
			tc.harm(w)
			p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
			w.must(err)
			planned := p.Steps[0].Why
			u, p := w.undo(UndoSelect{ID: id})
			if planned != tc.want || p.Steps[0].Why != tc.want || (u == "") != (tc.want != "") {
				t.Errorf("%q, planned %q: %+v", u, planned, p.Steps)
			}
			if _, err := os.Lstat(w.path("f")); (err == nil) != (tc.want == "") {
				t.Error(err)
			}
		})
	}
}

// TestUndoBetweenRootsKilled: a move to another root of which nobody wrote down
// that it ended is settled.
func TestUndoBetweenRootsKilled(t *testing.T) {
	w := newRootsWorld(t, false)
	id := w.move("project://f", "other://g")
	w.cut(1, func() {})
	w.undone(UndoSelect{ID: id})
	if w.read("f") != "F" {
		t.Error(w.read("f"))
	}
	if left, err := filepath.Glob(filepath.Join(w.other, "*")); err != nil || left != nil {
		t.Error(left, err)
	}
}

// reword changes the steps of the one journal.
func (w *undoWorld) reword(change func(step map[string]any)) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/*.jsonl"))
	w.must(err)
	b, err := os.ReadFile(names[0])
	w.must(err)
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		var l map[string]any
		d := json.NewDecoder(strings.NewReader(line[9:]))
		d.UseNumber()
		w.must(d.Decode(&l))
		steps, _ := l["steps"].([]any)
		for _, s := range steps {
			change(s.(map[string]any))
		}
		out := inJSON(w.t.(*testing.T), l)
		fmt.Fprintf(&text, "%08x %s\n", crc32.Checksum([]byte(out), crc32.MakeTable(crc32.Castagnoli)), out)
	}
	w.must(os.WriteFile(names[0], []byte(text.String()), 0o600))
}
