// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"os"
	"slices"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/grant"
)

// TestSince: what a question is about is known to have changed when it has, and
// only then.
func TestSince(t *testing.T) {
	for _, c := range []struct {
		name  string
		call  func(*desk) error
		ask   string
		alter func(*desk)
		want  []string
	}{
		{
			"a write", func(d *desk) error { _, err := d.gate.Write(t.Context(), "a", []byte("B"), Call{}); return err }, "fs.write project://a",
			func(d *desk) { d.put("a", "other") },
			[]string{"project://a"},
		},
		{
			"a write of what goes", func(d *desk) error { _, err := d.gate.Write(t.Context(), "a", []byte("B"), Call{}); return err }, "fs.write project://a",
			func(d *desk) { d.must(os.Remove(d.path("a"))) },
			[]string{"project://a"},
		},
		{
			"a new file", func(d *desk) error { _, err := d.gate.Write(t.Context(), "sub/new", []byte("B"), Call{}); return err }, "fs.create project://sub",
			func(d *desk) { d.put("sub/new", "there") },
			[]string{"project://sub/new"},
		},
		{
			"a folder beneath one that is missing", func(d *desk) error { _, err := d.gate.MakeDir(t.Context(), "x/y/z", Call{}); return err }, "fs.create project://x",
			func(d *desk) { d.must(os.Mkdir(d.path("x"), 0o755)) },
			[]string{"project://x/y/z"},
		},
		{
			"a read", func(d *desk) error {
				f, err := d.gate.Open(t.Context(), "a")
				if err == nil {
					_ = f.Close()
				}
				return err
			}, "fs.read project://a",
			func(d *desk) { d.put("a", "other") },
			[]string{"project://a"},
		},
		{
			"a list", func(d *desk) error {
				return d.gate.Walk(t.Context(), "sub", 10, func(*Walk, pathguard.Name) error { return nil })
			}, "fs.list project://sub",
			func(d *desk) { d.must(os.RemoveAll(d.path("sub"))) },
			[]string{"project://sub"},
		},
		{
			"a move", func(d *desk) error { _, err := d.gate.Move(t.Context(), "a", "sub/new", Call{}); return err }, "fs.rename project://a",
			func(d *desk) { d.put("a", "other") },
			[]string{"project://a"},
		},
		{
			"a move to a name that is taken meanwhile", func(d *desk) error { _, err := d.gate.Move(t.Context(), "a", "sub/new", Call{}); return err }, "fs.rename project://a",
			func(d *desk) { d.put("sub/new", "there") },
			[]string{"project://sub/new"},
		},
		{
			"a move of a folder", func(d *desk) error {
				_, err := d.gate.Move(t.Context(), "sub", "other", Call{Confirm: true})
				return err
			}, "fs.rename project://sub",
			func(d *desk) { d.must(os.RemoveAll(d.path("sub"))) },
			[]string{"project://sub"},
		},
		{
			"a copy", func(d *desk) error { _, err := d.gate.Copy(t.Context(), "a", "b", Call{}); return err }, "fs.create project://b",
			func(d *desk) { d.put("a", "other"); d.put("b", "there") },
			[]string{"project://b", "project://a"},
		},
		{
			"another folder in its place", func(d *desk) error { _, err := d.gate.Write(t.Context(), "a", []byte("B"), Call{}); return err }, "fs.write project://a",
			func(d *desk) {
				d.must(os.Rename(d.dir, d.dir+"-away"))
				d.must(os.Mkdir(d.dir, 0o755))
			},
			[]string{"project://a"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t, []string{c.ask}, map[string]string{"a": "A", "sub/f": "F"})
			id := asked(t, c.call(d), fault.PolicyAsk)
			q, err := d.person.Question(t.Context(), id)
			d.must(err)
			if got := d.state.Since(&q.For); len(got) != 0 {
				t.Errorf("nothing changed, and it says %q: %+v", got, q.For)
			}
			c.alter(d)
			if got := d.state.Since(&q.For); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestFromTo: which of two names is the old one is on the card, and bound.
func TestFromTo(t *testing.T) {
	for _, c := range []struct {
		ask string
		do  func(g *Gate, from, to string) (Outcome, error)
	}{
		{"fs.rename project://", func(g *Gate, from, to string) (Outcome, error) { return g.Move(t.Context(), from, to, Call{}) }},
		{"fs.create project://", func(g *Gate, from, to string) (Outcome, error) { return g.Copy(t.Context(), from, to, Call{}) }},
	} {
		d := newDesk(t, []string{c.ask}, map[string]string{"a": "A"})
		_, err := c.do(d.gate, "a", "b ")
		q, err := d.person.Question(t.Context(), asked(t, err, fault.PolicyAsk))
		d.must(err)
		if want := []grant.Field{{Name: "from", Text: "project://a"}, {Name: "to", Text: `"project://b "`}}; !slices.Equal(q.Card.Details, want) {
			t.Errorf("%+v", q.Card.Details)
		}
		d.must(os.Rename(d.path("a"), d.path("b ")))
		_, err = c.do(d.gate, "b ", "a")
		back, err := d.person.Question(t.Context(), asked(t, err, fault.PolicyAsk))
		d.must(err)
		if back.For.Arguments == q.For.Arguments {
			t.Error("the way back is the same call")
		}
	}
}

// TestUndoable: a change that is kept is, until it is taken back.
func TestUndoable(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"a": "A"})
	state, err := OpenState(w.dir+"-state", StateOptions{})
	w.must(err)
	defer state.Close()
	g := w.open(rules{}, func(o *Options) { o.Recorder, o.Locker, o.Keeper = state, state, state })
	_, err = g.Write(t.Context(), "a", []byte("B"), Call{})
	w.must(err)
	list, _, _, err := state.UndoList("", -1)
	w.must(err)
	id := list[0].ID
	look := func() bool {
		t.Helper()
		kept, err := state.Undoable([]string{id, "unknown"})
		w.must(err)
		if kept["unknown"] {
			t.Error("what nobody knows")
		}
		return kept[id]
	}
	if !look() {
		t.Error("a change that is kept")
	}
	plan, err := state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
	w.must(err)
	_, err = state.Undo(t.Context(), plan, Person{Subject: core.Subject{Source: "undo"}, Decider: rules{}})
	w.must(err)
	if look() {
		t.Error("one that was taken back")
	}
}
