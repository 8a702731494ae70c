// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// TestStaged: nothing shows before Commit, and nothing is left without it.
func TestStaged(t *testing.T) {
	for _, mode := range []string{"without a name", "with a name", "no way to give it one"} {
		t.Run(mode, func(t *testing.T) {
			b := newBox(t, []string{"f=old", "d/"})
			pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
				switch mode {
				case "with a name":
					s.NoBare()
				case "no way to give it one":
					s.FailLink(func(int, int, string) error { return unix.ENOENT })
				}
			})
			before := tree(t, b.R())
			for _, commit := range []bool{false, true} {
				for _, name := range []string{"f", "d/new"} {
					tg, err := b.name(name).Pin()
					must(t, err)
					stage := func() (*pathguard.Staged, error) {
						if tg.Exists() {
							return tg.StageReplace(strings.NewReader("NEW"), pathguard.WriteOptions{})
						}
						return tg.StageCreate(strings.NewReader("NEW"), 0o644, pathguard.WriteOptions{})
					}
					s, err := stage()
					must(t, err)
					must(t, s.Fill())
					if !commit || name == "f" {
						if now := tree(t, b.R()); now != before {
							t.Errorf("it shows:\n%s\nwas\n%s", now, before)
						}
					}
					if commit {
						w, err := s.Commit()
						must(t, err)
						if w.Info.Size != 3 || !w.CAS {
							t.Errorf("%+v", w)
						}
					}
					s.Discard()
					s.Discard()
					must(t, tg.Close())
				}
			}
			if got := tree(t, b.R()); got != " d---------\n/d d---------\n/d/new ---------- NEW\n/f ---------- NEW" {
				t.Error(got)
			}
		})
	}
}

// TestStagedTaken: a name that is taken at the last moment is not replaced, and a
// parent that moves away is never a success.
func TestStagedTaken(t *testing.T) {
	b := newBox(t, []string{"d/"})
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailLink(func(fd, dir int, name string) error {
			b.make(name + "=PERSON")
			return pathguard.LinkBare(fd, dir, name)
		})
	})
	wantCode(t, b.write("n", "x"), fault.PreconditionFailed)
	if got := tree(t, b.R()); got != " d---------\n/d d---------\n/n ---------- PERSON" {
		t.Error(got)
	}
}
