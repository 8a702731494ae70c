// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

func (b *box) id(name string) pathguard.ID {
	b.t.Helper()
	info, err := os.Stat(b.place(name))
	must(b.t, err)
	st := info.Sys().(*syscall.Stat_t)
	return pathguard.ID{Dev: st.Dev, Ino: st.Ino}
}

// TestAbove: the folders that an entry lies in, where it is now; one that was moved out
// of its root lies in none.
func TestAbove(t *testing.T) {
	b := newBox(t, []string{"a/b/c/", "a/b/f=F", "x/", "l -> a"})
	for name, dirs := range map[string][]string{"f": {"."}, "a/g": {"a", "."}, "a/b/c": {"a/b", "a", "."}, "a/b/c/new": {"a/b/c", "a/b", "a", "."}} {
		target, err := b.name(name).PinEntry()
		must(t, err)
		ids, err := target.Above()
		if err != nil || len(ids) != len(dirs) {
			t.Fatalf("%s: %v, %v", name, ids, err)
		}
		for i, dir := range dirs {
			if ids[i] != b.id(dir) {
				t.Errorf("%s: %v is not %s", name, ids[i], dir)
			}
		}
		must(t, target.Close())
	}
	target, err := b.name("a/b/f").PinEntry()
	must(t, err)
	defer target.Close()
	must(t, os.Rename(b.place("a"), b.place("x/a")))
	if ids, err := target.Above(); err != nil || len(ids) != 4 || ids[2] != b.id("x") {
		t.Errorf("%v, %v", ids, err)
	}
	must(t, os.Rename(b.place("x/a"), b.place("$O/a")))
	if _, err := target.Above(); fault.CodeOf(err) != fault.PreconditionFailed {
		t.Error(err)
	}
}
