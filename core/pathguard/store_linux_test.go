// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// shelf is a store beside a box.
func shelf(t *testing.T) (*pathguard.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := pathguard.OpenStore(dir)
	must(t, err)
	t.Cleanup(s.Close)
	return s, dir
}

func (b *box) pin(name string) *pathguard.Target {
	b.t.Helper()
	tg, err := b.name(name).PinEntry()
	must(b.t, err)
	b.t.Cleanup(func() { _ = tg.Close() })
	return tg
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func all(pathguard.Name) error { return nil }

// TestStore: what is displaced or removed goes to the store as it is, and comes
// back as it was: the same inode, with all that it has.
func TestStore(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		b := newBox(t, []string{"f=old", "gone=G", "d/", "d/x=X", "l -> f"})
		if !exchange {
			pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
				s.FailExchange(func(int, string, string) error { return unix.EINVAL })
				s.FailAcross(func(int, string, int, string) error { return unix.EINVAL })
			})
		}
		s, dir := shelf(t)
		before := tree(t, b.R())
		f := b.pin("f")
		w, err := f.Replace(strings.NewReader("new"), pathguard.WriteOptions{Into: s, As: "f"})
		if err != nil || w.CAS != exchange || content(t, filepath.Join(dir, "f")) != "old" || !s.Near(f) {
			t.Fatalf("%+v %v", w, err)
		}
		must(t, b.pin("gone").Remove(pathguard.WriteOptions{Into: s, As: "gone"}))
		must(t, b.pin("l").Remove(pathguard.WriteOptions{Into: s, As: "l"}))
		must(t, b.pin("d").RemoveAll(context.Background(), all, pathguard.WriteOptions{Into: s, As: "d"}))
		if got := tree(t, b.R()); got != " d---------\n/f ---------- new" {
			t.Errorf("%s", got)
		}
		if got := content(t, filepath.Join(dir, "d/x")); got != "X" {
			t.Error(got)
		}
		if w, err = b.pin("f").Exchange(s, "f", s.Facts("f")); err != nil || w.CAS != exchange || content(t, filepath.Join(dir, "f")) != "new" {
			t.Errorf("%+v %v", w, err)
		}
		for _, n := range []string{"gone", "l", "d"} {
			if _, err := b.pin(n).Adopt(s, n, s.Facts(n)); err != nil {
				t.Errorf("%s: %v", n, err)
			}
		}
		if got := tree(t, b.R()); got != before {
			t.Errorf("exchange %t:\n%s\nwas\n%s", exchange, got, before)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("left in the store: %v", left)
		}
	}
}

// TestStoreRefuses: an image that is not what was kept, or is gone, is never
// brought back, and a name that is taken is not replaced.
func TestStoreRefuses(t *testing.T) {
	b := newBox(t, []string{"f=now"})
	s, dir := shelf(t)
	must(t, os.WriteFile(filepath.Join(dir, "i"), []byte("image"), 0o600))
	kept := s.Facts("i")
	time.Sleep(15 * time.Millisecond)
	must(t, os.WriteFile(filepath.Join(dir, "i"), []byte("IMAGE"), 0o600))
	for name, err := range map[string]error{
		"changed": func() error { _, err := b.pin("f").Exchange(s, "i", kept); return err }(),
		"absent":  func() error { _, err := b.pin("f").Exchange(s, "none", kept); return err }(),
		"adopted": func() error { _, err := b.pin("n").Adopt(s, "i", kept); return err }(),
		"zero":    func() error { _, err := b.pin("n").Adopt(s, "none", pathguard.Facts{}); return err }(),
	} {
		wantCode(t, err, fault.IOFailed)
		_ = name
	}
	_, err := b.pin("f").Adopt(s, "i", s.Facts("i"))
	wantCode(t, err, fault.PreconditionFailed)
	b.wantBody("f", "now")
	if _, err := b.pin("n").Adopt(s, "i", s.Facts("i")); err != nil { // control
		t.Error(err)
	}
}

// TestStoreRaced: what another program put there in the last moment is not
// taken, and stays.
func TestStoreRaced(t *testing.T) {
	b := newBox(t, []string{"f=old", "g=G", "d/", "d/x=X"})
	s, dir := shelf(t)
	must(t, os.WriteFile(filepath.Join(dir, "i"), []byte("image"), 0o644))
	first := true
	pathguard.SetSeam(b.root, func(seam *pathguard.Seam) {
		seam.FailAcross(func(od int, o string, nd int, n string) error {
			if first {
				b.make("p=person")
				must(t, os.Rename(b.R()+"/p", b.R()+"/f"))
			}
			first = false
			return unix.Renameat2(od, o, nd, n, unix.RENAME_EXCHANGE)
		})
		seam.FailRenameTo(func(od int, o string, nd int, n string) error {
			switch o {
			case "g":
				b.make("p=person")
				must(t, os.Rename(b.R()+"/p", b.R()+"/g"))
			case "d":
				b.make("d/added=person")
			}
			return unix.Renameat(od, o, nd, n)
		})
	})
	_, err := b.pin("f").Exchange(s, "i", s.Facts("i"))
	wantCode(t, err, fault.PreconditionFailed)
	wantCode(t, b.pin("g").Remove(pathguard.WriteOptions{Into: s, As: "g"}), fault.PreconditionFailed)
	wantCode(t, b.pin("d").RemoveAll(context.Background(), all, pathguard.WriteOptions{Into: s, As: "d"}), fault.PreconditionFailed)
	if got := tree(t, b.R()); got != " d---------\n/d d---------\n/d/added ---------- person\n/d/x ---------- X\n/f ---------- person\n/g ---------- person" {
		t.Error(got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || content(t, filepath.Join(dir, "i")) != "image" {
		t.Errorf("the store: %v", left)
	}
}

// TestStoreFails: where what is displaced can't be kept the change is taken
// back.
func TestStoreFails(t *testing.T) {
	b := newBox(t, []string{"f=old", "d/", "d/x=X"})
	s, _ := shelf(t)
	before := tree(t, b.R())
	pathguard.SetSeam(b.root, func(seam *pathguard.Seam) {
		seam.FailRenameTo(func(int, string, int, string) error { return unix.EXDEV })
	})
	o := pathguard.WriteOptions{Into: s, As: "k"}
	_, err := b.pin("f").Replace(strings.NewReader("new"), o)
	wantCode(t, err, fault.IOFailed)
	wantCode(t, b.pin("f").Remove(o), fault.IOFailed)
	wantCode(t, b.pin("d").RemoveAll(context.Background(), all, o), fault.IOFailed)
	wantCode(t, b.pin("d").Remove(o), fault.IOFailed)
	if got := tree(t, b.R()); got != before {
		t.Error(got)
	}
}

// TestTruncate: a file gets its former length and time, in place.
func TestTruncate(t *testing.T) {
	b := newBox(t, []string{"f=old"})
	was := b.pin("f").Fingerprint().Facts()
	_, err := b.pin("f").Append([]byte("more"), pathguard.WriteOptions{})
	must(t, err)
	for _, size := range []int64{-1, 100} {
		_, err := b.pin("f").Truncate(size, 0, pathguard.WriteOptions{})
		wantCode(t, err, fault.PreconditionFailed)
	}
	w, err := b.pin("f").Truncate(was.Size, was.MTime, pathguard.WriteOptions{})
	must(t, err)
	b.wantBody("f", "old")
	if now := w.Info.Fingerprint.Facts(); now.Ino != was.Ino || now.MTime != was.MTime || now.Size != was.Size {
		t.Errorf("%+v, was %+v", now, was)
	}
	must(t, os.Link(b.R()+"/f", b.R()+"/g"))
	_, err = b.pin("f").Truncate(1, 0, pathguard.WriteOptions{})
	wantCode(t, err, fault.PathDenied)
}

// TestLike: a file that is written anew gets what another one had.
func TestLike(t *testing.T) {
	b := newBox(t, []string{"f=old"})
	must(t, os.Chmod(b.R()+"/f", 0o604))
	must(t, unix.Setxattr(b.R()+"/f", "user.note", []byte("n"), 0))
	must(t, os.Chtimes(b.R()+"/f", time.Unix(7, 0), time.Unix(1e9, 99)))
	src, err := b.pin("f").Source()
	must(t, err)
	like, err := src.Like()
	must(t, err)
	must(t, src.Close())
	must(t, os.Remove(b.R()+"/f"))
	s, err := b.pin("f").StageCreate(strings.NewReader("back"), 0o600, pathguard.WriteOptions{Like: &like})
	must(t, err)
	defer s.Discard()
	must(t, s.Fill())
	w, err := s.Commit()
	must(t, err)
	note := make([]byte, 9)
	n, err := unix.Getxattr(b.R()+"/f", "user.note", note)
	if err != nil || string(note[:n]) != "n" || w.Info.Mode != 0o604 || w.Info.ModTime.UnixNano() != 1e18+99 {
		t.Errorf("%q %v %+v", note[:n], err, w.Info)
	}
}
