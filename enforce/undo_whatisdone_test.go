// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"os"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/policy"
)

// problems are those of a plan's steps.
func problems(p *UndoPlan) string {
	var all []string
	for _, s := range p.Steps {
		all = append(all, strings.TrimPrefix(strings.TrimPrefix(s.Problem+": "+s.Why, ": "), UndoConflict+": "))
	}
	return strings.Join(all, "|")
}

// TestUndoPlanLooksWithin: the plan shows what an undo will not do, be it for what lies
// in a folder by now, for a name that the policy protects, or for a step above it that
// is left out; and as it is once the steps above are done.
func TestUndoPlanLooksWithin(t *testing.T) {
	denied := shippedWith(t, policy.Config{Layers: []policy.Layer{{Deny: []policy.Pattern{{Text: "d/run.sh"}}}}})
	protected := "something would get a name that the policy protects; next: look at what would be project://d/run.sh first"
	do := func(w *undoWorld, harm ...string) func(Outcome, error) {
		return func(_ Outcome, err error) {
			w.t.Helper()
			w.must(err)
			for _, name := range harm {
				w.put(name, "somebody's")
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, w *undoWorld)
		want   string
	}{
		"a new folder": {func(t *testing.T, w *undoWorld) { do(w)(w.gate.MakeDir(t.Context(), "n/m", Call{})) }, "|"},
		"a new folder that holds something": {func(t *testing.T, w *undoWorld) {
			do(w, "n/m/x")(w.gate.MakeDir(t.Context(), "n/m", Call{}))
		}, "it is not empty|it is not empty"},
		"a new folder that held something of ours": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.MakeDir(t.Context(), "n", Call{}))
			do(w)(w.gate.Write(t.Context(), "n/x", []byte("1"), Call{}))
			do(w)(w.gate.Write(t.Context(), "n/x", []byte("2"), Call{}))
		}, "||"},
		"of ours and changed": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.MakeDir(t.Context(), "n", Call{}))
			do(w, "n/x")(w.gate.Write(t.Context(), "n/x", []byte("1"), Call{}))
		}, "it changed since|it is not empty"},
		"brought back into it": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.MakeDir(t.Context(), "n", Call{}))
			w.put("n/x", "somebody's")
			do(w)(w.gate.Delete(t.Context(), "n/x", false, Call{Confirm: true}))
		}, "|it is not empty"},
		"a copy": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Copy(t.Context(), "d", "c", Call{}))
			do(w)(w.gate.Write(t.Context(), "c/x", []byte("1"), Call{}))
		}, "|||"},
		"after one that is left out": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Write(t.Context(), "a", []byte("1"), Call{}))
			do(w)(w.gate.Move(t.Context(), "a", "b", Call{}))
			do(w, "b")(w.gate.Write(t.Context(), "b", []byte("2"), Call{}))
		}, "it changed since|it changed since|it is gone"},
		"in a folder that comes back": {func(t *testing.T, w *undoWorld) {
			do(w, "d/x")(w.gate.Write(t.Context(), "d/x", []byte("1"), Call{}))
			do(w)(w.gate.Delete(t.Context(), "d", true, Call{Confirm: true}))
		}, "|it changed since"},
		"moved twice": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Move(t.Context(), "d", "e", Call{}))
			do(w)(w.gate.Write(t.Context(), "e/x", []byte("1"), Call{}))
			do(w, "f/x")(w.gate.Move(t.Context(), "e", "f", Call{}))
		}, "|it changed since|"},
		"protected": {func(t *testing.T, w *undoWorld) {
			do(w, "e/run.sh")(w.gate.Move(t.Context(), "d", "e", Call{}))
		}, protected},
		"protected and moved twice": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Move(t.Context(), "d", "e", Call{}))
			do(w, "f/run.sh")(w.gate.Move(t.Context(), "e", "f", Call{}))
		}, "|" + protected},
		"protected, and taken away above": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Move(t.Context(), "d", "e", Call{}))
			do(w)(w.gate.Write(t.Context(), "e/run.sh", []byte("1"), Call{}))
		}, "|"},
		"protected, and brought back above": {func(t *testing.T, w *undoWorld) {
			do(w, "e/run.sh")(w.gate.Move(t.Context(), "d", "e", Call{}))
			do(w)(w.gate.Delete(t.Context(), "e/run.sh", false, Call{Confirm: true}))
		}, "|" + protected},
		"protected, and moved away": {func(t *testing.T, w *undoWorld) {
			do(w, "e/run.sh")(w.gate.Move(t.Context(), "d", "e", Call{}))
			do(w)(w.gate.Move(t.Context(), "e/run.sh", "e/run", Call{}))
		}, "|" + protected},
		"gone": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Write(t.Context(), "d/x", []byte("1"), Call{}))
			w.must(os.RemoveAll(w.path("d")))
		}, "it is gone"},
		"its folder gone": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Move(t.Context(), "d/x", "y", Call{}))
			do(w)(w.gate.Delete(t.Context(), "d/y", false, Call{Confirm: true}))
			w.must(os.RemoveAll(w.path("d")))
		}, "the folder that it was in is gone|the folder that it was in is gone"},
		"its folder a file": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Delete(t.Context(), "d/x", false, Call{Confirm: true}))
			do(w, "d")(w.gate.Delete(t.Context(), "d", true, Call{Confirm: true}))
		}, "something has the name now|the folder that it was in is gone"},
		"a link to nothing": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Delete(t.Context(), "d/x", false, Call{Confirm: true}))
			w.must(os.Rename(w.path("d"), w.path("was")))
			w.must(os.Symlink("nowhere", w.path("d")))
		}, ruleLink},
		"a link out of the root": {func(t *testing.T, w *undoWorld) {
			do(w)(w.gate.Write(t.Context(), "d/x", []byte("1"), Call{}))
			w.must(os.Rename(w.path("d"), w.path("was")))
			w.must(os.Symlink(t.TempDir(), w.path("d")))
		}, ruleLink},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "d/x": "X", "d/y": "Y"})
			c.change(t, w)
			if _, p := w.undoBy(UndoSelect{Session: prefixOf(newID())}, Person{Decider: denied}); problems(p) != c.want {
				t.Errorf("%q, want %q", problems(p), c.want)
			}
		})
	}
}
