// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
)

// onTheWay is a policy that knows of .vscode as a link by way of another one.
func onTheWay(t *testing.T) *policy.Policy {
	return shippedWith(t, policy.Config{Links: []policy.Link{
		{Root: "project", Path: ".vscode", ToRoot: "project", To: "d/cfg"},
	}})
}

// returned takes a change back by a policy, and says what the plan has of its step.
func (w *undoWorld) returned(id string, by Person) UndoStep {
	w.t.Helper()
	plan, err := w.state.PlanUndo(w.t.Context(), UndoSelect{ID: id}, by)
	w.must(err)
	_, err = w.state.Undo(w.t.Context(), plan, by)
	w.must(err)
	return w.only(plan)
}

// asShown is returned where nobody else is about: what is done is what the plan shows.
func (w *undoWorld) asShown(id string, by Person) UndoStep {
	w.t.Helper()
	_, plan := w.undoBy(UndoSelect{ID: id}, by)
	return w.only(plan)
}

func (w *undoWorld) only(plan *UndoPlan) UndoStep {
	w.t.Helper()
	if len(plan.Steps) != 1 {
		w.t.Fatalf("%+v", plan.Steps)
	}
	return plan.Steps[0]
}

// TestReturnedLink: no undo puts a link back on the way of one that the lists know,
// be it moved or deleted, alone or with its folder; and no file under a name that they
// have by now. Whatever else was there comes back.
func TestReturnedLink(t *testing.T) {
	spec := map[string]string{
		"d/cfg": "-> ../store/a", "d/x": "X", "store/a/tasks.json": "{}", "e/cfg": "-> ../store/a", "e/f": "F", "plain": "-> store", ".claude/settings.json": "{}",
		".claude/NOTES.md": "",
	}
	move := func(g *Gate, name string) (Outcome, error) {
		return g.Move(t.Context(), name, "moved", Call{Confirm: true})
	}
	remove := func(g *Gate, name string) (Outcome, error) {
		return g.Delete(t.Context(), name, true, Call{Confirm: true})
	}
	for _, name := range []string{"d/cfg", "d", ".claude", ".claude/settings.json", "e/cfg", "e", "e/f", "plain", "store", ".claude/NOTES.md"} {
		refused := strings.HasPrefix(name, "d") || name == ".claude" || name == ".claude/settings.json"
		for how, change := range map[string]func(*Gate, string) (Outcome, error){"moved": move, "deleted": remove} {
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, spec)
			out, err := change(w.gate, name)
			w.must(err)
			step := w.asShown(out.UndoID, Person{Decider: onTheWay(t)})
			_, err = os.Lstat(w.path(name))
			if (err != nil) != refused || step.Done == refused {
				t.Errorf("%s %s: %v, %+v", name, how, err, step)
			}
			if refused && (step.Problem != UndoConflict || !strings.Contains(step.Why, "would get a name that the policy protects; next: ")) {
				t.Errorf("%s %s: %s: %s", name, how, step.Problem, step.Why)
			}
		}
	}
}

// TestReturnedKept: what was deleted comes back under a name that a person has denied
// since: it was there before.
func TestReturnedKept(t *testing.T) {
	d := shippedWith(t, policy.Config{Layers: []policy.Layer{{Deny: []policy.Pattern{{Text: "keys/**"}}}}})
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"keys/a.txt": "A"})
	out, err := w.gate.Delete(t.Context(), "keys", true, Call{Confirm: true})
	w.must(err)
	if step := w.asShown(out.UndoID, Person{Decider: d}); !step.Done || w.read("keys/a.txt") != "A" {
		t.Errorf("%+v", step)
	}
}

// TestReturnedKeptLink: a folder comes back with its links where a person has denied
// their own names since; not with one beneath which a list or a person protects others,
// nor with one that has a name of a list.
func TestReturnedKeptLink(t *testing.T) {
	deny := func(name string) policy.Layer { return policy.Layer{Deny: []policy.Pattern{{Text: name}}} }
	no := policy.Rules{Else: &policy.Outcome{Decision: core.Deny}}
	create := policy.Layer{Rules: map[core.Action]policy.Rules{core.FSCreate: no}}
	write := policy.Layer{Rules: map[core.Action]policy.Rules{core.FSWrite: no}}
	both := policy.Layer{Rules: map[core.Action]policy.Rules{core.FSCreate: no, core.FSWrite: no}}
	for name, c := range map[string]struct {
		link string
		then policy.Layer
		back bool
	}{
		"nothing since":                {link: "l", back: true},
		"write":                        {link: "l", then: write, back: true},
		"create":                       {link: "l", then: create, back: true},
		"both":                         {link: "l", then: both, back: true},
		"folder":                       {link: "l", then: deny("d/**"), back: true},
		"beneath it":                   {link: "l", then: deny("d/l/x")},
		"a list beneath it":            {link: ".claude"},
		"a list beneath it and create": {link: ".claude", then: create},
		"a list beneath it and both":   {link: ".claude", then: both},
		"a list beneath it and folder": {link: ".claude", then: deny("d/**")},
		"of a list":                    {link: ".env"},
		"of a list and folder":         {link: ".env", then: deny("d/**")},
		"of a list and both":           {link: ".env", then: both},
	} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/b": "B", "d/l": "-> b", "store/x": "X"})
		if c.link != "l" {
			must(os.Symlink("../store", w.path("d/"+c.link)))
		}
		out, err := w.gate.Delete(t.Context(), "d", true, Call{Confirm: true})
		w.must(err)
		step := w.asShown(out.UndoID, Person{Decider: shippedWith(t, policy.Config{Layers: []policy.Layer{c.then}})})
		_, err = os.Lstat(w.path("d/" + c.link))
		if step.Done != c.back || (err == nil) != c.back {
			t.Errorf("%s: %v, %+v", name, err, step)
		}
		if hint := "let the policy there allow project://d/" + c.link + " and what is beneath it until"; !c.back && !strings.Contains(step.Why, hint) {
			t.Errorf("%s: %s: %s", name, step.Problem, step.Why)
		}
	}
}

// TestReturnedByItsFolder: the policy of the folder where a step's root lies judges
// it, found once by the plan and once by the undo; where there is none, or none that reaches the root, nothing gets a
// name, and a change that gives none is taken back.
func TestReturnedByItsFolder(t *testing.T) {
	denies := shippedWith(t, policy.Config{Layers: []policy.Layer{{Deny: []policy.Pattern{{Text: "deploy/run.sh"}}}}})
	otherRoot, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "other"}}})
	must(err)
	readOnly, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project", ReadOnly: true}}})
	must(err)
	for name, c := range map[string]struct {
		by   Decider
		err  error
		why  string
		back bool
	}{
		"its own":       {by: denies, why: "something would get a name that the policy protects; next: look at what would be project://deploy/run.sh first"},
		"one that may":  {by: shippedWith(t, policy.Config{}), back: true},
		"none":          {err: &fault.Error{Code: fault.IOFailed, Rule: "it is broken", Hint: "mend it"}, why: "can't be told: it is broken; next: mend it"},
		"foreign error": {err: errors.New("secret"), why: "can't be told: "},
		"another root":  {by: otherRoot, why: "can't be told: no root has this name; next: "},
		"for reading":   {by: readOnly, why: "can't be told: the root is for reading only; next: "},
	} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"deploy/README": "R", "deploy2/x": "X", "f": "F"})
		asked := 0
		by := Person{Decider: shippedWith(t, policy.Config{}), Policy: func(root, path string) (Decider, error) {
			if asked++; root != "project" || path != w.dir {
				t.Errorf("asked of %s in %s", root, path)
			}
			return c.by, c.err
		}}
		moved, err := w.gate.Move(t.Context(), "deploy", "d2", Call{Confirm: true})
		w.must(err)
		w.put("d2/run.sh", "evil")
		step := w.asShown(moved.UndoID, by)
		if step.Done != c.back || !c.back && (step.Problem != UndoConflict || !strings.Contains(step.Why, c.why)) || asked != 2 {
			t.Errorf("%s: asked %d times, %+v", name, asked, step)
		}
		written, err := w.gate.Write(t.Context(), "f", []byte("new"), Call{})
		w.must(err)
		if step := w.asShown(written.UndoID, by); !step.Done || w.read("f") != "F" || asked != 2 {
			t.Errorf("%s: asked %d times, %+v", name, asked, step)
		}
	}
}

// TestReturnedOnce: a policy is found once in a run, however many steps are judged.
func TestReturnedOnce(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "b": "B", "c": "C"})
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		_, err := w.gate.Move(ctx, name, name+"2", Call{Confirm: true})
		w.must(err)
	}
	asked := 0
	plan, err := w.state.PlanUndo(t.Context(), UndoSelect{Last: true}, person())
	w.must(err)
	plan.ids = nil
	for _, txn := range plan.index.Txns {
		plan.ids = append(plan.ids, txn.ID)
	}
	_, err = w.state.Undo(ctx, plan, Person{Decider: rules{}, Policy: func(string, string) (Decider, error) { asked++; return rules{}, nil }})
	w.must(err)
	if asked != 1 || plan.Problems() != 0 || len(plan.Steps) != 3 {
		t.Errorf("asked %d times, %+v", asked, plan.Steps)
	}
}
