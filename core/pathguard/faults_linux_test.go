// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

func isHalfway(err error) bool { return errors.Is(err, pathguard.ErrMayHaveApplied) }

// TestFaultLocked: a rename that another program holds up is tried again, and
// then lock.held; nothing of ours is left.
func TestFaultLocked(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.EACCES, unix.EBUSY, unix.ETXTBSY} {
		for _, failures := range []int{3, 1000} {
			slept, tried := 0, 0
			b := newBox(t, []string{"f=a"})
			pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
				s.CountSleeps(&slept)
				s.FailExchange(func(dir int, x, y string) error {
					if tried++; tried <= failures {
						return errno
					}
					return pathguard.RenameExchange(dir, x, y)
				})
			})
			err := b.write("f", "b")
			want := "/f ---------- b"
			if failures == 1000 {
				want = "/f ---------- a"
				wantCode(t, err, fault.LockHeld)
				if f := fault.As(err); !f.Retry || !strings.Contains(f.Error(), "another program holds") || slept != 9 {
					t.Errorf("%v after %d pauses", f, slept)
				}
			} else if err != nil || slept != 3 {
				t.Errorf("%v after %d pauses", err, slept)
			}
			if got := tree(t, b.R()); got != " d---------\n"+want {
				t.Errorf("%s", got)
			}
		}
	}
}

// TestFaultDropped: a write layer that drops bytes without an error is found
// out before the file takes its name.
func TestFaultDropped(t *testing.T) {
	content := strings.Repeat("x", 147_308)
	for name, write := range map[string]func(fd int, p []byte) (int, error){
		"tail": func(fd int, p []byte) (int, error) {
			_, err := unix.Write(fd, p[:max(0, len(p)-18)])
			return len(p), err
		},
		"zeros": func(fd int, p []byte) (int, error) { return unix.Write(fd, make([]byte, len(p))) },
		"padded": func(fd int, p []byte) (int, error) {
			_, err := unix.Write(fd, append(bytes.Clone(p), 0, 0, 0))
			return len(p), err
		},
		"nothing": func(int, []byte) (int, error) { return 0, nil },
		"io":      func(int, []byte) (int, error) { return 0, unix.EIO },
		"full":    func(int, []byte) (int, error) { return 0, unix.ENOSPC },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, []string{"f=" + content})
			before := tree(t, b.R())
			pathguard.SetSeam(b.root, func(s *pathguard.Seam) { s.FailWrite(write) })
			errs := map[string]error{
				"replace": b.write("f", content+"a much longer one"),
				"create":  b.write("n", "content"),
			}
			if name != "padded" { // what is longer may be somebody else's, and stays
				errs["append"] = b.append("f", "more than eighteen bytes")
			}
			for op, err := range errs {
				if fault.CodeOf(err) != fault.IOFailed || isHalfway(err) {
					t.Errorf("%s: %v", op, err)
				}
			}
			if tree(t, b.R()) != before {
				t.Error("it changed, or something was left")
			}
		})
	}
}

// TestFaultDroppedEarly: each part is read back before the next is taken, so that
// nothing is left to do when the content, or who waits for it, has ended.
func TestFaultDroppedEarly(t *testing.T) {
	b := newBox(t, nil)
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailWrite(func(fd int, p []byte) (int, error) { return unix.Write(fd, make([]byte, len(p))) })
	})
	tg, err := b.name("n").Pin()
	must(t, err)
	defer tg.Close()
	content := strings.NewReader(strings.Repeat("x", 10<<20))
	_, err = tg.Create(content, 0o644)
	wantCode(t, err, fault.IOFailed)
	if taken := 10<<20 - content.Len(); taken > 64<<10 {
		t.Errorf("%d bytes were taken before the first was read back", taken)
	}
}

func (b *box) append(spelling, content string) error {
	return b.follow(spelling, func(n pathguard.Name) error {
		tg, err := n.Pin()
		if err != nil {
			return err
		}
		defer tg.Close()
		_, err = tg.Append([]byte(content), pathguard.WriteOptions{})
		return err
	})
}

// TestFaultShort: short writes are continued.
func TestFaultShort(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailWrite(func(fd int, p []byte) (int, error) { return unix.Write(fd, p[:min(len(p), 1000)]) })
	})
	want := strings.Repeat("0123456789", 50_000)
	must(t, b.write("f", want))
	b.wantBody("f", want)
	must(t, b.append("f", want))
	b.wantBody("f", want+want)
}

// TestFaultReader: an error of the content's reader changes nothing.
func TestFaultReader(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	for _, name := range []string{"f", "n"} {
		tg, err := b.name(name).Pin()
		must(t, err)
		bad := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("gone")))
		if tg.Exists() {
			_, err = tg.Replace(bad, pathguard.WriteOptions{})
		} else {
			_, err = tg.Create(bad, 0o644)
		}
		wantCode(t, err, fault.IOFailed)
		tg.Close()
	}
	if got := tree(t, b.R()); got != " d---------\n/f ---------- a" {
		t.Error(got)
	}
}

// without makes the root's file system one without exchange and exclusive
// rename.
func (b *box) without() {
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailExchange(func(int, string, string) error { return unix.EINVAL })
		s.FailRename(func(int, string, int, string) error { return unix.EINVAL })
	})
}

// TestFaultNoExchange: all changes work where the newer renames don't, and a
// replace says that it could not compare in one step.
func TestFaultNoExchange(t *testing.T) {
	b := newBox(t, []string{"f=a", "d/", "d/x=X", "e/", "k=K", "l -> f"})
	b.without()
	tg, err := b.name("f").Pin()
	must(t, err)
	kept := false
	w, err := tg.Replace(strings.NewReader("b"), pathguard.WriteOptions{Keep: func(*pathguard.File) error { kept = true; return nil }})
	if err != nil || w.CAS || !kept {
		t.Errorf("%+v, %v, kept %v", w, err, kept)
	}
	tg.Close()
	must(t, b.write("n", "N"))
	must(t, b.move("n", "m"))
	must(t, b.move("d", "d2"))
	must(t, b.move("l", "l2"))
	wantCode(t, b.move("d2", "e"), fault.PreconditionFailed)
	wantCode(t, b.move("m", "k"), fault.PreconditionFailed)
	must(t, b.removeAll("k"))
	if got := tree(t, b.R()); got != " d---------\n/d2 d---------\n/d2/x ---------- X\n/e d---------\n/f ---------- b\n/l2 L--------- f\n/m ---------- N" {
		t.Error(got)
	}
	stop := errors.New("stop")
	keep := pathguard.WriteOptions{Keep: func(*pathguard.File) error { return stop }}
	tg, err = b.name("f").Pin()
	must(t, err)
	defer tg.Close()
	if _, err := tg.Replace(strings.NewReader("c"), keep); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if err := tg.Remove(keep); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	b.wantBody("f", "b")
}

// TestFaultChangedInside: somebody changes the file between the last look and
// the rename: swapped back, and the caller is told.
func TestFaultChangedInside(t *testing.T) {
	for name, change := range map[string]func(b *box){
		"written":  func(b *box) { b.make("f=person's") },
		"replaced": func(b *box) { b.make("g=person's"); must(t, os.Rename(b.R()+"/g", b.R()+"/f")) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, []string{"f=a"})
			calls := 0
			pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
				s.FailExchange(func(dir int, x, y string) error {
					if calls++; calls == 1 {
						change(b)
					}
					return pathguard.RenameExchange(dir, x, y)
				})
			})
			err := b.write("f", "agent's")
			wantCode(t, err, fault.PreconditionFailed)
			if calls != 2 || isHalfway(err) {
				t.Errorf("%d exchanges, %v", calls, err)
			}
			if got := tree(t, b.R()); got != " d---------\n/f ---------- person's" {
				t.Error(got)
			}
		})
	}
}

// TestFaultChangedTwice: what can't be swapped back is kept and said.
func TestFaultChangedTwice(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	calls := 0
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailExchange(func(dir int, x, y string) error {
			if calls++; calls == 2 {
				return unix.EIO
			}
			b.make("f=person's")
			return pathguard.RenameExchange(dir, x, y)
		})
	})
	err := b.write("f", "agent's")
	if !isHalfway(err) || !strings.Contains(err.Error(), pathguard.TempPrefix) {
		t.Errorf("%v", err)
	}
	if got := tree(t, b.R()); !strings.Contains(got, "person's") || !strings.Contains(got, "agent's") {
		t.Error(got)
	}
}

// TestFaultKeep: an error of Keep takes the change back.
func TestFaultKeep(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	stop := errors.New("stop")
	kept := ""
	o := pathguard.WriteOptions{Keep: func(f *pathguard.File) error {
		all, err := io.ReadAll(f)
		must(t, err)
		kept = string(all)
		return stop
	}}
	for _, op := range []func(*pathguard.Target) error{
		func(tg *pathguard.Target) error { _, err := tg.Replace(strings.NewReader("b"), o); return err },
		func(tg *pathguard.Target) error { _, err := tg.Append([]byte("b"), o); return err },
		func(tg *pathguard.Target) error { return tg.Remove(o) },
	} {
		kept = ""
		tg, err := b.name("f").Pin()
		must(t, err)
		if err := op(tg); !errors.Is(err, stop) || kept != "a" {
			t.Errorf("%v, kept %q", err, kept)
		}
		tg.Close()
	}
	if got := tree(t, b.R()); got != " d---------\n/f ---------- a" {
		t.Error(got)
	}
}

// TestKeep: what is displaced or removed is handed over whole first.
func TestKeep(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	kept := ""
	o := pathguard.WriteOptions{Keep: func(f *pathguard.File) error {
		all, err := io.ReadAll(f)
		kept += string(all)
		return err
	}}
	for _, op := range []func(*pathguard.Target) error{
		func(tg *pathguard.Target) error { _, err := tg.Replace(strings.NewReader("b"), o); return err },
		func(tg *pathguard.Target) error { _, err := tg.Append([]byte("c"), o); return err },
		func(tg *pathguard.Target) error { return tg.Remove(o) },
	} {
		tg, err := b.name("f").Pin()
		must(t, err)
		must(t, op(tg))
		tg.Close()
	}
	if kept != "abbc" || tree(t, b.R()) != " d---------" {
		t.Errorf("kept %q\n%s", kept, tree(t, b.R()))
	}
}

// TestFaultStale: a target is good for the state that was judged only.
func TestFaultStale(t *testing.T) {
	content := func() io.Reader { return strings.NewReader("new") }
	o := pathguard.WriteOptions{}
	ops := map[string]func(tg *pathguard.Target) error{
		"replace": func(tg *pathguard.Target) error { _, err := tg.Replace(content(), o); return err },
		"append":  func(tg *pathguard.Target) error { _, err := tg.Append([]byte("x"), o); return err },
		"remove":  func(tg *pathguard.Target) error { return tg.Remove(o) },
		"create":  func(tg *pathguard.Target) error { _, err := tg.Create(content(), 0o644); return err },
		"mkdir":   func(tg *pathguard.Target) error { return tg.Mkdir(0o755) },
		"removeall": func(tg *pathguard.Target) error {
			return tg.RemoveAll(context.Background(), func(pathguard.Name) error { return nil }, o)
		},
	}
	fresh := map[string]bool{"create": true, "mkdir": true}
	changes := map[string]func(b *box, name string){
		"content": func(b *box, name string) { b.make(name + "=changed") },
		"parent":  func(b *box, _ string) { must(t, os.Rename(b.R()+"/d", b.R()+"/d2")); b.make("d/", "d/f=other") },
		"gone":    func(b *box, _ string) { must(t, os.RemoveAll(b.R()+"/d")) },
		"outside": func(b *box, _ string) { must(t, os.Rename(b.R()+"/d", b.O()+"/d")) },
	}
	for opName, op := range ops {
		for changeName, change := range changes {
			t.Run(opName+"-"+changeName, func(t *testing.T) {
				b := newBox(t, []string{"d/", "d/f=F"})
				name := "d/f"
				if fresh[opName] {
					name = "d/n"
				}
				tg, err := b.name(name).Pin()
				must(t, err)
				defer tg.Close()
				change(b, name)
				before := tree(t, b.dir)
				wantCode(t, op(tg), fault.PreconditionFailed)
				if after := tree(t, b.dir); after != before {
					t.Errorf("it changed:\n%s\nwas\n%s", after, before)
				}
			})
		}
	}
}

// TestFaultMoved: a parent that moves away between the check and the rename is
// never a success.
func TestFaultMoved(t *testing.T) {
	b := newBox(t, []string{"d/", "d/f=F", "d/g=G"})
	away := func() {
		if _, err := os.Lstat(b.R() + "/d"); err == nil {
			must(t, os.Rename(b.R()+"/d", b.R()+"/d2"))
			b.make("d/")
		}
	}
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailExchange(func(dir int, x, y string) error { defer away(); return pathguard.RenameExchange(dir, x, y) })
		s.FailRename(func(od int, o string, nd int, n string) error {
			defer away()
			return unix.Renameat2(od, o, nd, n, unix.RENAME_NOREPLACE)
		})
	})
	back := func() { must(t, os.Remove(b.R()+"/d")); must(t, os.Rename(b.R()+"/d2", b.R()+"/d")) }
	for name, op := range map[string]func() error{
		"replace": func() error { return b.write("d/f", "x") },
		"create":  func() error { return b.write("d/new", "x") },
		"move":    func() error { return b.move("d/g", "d/h") },
	} {
		err := op()
		if !isHalfway(err) || fault.CodeOf(err) != fault.IOFailed {
			t.Errorf("%s: %v", name, err)
		}
		back()
	}
	if err := b.removeAll("d/f"); !isHalfway(err) {
		t.Errorf("remove: %v", err)
	}
	if got := tree(t, b.R()); strings.Contains(got, pathguard.TempPrefix) {
		t.Error(got)
	}
}

// TestFaultRenameSwapped: the source is exchanged at the last moment: what
// moved is moved back.
func TestFaultRenameSwapped(t *testing.T) {
	b := newBox(t, []string{"a=A", "x=DENIED"})
	calls := 0
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailRename(func(od int, o string, nd int, n string) error {
			if calls++; calls == 1 {
				must(t, unix.Renameat2(unix.AT_FDCWD, b.R()+"/a", unix.AT_FDCWD, b.R()+"/x", unix.RENAME_EXCHANGE))
			}
			return unix.Renameat2(od, o, nd, n, unix.RENAME_NOREPLACE)
		})
	})
	wantCode(t, b.move("a", "b"), fault.PreconditionFailed)
	if got := tree(t, b.R()); got != " d---------\n/a ---------- DENIED\n/x ---------- A" {
		t.Error(got)
	}
	calls = 0
	wantCode(t, b.removeAll("a"), fault.PreconditionFailed)
	if got := tree(t, b.R()); got != " d---------\n/a ---------- A\n/x ---------- DENIED" {
		t.Error(got)
	}
}

// TestFaultRemoveAllHalfway: what appears during a removal stays, and the call
// says that it got half way; what can't be put back is named.
func TestFaultRemoveAllHalfway(t *testing.T) {
	b := newBox(t, []string{"d/e/", "d/e/f=F", "d/g=G"})
	tg, err := b.pinEntry("d")
	must(t, err)
	defer tg.Close()
	judged := 0
	err = tg.RemoveAll(t.Context(), func(n pathguard.Name) error {
		if judged++; judged == 3 {
			b.make("d/e/late=LATE")
		}
		return nil
	}, pathguard.WriteOptions{})
	if !isHalfway(err) {
		t.Errorf("%v", err)
	}
	if got := tree(t, b.R()); !strings.Contains(got, "LATE") || strings.Contains(got, "/d/e/f") {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := tree(t, b.R())
	tg2, err := b.pinEntry("d")
	must(t, err)
	defer tg2.Close()
	wantCode(t, tg2.RemoveAll(ctx, func(pathguard.Name) error { return nil }, pathguard.WriteOptions{}), fault.Cancelled)
	if tree(t, b.R()) != before {
		t.Error("a cancelled call removed something")
	}
}

func TestFaultClosed(t *testing.T) {
	b := newBox(t, []string{"f=F"})
	tg, err := b.name("f").Pin()
	must(t, err)
	if tg.Name().Rel() != "f" || !tg.Exists() || tg.Info().Size != 1 || tg.Fingerprint() == (pathguard.Fingerprint{}) {
		t.Error("what a target tells")
	}
	must(t, tg.Close())
	must(t, tg.Close())
	wantCode(t, tg.Remove(pathguard.WriteOptions{}), fault.Bug)
	absent, err := b.name("absent").Pin()
	must(t, err)
	defer absent.Close()
	if absent.Exists() || absent.Fingerprint() != (pathguard.Fingerprint{}) || absent.Info() != (pathguard.Info{}) {
		t.Error("what an absent target tells")
	}
	if err := absent.Descendants(t.Context(), 1, nil); err != nil {
		t.Error(err)
	}
}

// TestFaultSync: content that does not reach the disk is no success; a new or
// replaced file never takes its name, and what was appended may be there.
func TestFaultSync(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	synced := 0
	pathguard.SetSeam(b.root, func(s *pathguard.Seam) {
		s.FailSync(func(int) error { synced++; return unix.EIO })
	})
	for _, name := range []string{"f", "new"} {
		if err := b.write(name, "b"); fault.CodeOf(err) != fault.IOFailed || isHalfway(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := tree(t, b.R()); got != " d---------\n/f ---------- a" {
		t.Error(got)
	}
	if err := b.append("f", "b"); !isHalfway(err) {
		t.Errorf("append: %v", err)
	}
	if synced != 3 {
		t.Errorf("%d syncs", synced)
	}
}

// TestBigStream: a big file is written from a stream, in bounded memory.
func TestBigStream(t *testing.T) {
	b := newBox(t, []string{"f=a"})
	const size = 64 << 20
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	tg, err := b.name("f").Pin()
	must(t, err)
	defer tg.Close()
	readers := make([]io.Reader, size/len(chunk))
	for i := range readers {
		readers[i] = bytes.NewReader(chunk)
	}
	content := io.MultiReader(readers...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, err := tg.Replace(content, pathguard.WriteOptions{})
	must(t, err)
	runtime.ReadMemStats(&after)
	if w.Info.Size != size || !w.CAS {
		t.Errorf("%+v", w)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 4<<20 {
		t.Errorf("%d bytes allocated for %d written", grew, size)
	}
}
