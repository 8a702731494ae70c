// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// TestRemoveExactly: what was found beneath a directory is told once, before
// anything goes, and a change of it after that keeps it. Without Exactly the
// same change goes with it.
func TestRemoveExactly(t *testing.T) {
	no := errors.New("no")
	for _, into := range []bool{false, true} {
		for _, what := range []string{"same", "refused", "edited", "added", "gone"} {
			for _, exactly := range []bool{true, false} {
				b := newBox(t, []string{"d/", "d/s/", "d/s/f=F", "d/s/g=G"})
				change := func() {
					switch what {
					case "edited":
						st, err := os.Stat(b.R() + "/d/s/f")
						must(t, err)
						must(t, os.WriteFile(b.R()+"/d/s/f", []byte("E"), 0o644))
						must(t, os.Chtimes(b.R()+"/d/s/f", st.ModTime(), st.ModTime()))
					case "added":
						b.make("d/s/n=N")
					case "gone":
						must(t, os.Remove(b.R()+"/d/s/g"))
					}
				}
				var o pathguard.WriteOptions
				if into {
					o.Into, _ = shelf(t)
					o.As = "k"
					pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
						s.FailRenameTo(func(od int, old string, nd int, n string) error {
							change()
							return unix.Renameat(od, old, nd, n)
						})
					})
				}
				var seen []string
				if exactly {
					o.Exactly = func(all iter.Seq2[pathguard.Name, pathguard.Info]) error {
						for n := range all {
							seen = append(seen, n.Rel())
						}
						if what == "refused" {
							return no
						}
						if !into {
							change()
						}
						return nil
					}
				}
				err := b.pin("d").RemoveAll(context.Background(), all, o)
				t.Run(fmt.Sprintf("%t/%s/%t", into, what, exactly), func(t *testing.T) {
					removedExactly(t, b, what, into, exactly, err, seen, no)
				})
			}
		}
	}
}

func removedExactly(t *testing.T, b *box, what string, into, exactly bool, err error, seen []string, no error) {
	t.Helper()
	_, there := os.Stat(b.R() + "/d/s/f")
	slices.Sort(seen)
	if exactly && !slices.Equal(seen, []string{"d/s", "d/s/f", "d/s/g"}) {
		t.Errorf("told %v", seen)
	}
	switch {
	case exactly && what == "refused":
		if !errors.Is(err, no) || there != nil {
			t.Errorf("%v, %v", err, there)
		}
	case what == "same", !exactly && (!into || what != "added"), !into && what == "gone": // somebody else removed it
		if err != nil || there == nil {
			t.Errorf("%v, there %v", err, there)
		}
	case into, what == "edited":
		if (fault.CodeOf(err) != fault.PreconditionFailed && !isHalfway(err)) || there != nil {
			t.Errorf("%v, %v", err, there)
		}
	default: // added where it is removed one by one: the new one stays
		if _, stays := os.Stat(b.R() + "/d/s/n"); !isHalfway(err) || stays != nil {
			t.Errorf("%v, %v", err, stays)
		}
	}
}
