// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
	"github.com/postern-gate/postern/internal/testenv"
)

// newMountWorld is a world with a file system of its own mounted at m, which the
// gate may enter.
func newMountWorld(t *testing.T) (w *undoWorld, unmount, mount func()) {
	t.Helper()
	from := t.TempDir()
	tmpfs(t, from)
	w = newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"m/": ""})
	at := w.path("m")
	mount = func() { w.must(unix.Mount(from, at, "", unix.MS_BIND, "")) }
	mount()
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	for name, content := range map[string]string{"m/old": "OLD", "m/d/x": "X"} {
		w.put(name, content)
	}
	w.enter("m")
	return w, func() { w.must(unix.Unmount(at, unix.MNT_DETACH)) }, mount
}

// tmpfs mounts a file system of its own.
func tmpfs(t *testing.T, at string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to mount a file system")
	}
	if err := unix.Mount("none", at, "tmpfs", 0, "size=1m"); err != nil {
		testenv.Missing(t, "mount: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

// rootEntering is a workspace whose root may enter these mount points.
func (w *world) rootEntering(mounts ...string) *pathguard.Workspace {
	w.t.Helper()
	root, err := pathguard.OpenRoot(w.dir, pathguard.Options{Name: "project", Mounts: mounts})
	w.must(err)
	w.t.Cleanup(func() { _ = root.Close() })
	ws, err := pathguard.NewWorkspace(root)
	w.must(err)
	return ws
}

// enter makes the gate one whose root may enter these mount points.
func (w *undoWorld) enter(mounts ...string) {
	w.t.Helper()
	var err error
	w.gate, err = New(Options{Workspace: w.rootEntering(mounts...), Decider: rules{}, Recorder: w.state, Locker: w.state, Keeper: w.state})
	w.must(err)
}

// beneathMount are changes of each kind beneath m.
func beneathMount(t *testing.T) map[string]func(*Gate) (Outcome, error) {
	ctx, call := t.Context(), Call{Confirm: true}
	return map[string]func(*Gate) (Outcome, error){
		"write":  func(g *Gate) (Outcome, error) { return g.Write(ctx, "m/old", []byte("new"), call) },
		"append": func(g *Gate) (Outcome, error) { return g.Append(ctx, "m/old", []byte("new"), call) },
		"create": func(g *Gate) (Outcome, error) { return g.Write(ctx, "m/d/new", []byte("new"), call) },
		"mkdir":  func(g *Gate) (Outcome, error) { return g.MakeDir(ctx, "m/e/f", call) },
		"move":   func(g *Gate) (Outcome, error) { return g.Move(ctx, "m/old", "m/d/old", call) },
		"delete": func(g *Gate) (Outcome, error) { return g.Delete(ctx, "m/old", false, call) },
	}
}

// TestUndoBeneathMount: what is said to be undoable beneath a listed mount point
// is, and its undo too.
func TestUndoBeneathMount(t *testing.T) {
	for name, do := range beneathMount(t) {
		t.Run(name, func(t *testing.T) {
			w, _, _ := newMountWorld(t)
			before := w.contents()
			out, err := do(w.gate)
			w.must(err)
			if !out.Undoable {
				t.Fatalf("%+v", out)
			}
			after := w.contents()
			u := w.undone(UndoSelect{ID: out.UndoID})
			if d := diff(w.contents(), before); d != nil {
				t.Errorf("undone: %v", d)
			}
			w.undone(UndoSelect{ID: u})
			if d := diff(w.contents(), after); d != nil {
				t.Errorf("redone: %v", d)
			}
		})
	}
}

// TestUndoMountKilled: after a kill a change beneath a listed mount point is
// settled, at the start that finds the mount there.
func TestUndoMountKilled(t *testing.T) {
	for _, away := range []bool{false, true} {
		w, unmount, mount := newMountWorld(t)
		id := w.write("m/old", "new")
		var journal string
		w.cut(2, func() {
			if away {
				unmount()
			}
			names, err := filepath.Glob(filepath.Join(w.state.Path(), "undo/*.jsonl"))
			w.must(err)
			journal = names[0]
		})
		if away {
			list, _, _, err := w.state.UndoList("", -1)
			w.must(err)
			if len(list) != 1 || list[0].State != UndoRunning {
				t.Errorf("unmounted: %+v", list)
			}
			mount()
			b, err := os.ReadFile(journal)
			w.must(err)
			w.afterCrash(journal, b, func() {})
		}
		w.undone(UndoSelect{ID: id})
		if w.read("m/old") != "OLD" {
			t.Errorf("away %t: %q", away, w.read("m/old"))
		}
	}
}

// TestSinceBeneathMount: what a question is about is looked at beneath a listed
// mount point as elsewhere.
func TestSinceBeneathMount(t *testing.T) {
	d := newDesk(t, []string{"fs.write project://m/a"}, map[string]string{"m/": ""})
	tmpfs(t, d.path("m"))
	d.put("m/a", "A")
	ws := d.rootEntering("m")
	_, err := d.call(func(o *Options) { o.Workspace = ws }).Write(t.Context(), "m/a", []byte("B"), Call{})
	q, err := d.person.Question(t.Context(), asked(t, err, fault.PolicyAsk))
	d.must(err)
	if got := d.state.Since(&q.For); len(got) != 0 {
		t.Errorf("nothing changed, and it says %q", got)
	}
	d.put("m/a", "other")
	if got := d.state.Since(&q.For); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// TestUndoUnseen: a name that can't be looked at is said to be that, and neither
// gone nor free: of a journal that is older than its mount points, and of a
// mount that is away.
func TestUndoUnseen(t *testing.T) {
	for name, do := range map[string]func(*undoWorld) string{
		"written": func(w *undoWorld) string { return w.write("m/old", "new") },
		"deleted": func(w *undoWorld) string { return w.delete("m/old") },
	} {
		w, unmount, _ := newMountWorld(t)
		id := do(w)
		before := w.contents()
		w.reword(func(step map[string]any) { delete(step, "mounts") })
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
		w.must(err)
		if s := p.Steps[0]; s.Problem != UndoFailed || !strings.HasPrefix(s.Why, undo.RuleUnread) {
			t.Errorf("%s: %+v", name, s)
		}
		if u, p := w.undo(UndoSelect{ID: id}); u != "" || p.Problems() != 1 {
			t.Errorf("%s: %+v", name, p.Steps)
		}
		w.reword(func(step map[string]any) { step["mounts"] = []string{"m"} })
		if d := diff(w.contents(), before); d != nil {
			t.Errorf("%s: %v", name, d)
		}
		unmount()
		if u, p := w.undo(UndoSelect{ID: id}); u != "" || p.Steps[0].Problem != UndoConflict || p.Steps[0].Why != undo.RuleFolder {
			t.Errorf("%s: away: %+v", name, p.Steps)
		}
		if made, err := os.ReadDir(w.path("m")); err != nil || len(made) > 0 {
			t.Errorf("%s: %v %v", name, made, err)
		}
	}
}
