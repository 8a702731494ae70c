// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShowUndoFollowsNoLink: what takes the name of a file, or of its folder, after
// the plan was made is not read, and nobody waits for it; nor is what a link leads
// to that was displaced.
func TestShowUndoFollowsNoLink(t *testing.T) {
	for name, tc := range map[string]struct {
		change          func(w *undoWorld) string
		swap            func(w *undoWorld, outside string)
		shown, notShown string
	}{
		"nothing":     {func(w *undoWorld) string { return w.write("d/f", "new\n") }, func(*undoWorld, string) {}, "-new\n+old\n", ""},
		"link":        {func(w *undoWorld) string { return w.write("d/f", "new\n") }, inPlace("d/f", "f"), "", noneBefore},
		"folder":      {func(w *undoWorld) string { return w.write("d/f", "new\n") }, inPlace("d", ""), "", noneBefore},
		"file":        {func(w *undoWorld) string { return w.write("d/f", "new\n") }, func(w *undoWorld, _ string) { w.put("d/f", "OUTSIDE") }, "", noneBefore},
		"FIFO":        {func(w *undoWorld) string { return w.write("d/f", "new\n") }, fifoAt("d/f"), "", noneBefore},
		"gone":        {func(w *undoWorld) string { return w.write("d/f", "new\n") }, func(w *undoWorld, _ string) { w.must(os.Remove(w.path("d/f"))) }, "", noneBefore},
		"image":       {func(w *undoWorld) string { return w.write("d/f", "new\n") }, imageFor(os.Symlink), "", noneAfter},
		"image FIFO":  {func(w *undoWorld) string { return w.write("d/f", "new\n") }, imageFor(func(_, at string) error { return unix.Mkfifo(at, 0o600) }), "", noneAfter},
		"image other": {func(w *undoWorld) string { return w.write("d/f", "new\n") }, imageFor(func(_, at string) error { return os.WriteFile(at, []byte("other"), 0o600) }), "", noneAfter},
		"old link":    {func(w *undoWorld) string { return w.delete("l") }, func(*undoWorld, string) {}, "", ""},
		"root's name": {func(w *undoWorld) string { return w.write("d/f", "new\n") }, func(w *undoWorld, _ string) { w.must(os.Rename(w.dir, w.dir+"-old")) }, "", noneBefore},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"d/f": "old\n", "l": "-> " + filepath.Join(outside, "f")})
			w.must(os.WriteFile(filepath.Join(outside, "f"), []byte("OUTSIDE"), 0o600))
			p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: tc.change(w)}, person())
			w.must(err)
			tc.swap(w, outside)
			w.state.ShowUndo(p, person(), nil)
			s := p.Steps[0]
			if s.Change != tc.shown || s.Unshown != tc.notShown || strings.Contains(s.Change, "OUTSIDE") {
				t.Errorf("%q, %q", s.Change, s.Unshown)
			}
		})
	}
}

func inPlace(name, of string) func(*undoWorld, string) {
	return func(w *undoWorld, outside string) {
		w.must(os.RemoveAll(w.path(name)))
		w.must(os.Symlink(filepath.Join(outside, of), w.path(name)))
	}
}

func fifoAt(name string) func(*undoWorld, string) {
	return func(w *undoWorld, _ string) {
		w.must(os.Remove(w.path(name)))
		w.must(unix.Mkfifo(w.path(name), 0o600))
	}
}

// imageFor puts something else in the place of all images.
func imageFor(what func(of, at string) error) func(*undoWorld, string) {
	return func(w *undoWorld, outside string) {
		images, err := filepath.Glob(filepath.Join(w.state.Path(), "undo", "images", "*"))
		w.must(err)
		for _, at := range images {
			w.must(os.Remove(at))
			w.must(what(filepath.Join(outside, "f"), at))
		}
	}
}
