// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/state/undo"
)

// plannedTree is what each session of these tests begins with.
var plannedTree = map[string]string{"a": "A\n", "h": "h\n", "d/x": "x\n", "d/e/y": "y\n"}

// do makes the changes of a session, each "op name" or "op name other"; some have a size.
// One that can't be made is none. It returns the session.
func (w *undoWorld) do(ops []string) (session string) {
	w.t.Helper()
	for _, op := range ops {
		var out Outcome
		var err error
		f := strings.Fields(op)
		size := func(usual int) int {
			if len(f) > 2 {
				_, err := fmt.Sscan(f[2], &usual)
				w.must(err)
			}
			return usual
		}
		switch f[0] {
		case "write":
			out, err = w.gate.Write(w.t.Context(), f[1], []byte(strings.Repeat("w", size(100))), Call{Confirm: true})
		case "append":
			out, err = w.gate.Append(w.t.Context(), f[1], []byte(strings.Repeat("+", size(30))), Call{Confirm: true})
		case "mkdir":
			out, err = w.gate.MakeDir(w.t.Context(), f[1], Call{Confirm: true})
		case "delete":
			out, err = w.gate.Delete(w.t.Context(), f[1], true, Call{Confirm: true})
		case "move":
			out, err = w.gate.Move(w.t.Context(), f[1], f[2], Call{Confirm: true})
		case "copy":
			out, err = w.gate.Copy(w.t.Context(), f[1], f[2], Call{Confirm: true})
		case "outside:write":
			w.put(f[1], strings.Repeat("o", size(100)))
		case "outside:link":
			err = os.Symlink(f[2], w.path(f[1]))
		case "outside:mkdir":
			err = os.Mkdir(w.path(f[1]), 0o755)
		default:
			w.t.Fatalf("no operation %q", op)
		}
		if err == nil && out.UndoID != "" {
			session = prefixOf(out.UndoID)
		}
	}
	return session
}

// contents is the tree by relative names, without times.
func (w *undoWorld) contents() map[string]string {
	all := map[string]string{}
	for path, what := range w.tree() {
		f := strings.Fields(what)
		f[1] = ""
		rel, err := filepath.Rel(w.dir, path)
		w.must(err)
		all[rel] = strings.Join(f, " ")
	}
	return all
}

// lower gives the state other bounds.
func (w *undoWorld) lower(stateDir string, o UndoOptions) {
	w.state.undo.Close()
	w.state.undo = undo.Open(stateDir, o.log(), w.state.living)
}

// played plays a session and its undo, as planned, and the undo of that.
func played(t *testing.T, stateDir string, o UndoOptions, ops []string) *undoWorld {
	t.Helper()
	w := newUndoWorld(t, stateDir, UndoOptions{}, plannedTree)
	w.must(os.Symlink("a", w.path("l")))
	before := w.contents()
	session := w.do(ops)
	w.lower(stateDir, o)
	after := w.contents()
	if session == "" {
		return w
	}
	id, p := w.undoBy(UndoSelect{Session: session}, person())
	if got := w.contents(); p.Problems() == 0 && !maps.Equal(got, before) {
		t.Errorf("undone: %q, before: %q", got, before)
	}
	if id == "" || p.Problems() > 0 {
		return w
	}
	_, p = w.undoBy(UndoSelect{ID: id}, person())
	if got := w.contents(); p.Problems() == 0 && !maps.Equal(got, after) {
		t.Errorf("redone: %q, before: %q", got, after)
	}
	return w
}

// TestUndoPlanned: sessions of which a plan once said something else than the run did.
func TestUndoPlanned(t *testing.T) {
	file := UndoOptions{PerFile: 64}
	for ops, o := range map[string]UndoOptions{
		"write n, delete n, mkdir n":                                          file,
		"write n, mkdir q, delete n, move q n":                                file,
		"write n, move n g, delete g, mkdir n":                                file,
		"mkdir q, write q/n, delete q, mkdir q, mkdir q/n":                    file,
		"move d y, write d, delete d":                                         file,
		"append h, delete h, mkdir h":                                         {PerFile: 8},
		"append d/e/y, delete d, mkdir d, write d/y, append d/y":              {PerFile: -1},
		"mkdir n, delete n, mkdir n, write n/a, delete n/a":                   {},
		"mkdir n, delete n, mkdir n, write n/a, move n/a n/d":                 {},
		"mkdir n, delete n, mkdir n, mkdir n/n, delete n/n":                   {},
		"move a d/y, delete d, move h d, move d h":                            {},
		"write d/e/a, delete d/e, move d/x d/e, delete d":                     {},
		"mkdir d/e/e, move d e, delete e":                                     {},
		"write d/e/y, move d e, delete e":                                     {},
		"move d/x y, delete d, outside:mkdir d, move d x":                     {},
		"delete d/e, delete d, outside:mkdir d, delete d":                     {},
		"write d/h, move d/h d/a, mkdir d/h, copy d/x d/h/h":                  {},
		"move d/x d/z, delete d, move l d, move d l":                          {},
		"move d/e y, delete d, outside:link d a":                              {},
		"append h, append h, move h g, write g, delete g, mkdir g, write g/h": file,
	} {
		for place, at := range places(t) {
			t.Run(ops+"/"+place, func(t *testing.T) { played(t, at(t), o, strings.Split(ops, ", ")) })
		}
	}
}

// TestUndoRandomPlans: what a plan says of each step is what becomes of it, whatever the
// session did, and with bounds that were lowered since.
func TestUndoRandomPlans(t *testing.T) {
	for seed := range uint64(60) {
		for place, at := range places(t) {
			r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the same each time
			var ops []string
			for range 3 + r.IntN(8) {
				ops = append(ops, randomOp(r))
			}
			o := UndoOptions{PerFile: []int64{-1, 8, 64, 0}[r.IntN(4)]}
			t.Run(fmt.Sprintf("%d %s/%s", seed, strings.Join(ops, ", "), place), func(t *testing.T) { played(t, at(t), o, ops) })
		}
	}
}

func randomOp(r *rand.Rand) string {
	names := []string{"a", "h", "d", "e", "d/x", "d/e", "d/e/y", "e/x", "d/n", "n"}
	name := func() string { return names[r.IntN(len(names))] }
	op := []string{"write", "write", "append", "mkdir", "delete", "delete", "move", "move", "copy"}[r.IntN(9)]
	if op == "move" || op == "copy" {
		return op + " " + name() + " " + name()
	}
	return op + " " + name()
}

// named are operations, those without a name on n0, n1 and so on.
func named(ops string) (all []string) {
	for i, op := range strings.Split(strings.TrimSuffix(ops, ", "), ", ") {
		if op != "" {
			all = append(all, strings.Replace(op, "%s", fmt.Sprint("n", i), 1))
		}
	}
	return all
}

// TestUndoNeeds: what an undo takes away is kept in the place of no image that it still
// needs. What has no room is left out, and can be undone when there is room.
func TestUndoNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		total         int64
		first, change string
	}{
		"copies":           {1000, strings.Repeat("outside:write %s, ", 6), strings.Repeat("write %s, ", 6)},
		"a tail":           {1000, "outside:write a 400, outside:write b 400, ", "delete a, delete b, append h 300, "},
		"folders, nothing": {1, "", "delete d, mkdir d, delete d, mkdir d, "},
	} {
		for place, at := range places(t) {
			t.Run(name+"/"+place, func(t *testing.T) {
				stateDir := at(t)
				w := newUndoWorld(t, stateDir, UndoOptions{}, plannedTree)
				w.do(named(tc.first))
				before := w.contents()
				session := w.do(named(tc.change))
				w.lower(stateDir, UndoOptions{Total: tc.total})
				left := 0
				_, p := w.undo(UndoSelect{Session: session})
				for _, s := range p.Steps {
					if left++; s.Problem == "" {
						left--
					} else if s.Problem != UndoFinal && s.Problem != UndoConflict && s.Problem != UndoUncovered {
						t.Errorf("%+v", s)
					}
				}
				w.lower(stateDir, UndoOptions{})
				if left > 0 {
					_, p = w.undo(UndoSelect{Session: session})
				}
				for _, s := range p.Steps {
					if s.Problem != "" && s.Problem != UndoUncovered {
						t.Errorf("with room: %+v", s)
					}
				}
				if got := w.contents(); !slices.ContainsFunc(p.Steps, func(s UndoStep) bool { return s.Problem != "" }) && !maps.Equal(got, before) {
					t.Errorf("%q, before: %q", got, before)
				}
			})
		}
	}
}

// TestUndoGivesRoom: what a step gives back from the images is room for the next one.
func TestUndoGivesRoom(t *testing.T) {
	for place, at := range places(t) {
		w := newUndoWorld(t, at(t), UndoOptions{Total: 1000, PerFile: 1000}, plannedTree)
		w.do(named("outside:write big 490"))
		session := w.do(named("write n 520, delete big"))
		_, p := w.undoBy(UndoSelect{Session: session}, person())
		if place == "beside" && p.Problems() > 0 { // elsewhere the image stays
			t.Errorf("%+v", p.Steps)
		}
	}
}

// TestUndoKeepsWhatItTook: no later step, and no change of an agent in the same process,
// takes the room of what an undo has kept: its undo brings that back.
func TestUndoKeepsWhatItTook(t *testing.T) {
	tight := UndoOptions{Total: 1000, PerFile: 1000}
	for name, tc := range map[string]struct {
		first, change string
		meanwhile     bool
	}{
		"an exchange":          {"outside:write a 400, outside:write b 400", "write new 300, write a 400, write b 400", false},
		"removed":              {"", "write n1 400, write n2 400, write n3 400", false},
		"removed, and changes": {"", "write n1 400, write n2 400, write n3 400", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), tight, plannedTree)
			w.do(named(tc.first))
			session := w.do(named(tc.change))
			after := w.contents()
			p, err := w.state.PlanUndo(t.Context(), UndoSelect{Session: session}, person())
			w.must(err)
			by := person()
			if tc.meanwhile {
				by.Decider = &busy{w: w}
			}
			id, err := w.state.Undo(t.Context(), p, by)
			w.must(err)
			done := 0
			for _, s := range p.Steps {
				if s.Done {
					done++
				}
			}
			if done != 2 {
				t.Errorf("%d steps are done: %+v", done, p.Steps)
			}
			w.undo(UndoSelect{ID: id})
			got := w.contents()
			delete(got, "d/x")
			delete(after, "d/x")
			if !maps.Equal(got, after) {
				t.Errorf("redone: %q, before: %q", got, after)
			}
		})
	}
}

// busy is a decider that has an agent change a file whenever it is asked.
type busy struct {
	rules

	w *undoWorld
}

func (b *busy) Evaluate(q core.Request) core.Verdict {
	b.w.write("d/x", "meanwhile")
	return b.rules.Evaluate(q)
}
