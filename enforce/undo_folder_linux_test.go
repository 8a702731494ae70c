// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/testenv"
)

// born is the inode and the time of birth of a folder.
func (w *undoWorld) born(name string) (ino uint64, at unix.StatxTimestamp) {
	w.t.Helper()
	var x unix.Statx_t
	w.must(unix.Statx(unix.AT_FDCWD, w.path(name), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &x))
	return x.Ino, x.Btime
}

// anew is a person who removes an empty folder and makes another one of its
// name, which gets the same inode where the file system gives it again.
func (w *undoWorld) anew(name string) {
	w.t.Helper()
	info, err := os.Stat(w.path(name))
	w.must(err)
	ino, at := w.born(name)
	for range 1000 { // the clock of the file system has ticks
		w.must(os.Remove(w.path(name)))
		w.must(os.Mkdir(w.path(name), 0o700))
		w.must(os.Chmod(w.path(name), info.Mode()))
		if i, now := w.born(name); i != ino || now != at {
			return
		}
	}
}

// left makes sure that every step of an undo is a conflict.
func (w *undoWorld) left(sel UndoSelect) {
	w.t.Helper()
	_, p := w.undo(sel)
	if len(p.Steps) == 0 {
		w.t.Error("no step")
	}
	for _, s := range p.Steps {
		if s.Problem != UndoConflict {
			w.t.Errorf("%+v", s)
		}
	}
}

// TestUndoFolderAnew: a person's new folder is not taken for the one that had
// its name, and perhaps its inode, before: not by an undo of its making, of its
// move, or by a redo.
func TestUndoFolderAnew(t *testing.T) {
	for place, at := range places(t) {
		t.Run(place, func(t *testing.T) {
			w := newUndoWorld(t, at(t), UndoOptions{}, map[string]string{"x/": "", "e/": ""})
			made, err := w.gate.MakeDir(t.Context(), "d", Call{})
			w.must(err)
			w.anew("d")
			w.left(UndoSelect{ID: made.UndoID})
			moved, err := w.gate.Move(t.Context(), "x", "y", Call{})
			w.must(err)
			w.anew("y")
			w.put("y/person", "mine")
			w.left(UndoSelect{ID: moved.UndoID})
			redo := w.undone(UndoSelect{ID: w.delete("e")})
			w.anew("e")
			w.left(UndoSelect{ID: redo})
			for _, name := range []string{"d", "y/person", "e"} {
				if _, err := os.Lstat(w.path(name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestUndoFolderMode: a folder whose mode a person changed is theirs.
func TestUndoFolderMode(t *testing.T) {
	w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"from/f": "F"})
	made, err := w.gate.MakeDir(t.Context(), "d", Call{})
	w.must(err)
	copied, err := w.gate.Copy(t.Context(), "from", "to", Call{})
	w.must(err)
	for _, name := range []string{"d", "to"} {
		w.must(os.Chmod(w.path(name), 0o2711))
	}
	w.left(UndoSelect{ID: made.UndoID})
	_, p := w.undo(UndoSelect{ID: copied.UndoID})
	if last := p.Steps[len(p.Steps)-1]; last.Problem != UndoConflict {
		t.Errorf("%+v", last)
	}
	for _, name := range []string{"d", "to"} {
		if _, err := os.Lstat(w.path(name)); err != nil {
			t.Error(err)
		}
	}
}

// TestUndoEmptyElsewhere: an empty folder that would not come back with its mode
// is said not to before, and is deleted with confirm alone.
func TestUndoEmptyElsewhere(t *testing.T) {
	w := newUndoWorld(t, elsewhere(t), UndoOptions{}, map[string]string{"plain/": "", "shared/": "", "wide/": ""})
	w.must(os.Chmod(w.path("plain"), 0o700))
	w.must(unix.Chmod(w.path("shared"), 0o2700))
	w.must(os.Chmod(w.path("wide"), 0o777))
	w.undone(UndoSelect{ID: w.delete("plain")})
	if info, err := os.Stat(w.path("plain")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	for _, name := range []string{"shared", "wide"} {
		if _, err := w.gate.Delete(t.Context(), name, false, Call{}); fault.CodeOf(err) != fault.ConfirmMissing {
			t.Errorf("%s: %v", name, err)
		}
		out, err := w.gate.Delete(t.Context(), name, false, Call{Confirm: true})
		if err != nil || out.Undoable || out.UndoReason == "" {
			t.Errorf("%s: %+v %v", name, out, err)
		}
	}
}

// TestUndoEmptyOwner: an empty folder that would come back as ours is not said to
// be kept where it is somebody else's, and no undo takes one away.
func TestUndoEmptyOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to give a folder away")
	}
	for name, to := range map[string]struct {
		uid, gid int
		kept     bool
	}{"ours": {0, os.Getegid(), true}, "owner": {1000, os.Getegid(), false}, "group": {0, 1000, false}} {
		w := newUndoWorld(t, elsewhere(t), UndoOptions{}, map[string]string{"d/": ""})
		made, err := w.gate.MakeDir(t.Context(), "made", Call{})
		w.must(err)
		for _, dir := range []string{"d", "made"} {
			w.must(os.Chown(w.path(dir), to.uid, to.gid))
		}
		p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: made.UndoID}, person())
		w.must(err)
		u, done := w.undo(UndoSelect{ID: made.UndoID})
		if (u != "") != to.kept || (p.Problems() == 0) != to.kept || !to.kept && (p.Steps[0].Problem != UndoFinal || done.Steps[0].Problem != UndoFinal) {
			t.Errorf("%s: %q %+v %+v", name, u, p.Steps, done.Steps)
		}
		if _, err := w.gate.Delete(t.Context(), "d", false, Call{DryRun: true}); (err == nil) != to.kept {
			t.Errorf("%s: %v", name, err)
		}
		out, err := w.gate.Delete(t.Context(), "d", false, Call{Confirm: true})
		if err != nil || out.Undoable != to.kept || (out.UndoReason == "") != to.kept {
			t.Errorf("%s: %+v %v", name, out, err)
		}
	}
}
