// SPDX-License-Identifier: Apache-2.0

package links

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/testenv"
)

// mounts mounts a file system of a type beneath a folder.
func mounts(t *testing.T, at, kind, data string) {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to mount a file system")
	}
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", at, kind, 0, data); err != nil {
		testenv.Missing(t, "a mount of "+kind+": "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

// TestMounts: a way is cut before a mount that may not answer, wherever it comes from,
// but for one that an own place lies on; one of an ordinary file system is none such.
func TestMounts(t *testing.T) {
	dir := made(t, [2]string{"l", "a b/proc/self"}, [2]string{"k", "a b/tmp/x"}, [2]string{"up", "a b/proc/../x"}, [2]string{"d", "deep/er"})
	proc, ordinary := filepath.Join(dir, "a b/proc"), filepath.Join(dir, "a b/tmp")
	mounts(t, proc, "proc", "")
	mounts(t, ordinary, "tmpfs", "")
	mounts(t, filepath.Join(dir, "over"), "proc", "")
	mounts(t, filepath.Join(dir, "over"), "tmpfs", "")
	for _, c := range []struct{ path, own, mount string }{
		{"l", "", proc},
		{"up", "", proc},
		{"a b/proc", "", proc},
		{"a b/proc/self/cwd", "", proc},
		{"l", "a b/proc/self", ""},
		{"up", "l", ""},
		{"l", "a b", proc},
		{"l", "a b/process", proc},
		{"k", "", ""},
		{"a b", "", ""},
		{"d", "", ""},
		{"over/x", "", ""},
	} {
		own := []string{""}
		if c.own != "" {
			own = append(own, filepath.Join(dir, c.own))
		}
		look := NewLook(time.Hour, own...)
		way := look.Follow(filepath.Join(dir, c.path))
		if way.Mount != c.mount || way.Cut != (c.mount != "") || (way.End == "") != way.Cut {
			t.Errorf("%s, own %q: %+v, want it cut at %q", c.path, c.own, way, c.mount)
		}
		if !way.Cut && !look.Answers(way.End) || c.own == "" && (look.Answers(proc) || look.Answers(proc+"/1/x") || !look.Answers(proc+"ess") || !look.Answers(ordinary)) {
			t.Errorf("%s, own %q: what answers is told otherwise", c.path, c.own)
		}
	}
	if way := NewLook(time.Hour).Follow(filepath.Join(dir, "l")); !slices.Equal(way.Links, []string{filepath.Join(dir, "l")}) || !slices.Equal(way.Spelled, []string{proc + "/self"}) {
		t.Errorf("of the way up to there is told: %+v", way)
	}
}
