// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
)

// TestLend: what is lent is the directory that is open, whatever its name leads
// to by now.
func TestLend(t *testing.T) {
	dir := t.TempDir()
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ws, err := pathguard.NewWorkspace(root)
	if err != nil {
		t.Fatal(err)
	}
	names, err := ws.Parse("r://")
	if err != nil {
		t.Fatal(err)
	}
	d, err := names[0].OpenDir()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var want, got unix.Stat_t
	if err := unix.Stat(dir, &want); err != nil {
		t.Fatal(err)
	}
	if err := d.Lend(func(fd int) error { return unix.Fstat(fd, &got) }); err != nil || got.Ino != want.Ino || got.Dev != want.Dev {
		t.Errorf("%v, inode %d, want %d", err, got.Ino, want.Ino)
	}
	if err := d.Lend(func(int) error { return os.ErrClosed }); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}
