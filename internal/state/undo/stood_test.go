// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"fmt"
	"testing"

	"github.com/postern-gate/postern/core/pathguard"
)

// TestStood: a folder is known by its name, its inode, its birth and its mode, also as
// what undos made in its place; nothing else is, and nothing where it isn't noted.
func TestStood(t *testing.T) {
	was := pathguard.Facts{Dev: 1, Ino: 7, Mode: 0o40755, Born: 5, CTime: 9}
	change := func(by func(*pathguard.Facts)) pathguard.Facts { f := was; by(&f); return f }
	again, anew := was, was
	again.Ino, anew.Ino = 8, 9
	x := &Index{remade: map[Folder]Folder{}}
	x.Remade(again, was)
	x.Remade(anew, again)
	var s, file, none Step
	s.Stand("a/b", was)
	file.Stand("a/b", change(func(f *pathguard.Facts) { f.Mode = 0o100644 }))
	odd := Step{Stood: s.Stood[:7]}
	for name, c := range map[string]struct {
		s    Step
		rel  string
		now  pathguard.Facts
		want bool
	}{
		"as it was":       {s, "a/b", was, true},
		"changed in":      {s, "a/b", change(func(f *pathguard.Facts) { f.CTime, f.MTime, f.Size, f.Dev = 10, 10, 2, 2 }), true},
		"made anew":       {s, "a/b", again, true},
		"made anew twice": {s, "a/b", anew, true},
		"another name":    {s, "a", was, false},
		"another inode":   {s, "a/b", change(func(f *pathguard.Facts) { f.Ino = 6 }), false},
		"born again":      {s, "a/b", change(func(f *pathguard.Facts) { f.Born = 6 }), false},
		"another mode":    {s, "a/b", change(func(f *pathguard.Facts) { f.Mode = 0o40700 }), false},
		"a file":          {file, "a/b", change(func(f *pathguard.Facts) { f.Mode = 0o100644 }), false},
		"not noted":       {none, "a/b", was, false},
		"cut":             {odd, "a/b", was, false},
	} {
		if got := x.StoodAt(&c.s)(c.rel, c.now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestStoodBound: a folder of very many makes no line that is longer.
func TestStoodBound(t *testing.T) {
	var s Step
	f := pathguard.Facts{Ino: 7, Mode: 0o40755}
	for i := range maxStood + 1 {
		s.Stand(fmt.Sprint(i), f)
	}
	if stood := (&Index{}).StoodAt(&s); len(s.Stood) > maxStood*8 || !stood(fmt.Sprint(maxStood-1), f) || stood(fmt.Sprint(maxStood), f) {
		t.Errorf("%d bytes", len(s.Stood))
	}
}
