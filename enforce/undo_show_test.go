// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/state/grant"
)

func (w *undoWorld) appended(name, content string) string {
	w.t.Helper()
	out, err := w.gate.Append(w.t.Context(), name, []byte(content), Call{})
	w.must(err)
	return out.UndoID
}

func (w *undoWorld) moved(from, to string) string {
	w.t.Helper()
	out, err := w.gate.Move(w.t.Context(), from, to, Call{})
	w.must(err)
	return out.UndoID
}

// shown is the plan with what it changes.
func (w *undoWorld) shown(sel UndoSelect) *UndoPlan {
	w.t.Helper()
	p, err := w.state.PlanUndo(w.t.Context(), sel, person())
	w.must(err)
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Change+s.Unshown != "" {
			w.t.Errorf("%s: filled in unasked: %q, %q", s.Name, s.Change, s.Unshown)
		}
	}
	by := person()
	by.Decider = private{rules{}}
	w.state.ShowUndo(p, by, nil)
	return p
}

// TestShowUndo: what a step changes in a file is shown as a card shows it, of
// each kind of change, and of what takes that back.
func TestShowUndo(t *testing.T) {
	const cut = "\n\\ No newline at end of file\n"
	for place, at := range places(t) {
		for name, tc := range map[string]struct {
			do            func(w *undoWorld) string
			undo, unshown string
			redo          string
		}{
			"write":  {func(w *undoWorld) string { return w.write("a", "new\n") }, "-new\n+old\n", "", "-old\n+new\n"},
			"append": {func(w *undoWorld) string { return w.appended("a", "more") }, "-old\n-more" + cut + "+old\n", "", "-old\n+old\n+more" + cut},
			"create": {func(w *undoWorld) string { return w.write("new", "n\n") }, "-n\n", "", "+n\n"},
			"delete": {func(w *undoWorld) string { return w.delete("a") }, "+old\n", "", "-old\n"},
			"empty":  {func(w *undoWorld) string { return w.write("new", "") }, "it is empty", "", "it is empty"},
			"same":   {func(w *undoWorld) string { return w.write("a", "old\n") }, "nothing in it changes", "", "nothing in it changes"},
			"move":   {func(w *undoWorld) string { return w.moved("a", "b") }, "", "", ""},
			"folder": {func(w *undoWorld) string { return w.delete("e") }, "", "", ""},
			"secret": {func(w *undoWorld) string { return w.write(".env", "NEW") }, "", onlyPrivate, ""},
			"token":  {func(w *undoWorld) string { return w.write(".npmrc", "_authToken=NEW") }, "", onlyPrivate, ""},
			".npmrc": {func(w *undoWorld) string { return w.write(".npmrc", "new\n") }, "-new\n", "", "+new\n"},
			"huge":   {func(w *undoWorld) string { return w.write("huge", "x") }, "", hugeChange, ""},
		} {
			t.Run(place+"/"+name, func(t *testing.T) {
				w := newUndoWorld(t, at(t), UndoOptions{}, map[string]string{"a": "old\n", ".env": "OLD", "huge": ""})
				w.must(os.Mkdir(w.path("e"), 0o755))
				w.must(os.Truncate(w.path("huge"), MaxEdit+1))
				id := tc.do(w)
				s := w.shown(UndoSelect{ID: id}).Steps[0]
				if s.Change != tc.undo || s.Unshown != tc.unshown || s.Problem != "" {
					t.Errorf("undo: %q, %q", s.Change, s.Unshown)
				}
				if s = w.shown(UndoSelect{ID: w.undone(UndoSelect{ID: id})}).Steps[0]; s.Change != tc.redo || s.Unshown != tc.unshown || s.Problem != "" {
					t.Errorf("redo: %q, %q", s.Change, s.Unshown)
				}
			})
		}
	}
}

// TestShowUndoOfMany: each step starts from what the steps above leave; what
// can't be told before they are done isn't, and a step that is left out has none.
func TestShowUndoOfMany(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "1\n", "c": "1\n", "d/x": "1\n"})
	w.write("a", "2\n")
	w.appended("a", "3\n")
	w.moved("a", "b")
	w.write("b", "4\n")
	w.write("c", "2\n")
	w.write("c", "3\n")
	w.write("d/x", "2\n")
	session := prefixOf(w.delete("d"))
	w.put("c", "somebody's\n")
	var got []string
	p := w.shown(UndoSelect{Session: session})
	for _, s := range p.Steps {
		got = append(got, s.Verb+" "+strings.TrimPrefix(s.Name, "project://")+" "+s.Problem+s.Change+s.Unshown)
	}
	want := []string{
		"recreate d ", "restore d/x " + onlyAfterRun, "restore c conflict", "restore c conflict",
		"restore b -4\n+2\n+3\n", "rename back b ", "shorten a -2\n-3\n+2\n", "restore a -2\n+1\n",
	}
	if !slices.Equal(got, want) || p.Unshown != 0 {
		t.Errorf("%q\n%q, %d", got, want, p.Unshown)
	}
}

// TestShowUndoOfMoved: nor is shown what lies under a name of a built-in list now.
func TestShowUndoOfMoved(t *testing.T) {
	for to, want := range map[string][2]string{".env": {"", onlyPrivate}, "b": {"-new\n+old\n", ""}} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "old\n"})
		w.write("a", "new\n")
		p := w.shown(UndoSelect{Session: prefixOf(w.moved("a", to))})
		if s := p.Steps[1]; s.Change != want[0] || s.Unshown != want[1] {
			t.Errorf("%s: %q, %q", to, s.Change, s.Unshown)
		}
	}
}

// TestShowUndoBounds: of many steps, of much that would be drawn, and of much that
// would be read, the first are shown, and the rest is counted; one is cut as on a card.
func TestShowUndoBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		steps, size, shown int
		unshown            string
	}{
		"few":   {3, 10, 3, ""},
		"many":  {maxShownSteps + 3, 1, maxShownSteps, ""},
		"long":  {10, grant.MaxQuestion - 100, 8, ""},
		"cut":   {2, grant.MaxQuestion - 1, 2, "the rest of the change: 1 lines, 131073 bytes"},
		"large": {2, grant.MaxQuestion, 2, onlySizes},
		"read":  {6, MaxEdit - 2, 4, onlySizes},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, nil)
			session := ""
			for i := range tc.steps {
				session = prefixOf(w.write(fmt.Sprint(i), strings.Repeat("x", tc.size)+"\n"))
			}
			p, shown := w.shown(UndoSelect{Session: session}), 0
			for _, s := range p.Steps {
				if s.Change+s.Unshown != "" {
					shown++
				}
				if s.Change+s.Unshown != "" && s.Unshown != tc.unshown || len(s.Change) > grant.MaxQuestion {
					t.Errorf("%d bytes are shown, %q not", len(s.Change), s.Unshown)
				}
			}
			if shown != tc.shown || p.Unshown != tc.steps-tc.shown {
				t.Errorf("%d are shown, %d not", shown, p.Unshown)
			}
		})
	}
}
