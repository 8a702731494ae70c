// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/state/undo"
)

// TestUndoRoom: what an undo itself keeps is measured as it will be when the steps above
// are taken back, so that the plan says what is left out, and no more than that.
func TestUndoRoom(t *testing.T) {
	long, file := strings.Repeat("x", 100), UndoOptions{PerFile: 64}
	for name, tc := range map[string]struct {
		o         UndoOptions // by the time of the undo
		near, far int         // steps that are left out, with the state beside or on another file system
		do        func(*undoWorld) string
	}{
		"append, append": {file, 1, 1, func(w *undoWorld) string {
			w.appended("h", long)
			return w.appended("h", "y")
		}},
		"append, append, in all": {UndoOptions{Total: 64}, 1, 1, func(w *undoWorld) string {
			w.appended("h", long)
			return w.appended("h", "y")
		}},
		"append, move": {file, 1, 1, func(w *undoWorld) string {
			w.appended("h", long)
			return w.moved("h", "g")
		}},
		"append, append, move of a folder": {file, 1, 1, func(w *undoWorld) string {
			w.appended("d/e/h", long)
			w.appended("d/e/h", "y")
			return w.moved("d", "f")
		}},
		"append, delete": {file, 1, 1, func(w *undoWorld) string {
			w.appended("h", long)
			return w.delete("h")
		}},
		"append, delete, delete of its folder": {file, 1, 1, func(w *undoWorld) string {
			w.appended("d/e/h", long)
			w.delete("d/e/h")
			return w.delete("d/e")
		}},
		"write, append": {file, 0, 1, func(w *undoWorld) string {
			w.write("h", long)
			return w.appended("h", "y")
		}},
		"write, delete": {file, 0, 1, func(w *undoWorld) string {
			w.write("h", long)
			return w.delete("h")
		}},
		"create, append": {file, 0, 1, func(w *undoWorld) string {
			w.write("new", long)
			return w.appended("new", "y")
		}},
		"create, append, too long together": {file, 0, 0, func(w *undoWorld) string {
			w.write("new", long[:40])
			return w.appended("new", long[:40])
		}},
	} {
		for place, at := range places(t) {
			t.Run(name+"/"+place, func(t *testing.T) {
				stateDir, want := at(t), tc.near
				if place != "beside" {
					want = tc.far
				}
				w := newUndoWorld(t, stateDir, UndoOptions{}, map[string]string{"h": "3\n", "d/e/h": "3\n"})
				session := prefixOf(tc.do(w))
				w.state.undo.Close()
				w.state.undo = undo.Open(stateDir, tc.o.log(), w.state.living)
				_, p := w.undoBy(UndoSelect{Session: session}, person())
				got := 0
				for _, s := range p.Steps {
					if s.Problem == UndoFinal {
						got++
					}
				}
				if got != want || p.Problems() != want {
					t.Errorf("%d steps are left out, not %d: %+v", got, want, p.Steps)
				}
			})
		}
	}
}
