// SPDX-License-Identifier: Apache-2.0

package live

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUnopened: a file that anybody has open, for whatever, is not free, nor
// is anything that is not a file.
func TestUnopened(t *testing.T) {
	box := t.TempDir()
	dir, err := os.Open(box)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	free := func(name string) bool { return Unopened(int(dir.Fd()), name) }
	path := filepath.Join(box, "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("f", filepath.Join(box, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a look leaves nothing behind
		if !free("f") {
			t.Error("nobody has it open")
		}
	}
	for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR} {
		f, err := os.OpenFile(path, flags, 0)
		if err != nil {
			t.Fatal(err)
		}
		if free("f") {
			t.Errorf("it is open with %#x", flags)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if free("link") || free("absent") || free(".") {
		t.Error("something else than a file is free")
	}
}
