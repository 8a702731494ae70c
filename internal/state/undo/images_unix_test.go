// SPDX-License-Identifier: Apache-2.0

//go:build unix

package undo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/state/regular"
)

// TestOpenImage: a file is opened, and nothing else that has the name of an image:
// a link was displaced itself, and leads outside.
func TestOpenImage(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	path := image(t, l, "a-1", time.Minute, 3)
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("OUTSIDE"), 0o600))
	for name, tc := range map[string]struct {
		is   func() error
		want error
	}{
		"file":   {func() error { return os.WriteFile(path, []byte("abc"), 0o600) }, nil},
		"link":   {func() error { return os.Symlink(outside, path) }, regular.Err},
		"folder": {func() error { return os.Mkdir(path, 0o700) }, regular.Err},
		"FIFO":   {func() error { makeFIFO(t, path); return nil }, regular.Err},
		"none":   {func() error { return nil }, os.ErrNotExist},
	} {
		must(t, os.RemoveAll(path))
		must(t, tc.is())
		f, err := l.OpenImage(&Entered{Step: Step{Image: filepath.Base(path)}})
		if !errors.Is(err, tc.want) || err == nil != (f != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
}
