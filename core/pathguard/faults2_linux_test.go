// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// TestOldStat: what is known without statx is the same but for birth time and
// mount.
func TestOldStat(t *testing.T) {
	b := newBox(t, []string{"f=12345", "f@0640", "d/", "p|", "l -> f"})
	for _, name := range []string{"f", "d", "p", "l"} {
		i, err := b.name(name).Lstat()
		must(t, err)
		old, err := pathguard.OldLstat(b.R(), name)
		must(t, err)
		if i.BirthTime.IsZero() || !old.BirthTime.IsZero() {
			t.Errorf("birth: %v, %v", i.BirthTime, old.BirthTime)
		}
		if i.Fingerprint.String() != old.Fingerprint.String() {
			t.Errorf("%s: another etag", name)
		}
		i.BirthTime, i.Fingerprint = old.BirthTime, old.Fingerprint
		if i != old {
			t.Errorf("%+v\n%+v", i, old)
		}
	}
	if _, err := pathguard.OldLstat(b.R(), "absent"); !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
}

// TestFaultBlindChanged: without an exchange the last look still catches what
// came before it.
func TestFaultBlindChanged(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailExchange(func(int, string, string) error { b.make("f=person's"); return unix.EINVAL })
		s.FailRename(func(int, string, int, string) error { b.make("f=person's2"); return unix.EINVAL })
	})
	wantCode(t, b.write("f", "x"), fault.PreconditionFailed)
	wantCode(t, b.removeAll("f"), fault.PreconditionFailed)
	if got := tree(t, b.R()); got != " d---------\n/f ---------- person's2" {
		t.Error(got)
	}
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailExchange(func(int, string, string) error { return unix.EINVAL })
		s.FailRenameTo(func(int, string, int, string) error { return unix.EIO })
		s.FailRename(func(int, string, int, string) error { return unix.EINVAL })
	})
	wantCode(t, b.write("f", "x"), fault.IOFailed)
	b.make("d/")
	wantCode(t, b.move("d", "e"), fault.IOFailed)
	if got := tree(t, b.R()); got != " d---------\n/d d---------\n/f ---------- person's2" {
		t.Error(got)
	}
}

// TestFaultTakenName: without an exclusive rename a name that is taken at the
// last moment is not replaced.
func TestFaultTakenName(t *testing.T) {
	b := newBox(t, []string{"a=A", "d/", "d/x=X"})
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailRename(func(_ int, _ string, _ int, name string) error {
			b.make(name + "=PERSON")
			return unix.EINVAL
		})
	})
	for name, err := range map[string]error{"create": b.write("n1", "x"), "move": b.move("a", "n2"), "move dir": b.move("d", "n3")} {
		if fault.CodeOf(err) != fault.PreconditionFailed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := tree(t, b.R()); got != " d---------\n/a ---------- A\n/d d---------\n/d/x ---------- X\n/n1 ---------- PERSON\n/n2 ---------- PERSON\n/n3 ---------- PERSON" {
		t.Error(got)
	}
}

// TestFaultPutBack: what can't be put back is kept and said.
func TestFaultPutBack(t *testing.T) {
	stop := errors.New("stop")
	keep := pathguard.WriteOptions{Keep: func(*pathguard.File) error { return stop }}
	b := newBox(t, []string{"f=F"})
	calls := 0
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailRename(func(od int, o string, nd int, n string) error {
			if calls++; calls > 1 {
				return unix.EIO
			}
			return unix.Renameat2(od, o, nd, n, unix.RENAME_NOREPLACE)
		})
	})
	tg, err := b.name("f").PinEntry()
	must(t, err)
	defer tg.Close()
	err = tg.Remove(keep)
	if !isHalfway(err) || !errors.Is(err, stop) || !strings.Contains(err.Error(), pathguard.TempPrefix) {
		t.Errorf("%v", err)
	}
	// Of a rename: the source was exchanged, and its old name is taken again.
	b = newBox(t, []string{"a=A", "x=X"})
	calls = 0
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailRename(func(od int, o string, nd int, n string) error {
			if calls++; calls > 1 {
				b.make("a=taken")
				return unix.EEXIST
			}
			must(t, unix.Renameat2(unix.AT_FDCWD, b.R()+"/a", unix.AT_FDCWD, b.R()+"/x", unix.RENAME_EXCHANGE))
			return unix.Renameat2(od, o, nd, n, unix.RENAME_NOREPLACE)
		})
	})
	if err := b.move("a", "b"); !isHalfway(err) {
		t.Errorf("%v", err)
	}
}

// TestFaultThirdProgram: between the exchange and the swap back a third
// program replaces the file: its state stays and the first one is kept.
func TestFaultThirdProgram(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	calls := 0
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailExchange(func(dir int, x, y string) error {
			switch calls++; calls {
			case 1:
				b.make("f=second")
			case 2: // at the very moment of the swap back
				b.make("t=third")
				must(t, os.Rename(b.R()+"/t", b.R()+"/f"))
			}
			return pathguard.RenameExchange(dir, x, y)
		})
	})
	err := b.write("f", "first")
	got := tree(t, b.R())
	if !isHalfway(err) || calls != 3 || !strings.Contains(got, "/f ---------- third") || !strings.Contains(got, "second") {
		t.Errorf("%d exchanges, %v\n%s", calls, err, got)
	}
}

// TestFaultRemovedMidway: in a removal of many, what another program removed
// first is no error, and what it put in its place stays.
func TestFaultRemovedMidway(t *testing.T) {
	for name, change := range map[string]func(b *box){
		"removed":  func(b *box) { must(t, os.Remove(b.R()+"/d/a")) },
		"replaced": func(b *box) { must(t, os.Remove(b.R()+"/d/a")); b.make("d/a=PERSON") },
		"dir":      func(b *box) { must(t, os.Rename(b.R()+"/d/e", b.R()+"/e")) },
		"link":     func(b *box) { must(t, os.Rename(b.R()+"/d/e", b.R()+"/e")); b.make("d/e -> $O", "$O/x=KEEP") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, []string{"d/e/", "d/a=A", "d/e/x=X"})
			tg, err := b.pinEntry("d")
			must(t, err)
			defer tg.Close()
			judged := 0
			err = tg.RemoveAll(t.Context(), func(pathguard.Name) error {
				if judged++; judged == 3 {
					change(b)
				}
				return nil
			}, pathguard.WriteOptions{})
			got := tree(t, b.dir)
			switch {
			case name == "removed":
				if err != nil || strings.Contains(got, "/allowed/d") {
					t.Errorf("%v\n%s", err, got)
				}
			case err == nil:
				t.Errorf("a success:\n%s", got)
			case name == "replaced" && !strings.Contains(got, "PERSON"),
				name == "link" && !strings.Contains(got, "KEEP"),
				name != "replaced" && !strings.Contains(got, "/e/x ---------- X"):
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}

// TestFaultWriterInside: content that is added to the judged file while it is
// read is somebody else's.
func TestFaultWriterInside(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	tg, err := b.name("f").Pin()
	must(t, err)
	defer tg.Close()
	_, err = tg.Replace(io.MultiReader(strings.NewReader("x"), readerFunc(func() { b.make("f=person's") })), pathguard.WriteOptions{})
	wantCode(t, err, fault.PreconditionFailed)
	b.wantBody("f", "person's")
}

type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }

// TestFilesystemsWithoutAttributes: where there are none, nothing is lost.
func TestMountWithoutAttributes(t *testing.T) {
	mounting(t, func() {
		b := emptyBox(t)
		if err := unix.Mount("ramfs", b.R(), "ramfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		b.open()
		b.make("f=F", "Sub/", "Sub/x=X")
		must(t, b.write("f", "new"))
		must(t, b.write("Sub/n", "N"))
		must(t, b.move("Sub/n", "m"))
		b.wantBody("f", "new")
		b.wantBody("Sub/x", "X")
		b.wantRefused("sub/x", fault.PathMissing)
	})
}
