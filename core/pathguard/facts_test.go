// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"testing"

	"github.com/postern-gate/postern/core/pathguard"
)

// TestMovedFolder: an inode that was given to another folder tells by its birth.
func TestMovedFolder(t *testing.T) {
	was := pathguard.Facts{Ino: 7, Mode: 0o40755, MTime: 1, Born: 5}
	for name, c := range map[string]struct {
		change func(*pathguard.Facts)
		moved  bool
	}{
		"moved":         {func(f *pathguard.Facts) { f.CTime, f.MTime, f.Mode = 9, 9, 0o40700 }, true},
		"no birth":      {func(f *pathguard.Facts) { f.Born = 0 }, true},
		"born again":    {func(f *pathguard.Facts) { f.Born = 6 }, false},
		"another one":   {func(f *pathguard.Facts) { f.Ino = 8 }, false},
		"now a file":    {func(f *pathguard.Facts) { f.Mode = 0o100755 }, false},
		"nothing there": {func(f *pathguard.Facts) { *f = pathguard.Facts{} }, false},
	} {
		now := was
		if c.change(&now); was.Moved(now) != c.moved {
			t.Errorf("%s: %t", name, !c.moved)
		}
	}
}
