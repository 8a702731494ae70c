// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/testenv"
)

// TestUndoAttacked: somebody swaps folders for links to outside, and files for
// links, while changes are taken back. Nothing outside changes, and what was
// there before is never lost.
func TestUndoAttacked(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/f": "F", "d/g": "G"})
	outside := filepath.Join(t.TempDir(), "outside")
	w.must(os.Mkdir(outside, 0o755))
	for _, n := range []string{"f", "g", "n"} {
		w.must(os.WriteFile(filepath.Join(outside, n), []byte("OUTSIDE"), 0o644))
	}
	w.must(os.Symlink(outside, w.path("evil")))
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		swaps := 0
		for ; ; swaps++ {
			select {
			case <-stop:
				stopped <- swaps
				return
			default:
			}
			_ = unix.Renameat2(unix.AT_FDCWD, w.path("d"), unix.AT_FDCWD, w.path("evil"), unix.RENAME_EXCHANGE)
		}
	}()
	done := 0
	for i := 0; i < 150 || done == 0 && i < 20_000; i++ {
		var ids []string
		for _, do := range []func() (Outcome, error){
			func() (Outcome, error) { return w.gate.Write(t.Context(), "d/f", []byte(fmt.Sprint(i)), Call{}) },
			func() (Outcome, error) { return w.gate.Write(t.Context(), "d/n", []byte("new"), Call{}) },
			func() (Outcome, error) { return w.gate.Delete(t.Context(), "d/g", false, Call{Confirm: true}) },
		} {
			if out, err := do(); err == nil {
				ids = append(ids, out.UndoID)
			}
		}
		for i := len(ids) - 1; i >= 0; i-- {
			if id, _ := w.undo(UndoSelect{ID: ids[i]}); id != "" {
				done++
			}
		}
	}
	close(stop)
	if swaps := <-stopped; swaps < 100 || done == 0 {
		t.Errorf("%d swaps, %d undone: nothing was attacked", swaps, done)
	}
	entries, err := os.ReadDir(outside)
	w.must(err)
	for _, e := range entries {
		if text, err := os.ReadFile(filepath.Join(outside, e.Name())); err != nil || string(text) != "OUTSIDE" {
			t.Errorf("outside: %s is %q, %v", e.Name(), text, err)
		}
	}
	if len(entries) != 3 {
		t.Errorf("outside: %v", entries)
	}
}

// TestUndoFollowsNoLink: a link that takes the place of a folder or a file since
// is a conflict.
func TestUndoFollowsNoLink(t *testing.T) {
	for name, harm := range map[string]func(w *undoWorld){
		"folder":             func(w *undoWorld) { w.must(os.Rename(w.path("d"), w.path("e"))); w.put("d", "-> e") },
		"folder, to outside": func(w *undoWorld) { w.must(os.Rename(w.path("d"), w.dir+"-e")); w.put("d", "-> "+w.dir+"-e") },
		"file":               func(w *undoWorld) { w.must(os.Rename(w.path("d/f"), w.path("d/g"))); w.put("d/f", "-> g") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/f": "F"})
			id := w.write("d/f", "new")
			harm(w)
			before := w.files()
			u, p := w.undo(UndoSelect{ID: id})
			if u != "" || p.Problems() != 1 || p.Steps[0].Problem != UndoConflict {
				t.Errorf("%q %+v", u, p.Steps)
			}
			w.same("refused", before)
		})
	}
}

// TestUndoIsRecorded: an undo is in the log, as a person's, with what it takes
// back; and one that can't be recorded does not happen.
func TestUndoIsRecorded(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"a": "A"})
	e := w.write("a", "new")
	u := w.undone(UndoSelect{ID: e})
	w.must(w.state.Close())
	seen := 0
	for _, r := range records(t, w.state.Path()) {
		if r["corr"] != u {
			continue
		}
		seen++
		if r["source"] != "undo" || r["undoes"] != e || r["decision"] != "allow" || !strings.Contains(fmt.Sprint(r["reason"]), "person") {
			t.Errorf("%v", r)
		}
	}
	if seen != 2 {
		t.Errorf("%d records", seen)
	}
}

// TestUndoKeepsOwn: postern's own files are not touched by an undo, even if a
// journal says so.
func TestUndoKeepsOwn(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"policy.yaml": "old"})
	id := w.write("policy.yaml", "new")
	p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: id}, person())
	w.must(err)
	by := person()
	by.Protect = []string{w.path("policy.yaml")}
	u, err := w.state.Undo(t.Context(), p, by)
	w.must(err)
	if u != "" || p.Problems() != 1 || w.read("policy.yaml") != "new" {
		t.Errorf("%q %+v", u, p.Steps)
	}
}

// TestUndoDiskFull: where there is no room to keep what would be displaced, the
// change is refused and nothing is lost.
func TestUndoDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to mount a file system")
	}
	small := t.TempDir()
	if err := unix.Mount("none", small, "tmpfs", 0, "size=2m"); err != nil {
		testenv.Missing(t, "mount: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	w := newUndoWorld(t, filepath.Join(small, "state"), UndoOptions{}, map[string]string{"a": "A"})
	w.write("a", strings.Repeat("x", 1<<20))
	w.write("b", "b") // the log and the journal are there
	filler := filepath.Join(small, "filler")
	w.must(os.WriteFile(filler, nil, 0o600))
	var st unix.Statfs_t
	w.must(unix.Statfs(small, &st))
	f, err := os.OpenFile(filler, os.O_WRONLY, 0)
	w.must(err)
	w.must(unix.Fallocate(int(f.Fd()), 0, 0, int64(st.Bfree-64)*st.Bsize))
	w.must(f.Close())
	before := w.files()
	_, err = w.gate.Write(t.Context(), "a", []byte("lost?"), Call{Confirm: true})
	if err == nil || fault.CodeOf(err) == fault.Bug {
		t.Errorf("%v", err)
	}
	w.same("refused", before)
	w.noTemps()
	_, err = w.gate.Delete(t.Context(), "a", false, Call{Confirm: true})
	if err == nil {
		t.Error("it was deleted")
	}
	w.same("refused", before)
	w.must(os.Remove(filler)) // control
	out, err := w.gate.Write(t.Context(), "a", []byte("kept"), Call{})
	w.must(err)
	w.undone(UndoSelect{ID: out.UndoID})
	if len(w.read("a")) != 1<<20 {
		t.Errorf("%d bytes", len(w.read("a")))
	}
}

// TestUndoForeignOwner: a file of somebody else, in a folder of ours, is kept and
// comes back as theirs, without any privilege.
func TestUndoForeignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to make a file of somebody else")
	}
	base, err := os.MkdirTemp("/var/tmp", "postern-test-") //nolint:usetesting // nobody can reach the others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(base, 0o777))
	testenv.AsNobody(t, func() { must(os.Mkdir(filepath.Join(base, "root"), 0o755)) })
	foreign := filepath.Join(base, "root", "f")
	must(os.WriteFile(foreign, []byte("theirs"), 0o604))
	testenv.AsNobody(t, func() {
		w := &undoWorld{world: &world{t: t, dir: filepath.Join(base, "root")}}
		w.openState(filepath.Join(base, "state"))
		out, err := w.gate.Delete(t.Context(), "f", false, Call{Confirm: true})
		w.must(err)
		if _, err := os.Lstat(foreign); !errors.Is(err, fs.ErrNotExist) || !out.Undoable {
			t.Errorf("%v %+v", err, out)
		}
		w.undone(UndoSelect{ID: out.UndoID})
		w.must(w.state.Close())
	})
	info, err := os.Stat(foreign)
	must(err)
	var st unix.Stat_t
	must(unix.Stat(foreign, &st))
	if st.Uid != 0 || info.Mode() != 0o604 {
		t.Errorf("uid %d, %v", st.Uid, info.Mode())
	}
}
