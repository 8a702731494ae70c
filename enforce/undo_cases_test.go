// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/undo"
)

// TestUndoCases plays every case of vectors/undo.
func TestUndoCases(t *testing.T) {
	cases := map[string]func(*testing.T){
		"und-01": undoLeavesOthers, "und-04": undoOutOfOrder, "und-05": undoByMistake, "und-06": undoNothing,
		"und-08": undoAmongRepositories, "und-09": undoWithinBounds, "und-10": undoSessionOfMany, "und-12": undoWithoutGit,
		"apr-21": undoByWhom,
	}
	f, err := os.Open("../vectors/undo/undo.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := 0
	for in := bufio.NewScanner(f); in.Scan(); seen++ {
		var c struct{ ID, Right string }
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if cases[c.ID] == nil {
			t.Errorf("nothing plays %s: %s", c.ID, c.Right)
			continue
		}
		t.Run(c.ID, cases[c.ID])
	}
	if seen != len(cases) {
		t.Errorf("%d cases, %d are played", seen, len(cases))
	}
}

func (w *undoWorld) write(name, content string) string {
	w.t.Helper()
	out, err := w.gate.Write(w.t.Context(), name, []byte(content), Call{})
	w.must(err)
	return out.UndoID
}

func (w *undoWorld) delete(name string) string {
	w.t.Helper()
	out, err := w.gate.Delete(w.t.Context(), name, true, Call{Confirm: true})
	w.must(err)
	return out.UndoID
}

func undoLeavesOthers(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a.txt": "A", "1": "x", "2": "x", "3": "x"})
	seen, err := w.state.WatchOutside(t.Context(), OutsideOptions{Workspace: w.gate.o.Workspace, Decider: rules{}})
	w.must(err)
	<-seen.Ready()
	session := prefixOf(w.write("a.txt", "agent"))
	for _, other := range []string{"1", "2", "3"} {
		w.put(other, "outside")
	}
	seen.Close() // which tells what it knows
	w.must(w.state.Problem())
	list, more, damaged, err := w.state.UndoList("", -1)
	w.must(err)
	if c, err := w.state.outsideSince(t.Context(), list[0].Time); err != nil || c.Files != 3 || c.Missed {
		t.Errorf("%+v %v", c, err)
	}
	if len(list) != 1 || list[0].Names[0] != "project://a.txt" || more+damaged != 0 {
		t.Errorf("%+v", list)
	}
	w.undone(UndoSelect{Session: session})
	if w.read("a.txt") != "A" || w.read("1")+w.read("2")+w.read("3") != strings.Repeat("outside", 3) {
		t.Errorf("%v", w.files())
	}
}

func undoOutOfOrder(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"f": "v0"})
	e1, e2 := w.write("f", "v1"), w.write("f", "v2")
	u2 := w.undone(UndoSelect{ID: e2})
	u1 := w.undone(UndoSelect{ID: e1})
	before := w.files()
	if id, p := w.undo(UndoSelect{ID: u2}); id != "" || p.Steps[0].Problem != UndoConflict {
		t.Errorf("%q %+v", id, p.Steps)
	}
	w.same("refused", before)
	w.undone(UndoSelect{ID: u1})
	if w.read("f") != "v1" {
		t.Error(w.read("f"))
	}
	w.undone(UndoSelect{ID: u2})
	if w.read("f") != "v2" {
		t.Error(w.read("f"))
	}
}

func undoByMistake(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"0": "a", "1": "b", "2": "c"})
	session := ""
	for i := range 20 {
		name := fmt.Sprint(i % 5)
		if i%7 == 6 {
			session = prefixOf(w.delete(name))
			continue
		}
		session = prefixOf(w.write(name, fmt.Sprint("v", i)))
	}
	w.must(os.Chmod(w.path("3"), 0o604))
	_, err := w.gate.Append(t.Context(), "3", []byte("+"), Call{}) // so that its mode was seen
	w.must(err)
	before := w.files()
	id, _ := w.undo(UndoSelect{Session: session})
	w.undone(UndoSelect{ID: id})
	for path, what := range w.files() {
		if a, b := strings.Fields(what), strings.Fields(before[path]); len(b) == 0 || a[0] != b[0] || a[len(a)-1] != b[len(b)-1] {
			t.Errorf("%s is %q, was %q", path, what, before[path])
		}
	}
}

func undoNothing(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", ".git/index": "index"})
	w.write("a", "other session")
	w.put("a", "person's")
	before := w.tree()
	if p, err := w.state.PlanUndo(t.Context(), UndoSelect{Session: "S"}, person()); fault.CodeOf(err) != fault.PathMissing {
		t.Errorf("%+v %v", p, err)
	}
	w.unchanged(before)
}

// undoAmongRepositories is the part that nobody is killed in; TestUndoKilled has
// the others, in the same tree.
func undoAmongRepositories(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, victimTree)
	before := w.files()
	w.write("sub/f", "new")
	w.delete("d")
	session := prefixOf(w.write("made", "x"))
	for path := range w.tree() {
		if strings.Contains(path, ".postern-tmp-") {
			t.Errorf("in the tree: %s", path)
		}
	}
	w.undone(UndoSelect{Session: session})
	w.same("undone", before)
}

func undoWithinBounds(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, nil)
	var clock atomic.Int64
	clock.Store(time.Now().UnixNano())
	alive := map[string]bool{prefixOf(idPrefix()): true}
	w.state.undo = undo.Open(w.state.Path(), undo.Options{
		MaxEntries: 1000, PerFile: 1 << 20, Total: 2 << 20, Keep: 14 * 24 * time.Hour,
		Now: func() time.Time { return time.Unix(0, clock.Load()) },
	}, func() (map[string]bool, error) { return alive, nil })
	half, big := bytes.Repeat([]byte("h"), 1<<19), bytes.Repeat([]byte("b"), 2<<20)
	w.put("untouched", string(big))
	w.put("big", string(big))
	var ids []string
	for i := range 6 {
		name := fmt.Sprint(i)
		w.put(name, string(half))
		ids = append(ids, w.write(name, "small"))
		if bytes, n := w.kept(); bytes > 2<<20 || n > 4 {
			t.Errorf("%d bytes in %d images", bytes, n)
		}
	}
	for i, id := range ids {
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
		w.must(err)
		if gone := p.Steps[0].Problem == UndoGone; gone != (i < 2) {
			t.Errorf("%d: %+v", i, p.Steps)
		}
	}
	w.beyond("big")
	// The newest of a live session is never put out.
	if err := w.state.undo.Recover(t.Context(), newAftermath(nil).top); err != nil {
		t.Fatal(err)
	}
	clock.Add(int64(15 * 24 * time.Hour))
	w.must(w.state.undo.Recover(t.Context(), newAftermath(nil).top))
	if _, n := w.kept(); n != 1 {
		t.Errorf("%d images of a live session", n)
	}
	delete(alive, prefixOf(idPrefix()))
	w.must(w.state.undo.Recover(t.Context(), newAftermath(nil).top))
	if bytes, n := w.kept(); n != 0 || bytes != 0 {
		t.Errorf("after 15 days %d bytes in %d images", bytes, n)
	}
}

// beyond overwrites what is larger than undo covers.
func (w *undoWorld) beyond(name string) {
	w.t.Helper()
	before := w.files()
	out, err := w.gate.Write(w.t.Context(), name, []byte("x"), Call{DryRun: true, Confirm: true})
	w.must(err)
	if out.Undoable || out.UndoReason == "" || out.Class != core.Destructive {
		w.t.Errorf("%+v", out)
	}
	_, err = w.gate.Write(w.t.Context(), name, []byte("x"), Call{})
	if fault.CodeOf(err) != fault.ConfirmMissing || !strings.HasPrefix(fault.As(err).Rule, "PRECONDITION_FAILED: This call overwrites "+name) {
		w.t.Errorf("%v", err)
	}
	w.same("refused", before)
	out, err = w.gate.Write(w.t.Context(), name, []byte("x"), Call{Confirm: true})
	w.must(err)
	if out.Undoable || out.UndoReason == "" || !out.Changed {
		w.t.Errorf("%+v", out)
	}
}

func (w *undoWorld) kept() (bytes int64, n int) {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/images/*"))
	w.must(err)
	for _, path := range all {
		info, err := os.Lstat(path)
		w.must(err)
		bytes += info.Size()
	}
	return bytes, len(all)
}

func undoSessionOfMany(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"gone": "G", "old": "O"})
	w.must(os.Chmod(w.path("gone"), 0o640))
	w.must(os.Chtimes(w.path("gone"), time.Unix(5, 0), time.Unix(1e9, 42)))
	gone, err := os.Stat(w.path("gone"))
	w.must(err)
	for _, n := range []string{"1", "2", "3"} {
		w.write(n, "made")
	}
	w.delete("gone")
	out, err := w.gate.Move(t.Context(), "old", "renamed", Call{})
	w.must(err)
	w.put("2", "edited")
	id, p := w.undo(UndoSelect{Session: prefixOf(out.UndoID)})
	if id == "" || p.Problems() != 1 || len(p.Steps) != 5 {
		t.Errorf("%q %+v", id, p.Steps)
	}
	for _, s := range p.Steps {
		if (s.Problem == UndoConflict) != (s.Name == "project://2") || s.Done == (s.Problem != "") {
			t.Errorf("%+v", s)
		}
	}
	back, err := os.Stat(w.path("gone"))
	w.must(err)
	if back.Mode() != gone.Mode() || !back.ModTime().Equal(gone.ModTime()) || w.read("gone") != "G" || w.read("2") != "edited" || w.read("old") != "O" {
		t.Errorf("%v %v", back, w.files())
	}
	for _, n := range []string{"1", "3", "renamed"} {
		if _, err := os.Lstat(w.path(n)); err == nil {
			t.Errorf("%s is still there", n)
		}
	}
}

func undoWithoutGit(t *testing.T) {
	for _, git := range []bool{true, false} {
		spec := map[string]string{"untracked": "U", "ignored": "I"}
		if git {
			spec[".git/index"], spec[".gitignore"] = "index", "ignored\n"
		}
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, spec)
		w.must(os.Chmod(w.path("ignored"), 0o600))
		before := w.files()
		w.delete("untracked")
		w.undone(UndoSelect{Session: prefixOf(w.delete("ignored"))})
		w.same("undone", before)
	}
}

// victimTree has nested repositories, which no step of a change may touch.
var victimTree = map[string]string{
	"a.txt": "A", "d/b.txt": "B", "d/deep/c.txt": "C", "empty/": "", "ln": "-> a.txt",
	".git/HEAD": "ref", ".git/index": "index", "sub/.git/HEAD": "ref", "sub/f": "F",
}

// undoByWhom: who took a change back is what their door says, an agent's or a
// person's, whatever the changed session was.
func undoByWhom(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A", "b": "B"})
	w.gate = w.open(rules{}, func(o *Options) {
		o.Recorder, o.Locker, o.Keeper = w.state, w.state, w.state
		o.Subject = core.Subject{Agent: "a1", Session: "user", Source: "mcp-stdio", Level: core.LevelSDK}
	})
	byAgent, onPage := w.write("a", "new"), w.write("b", "new")
	undoes := map[string]core.Subject{
		byAgent: {Agent: "a1", Source: "mcp-http", Level: core.LevelSDK},
		onPage:  {Source: "page", Level: core.LevelSDK},
	}
	ids := map[string]string{}
	for edit, subject := range undoes {
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: edit}, person())
		w.must(err)
		id, err := w.state.Undo(t.Context(), p, Person{Subject: subject, Decider: rules{}})
		w.must(err)
		ids[id] = edit
	}
	w.must(w.state.Close())
	seen := 0
	for _, r := range records(t, w.state.Path()) {
		edit := ids[fmt.Sprint(r["corr"])]
		if edit == "" {
			continue
		}
		seen++
		want := undoes[edit]
		person := strings.Contains(fmt.Sprint(r["reason"]), "person")
		if r["undoes"] != edit || r["agent"] != want.Agent || r["source"] != want.Source || person != (want.Agent == "") {
			t.Errorf("%+v: %v", want, r)
		}
	}
	if seen != 4 {
		t.Errorf("%d records", seen)
	}
}
