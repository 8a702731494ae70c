// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
	"github.com/postern-gate/postern/internal/state/undo"
)

// TestUndoHere: the newest change is that of the folder where somebody stands,
// and of no other that happens to have a newer one.
func TestUndoHere(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "deep/x": ""})
	here := w.write("a", "new")
	b := newWorld(t, rules{}, map[string]string{"b": "B"}, func(o *Options) { o.Recorder, o.Locker, o.Keeper = w.state, w.state, w.state })
	out, err := b.gate.Write(t.Context(), "b", []byte("new"), Call{})
	w.must(err)
	for near, want := range map[string]string{
		w.dir: here, w.path("deep"): here, b.dir: out.UndoID, "": out.UndoID,
		filepath.Dir(w.dir): here, string(filepath.Separator): out.UndoID, w.dir + "-other": "", t.TempDir(): "",
	} {
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{Last: true, Near: near}, person())
		w.must(err)
		if want == "" {
			if len(p.Steps) != 0 || p.Elsewhere != 2 {
				t.Errorf("%s: %+v, %d elsewhere", near, p.Steps, p.Elsewhere)
			}
			continue
		}
		root := w.dir
		if want == out.UndoID {
			root = b.dir
		}
		if len(p.Steps) != 1 || p.Steps[0].ID != want || p.Steps[0].Root != root {
			t.Errorf("%s: %+v", near, p.Steps)
		}
	}
	list, _, _, err := w.state.UndoList("", -1)
	w.must(err)
	if fmt.Sprint(list[0].Roots, list[1].Roots) != fmt.Sprint([]string{b.dir}, []string{w.dir}) {
		t.Errorf("%+v", list)
	}
}

// TestUndoWhatWasShown: what is done is what the plan said, not what came since.
func TestUndoWhatWasShown(t *testing.T) {
	for _, bySession := range []bool{false, true} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "b": "B"})
		sel := UndoSelect{Last: true}
		if id := w.write("a", "new"); bySession {
			sel = UndoSelect{Session: prefixOf(id)}
		}
		p, err := w.state.PlanUndo(t.Context(), sel, person())
		w.must(err)
		w.write("b", "new")
		_, err = w.state.Undo(t.Context(), p, person())
		w.must(err)
		if w.read("a") != "A" || w.read("b") != "new" || len(p.Steps) != 1 {
			t.Errorf("session %t: %q %q %+v", bySession, w.read("a"), w.read("b"), p.Steps)
		}
	}
}

// withoutPath takes out of a journal where the roots lie.
func (w *undoWorld) withoutPath() {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/*.jsonl"))
	w.must(err)
	text, err := os.ReadFile(names[0])
	w.must(err)
	var b strings.Builder
	for one := range strings.Lines(string(text)) {
		var l map[string]any
		w.must(json.Unmarshal([]byte(one[9:]), &l))
		steps, _ := l["steps"].([]any)
		for _, s := range steps {
			delete(s.(map[string]any), "path")
		}
		out, err := json.Marshal(l)
		w.must(err)
		fmt.Fprintf(&b, "%08x %s\n", crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli)), out)
	}
	w.must(os.WriteFile(names[0], []byte(b.String()), 0o600))
}

// TestUndoNowhere: a journal that doesn't say where a root lies is listed, is of
// no folder, and changes none; least of all the one that somebody stands in.
func TestUndoNowhere(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A"})
	id := w.delete("a")
	w.withoutPath()
	t.Chdir(w.dir)
	x, err := undo.Read(w.state.Path())
	w.must(err)
	if x.Damaged != 0 || len(x.Txns) != 1 {
		t.Fatalf("%d damaged, %d changes", x.Damaged, len(x.Txns))
	}
	w.must(w.state.Recover(t.Context()))
	if p, err := w.state.PlanUndo(t.Context(), UndoSelect{Last: true, Near: w.dir}, person()); err != nil || len(p.Steps) != 0 || p.Elsewhere != 1 {
		t.Errorf("%v %+v", err, p)
	}
	u, p := w.undo(UndoSelect{ID: id})
	if u != "" || p.Problems() != 1 || p.Steps[0].Problem != UndoFailed || !strings.Contains(p.Steps[0].Why, "doesn't say where") {
		t.Errorf("%q %+v", u, p.Steps)
	}
	if _, err := os.Lstat(w.path("a")); err == nil {
		t.Error("it was made where somebody stood")
	}
}

// cutOff finds a yes, and has every call fail before it is spent.
type cutOff struct{ Approver }

func (c cutOff) Approve(ctx context.Context, q *Question) (Permission, error) {
	if _, err := c.Approver.Approve(ctx, q); err != nil {
		return nil, err
	}
	return c, nil
}

func (cutOff) Spend(context.Context, *Question) (string, error) { return "", errors.New("cut off") }

// TestUndoOfApproved: undo has a change by the id that its records share, that
// of the question, also where a call that found the same yes was cut off before.
func TestUndoOfApproved(t *testing.T) {
	d := newDesk(t, writes, map[string]string{"a": "old"})
	write := func(change ...func(*Options)) (Outcome, error) {
		change = append(change, func(o *Options) { o.Keeper = d.state })
		return d.call(change...).Write(t.Context(), "a", []byte("new"), Call{})
	}
	_, err := write()
	d.yes(asked(t, err, fault.PolicyAsk), grant.Answer{})
	if _, err := write(func(o *Options) { o.Approver = cutOff{d.approvals} }); err == nil {
		t.Fatal("it was not cut off")
	}
	out, err := write()
	d.must(err)
	d.must(d.state.Problem())
	var corr any
	for _, r := range records(t, d.state.Path()) {
		if r["event"] == "outcome" {
			corr = r["corr"]
		}
	}
	list, _, _, err := d.state.UndoList("", -1)
	d.must(err)
	if len(list) != 1 || list[0].ID != out.UndoID || corr != out.UndoID {
		t.Fatalf("the list %+v, the result %s, the log %v", list, out.UndoID, corr)
	}
	plan, err := d.state.PlanUndo(t.Context(), UndoSelect{ID: out.UndoID}, person())
	d.must(err)
	_, err = d.state.Undo(t.Context(), plan, person())
	d.must(err)
	d.must(d.state.Problem())
	all := records(t, d.state.Path())
	if d.read("a") != "old" || all[len(all)-1]["undoes"] != out.UndoID {
		t.Errorf("undone: %q, %v", d.read("a"), all[len(all)-1])
	}
}
