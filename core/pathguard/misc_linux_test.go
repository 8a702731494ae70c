// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/testenv"
)

// TestLinkError: a caller that does not follow gets a refusal.
func TestLinkError(t *testing.T) {
	b := newBox(t, []string{"t=T", "l -> t"})
	_, err := b.name("l").Open()
	if fault.CodeOf(err) != fault.PathSymlink || !errors.Is(err, fs.ErrPermission) || err.Error() != "project://l: leads to project://t" {
		t.Errorf("%v, %v", err, fault.CodeOf(err))
	}
}

// TestLinkLimit: 40 links are followed, one more is not.
func TestLinkLimit(t *testing.T) {
	b := newBox(t, []string{"l0=T"})
	for i := 1; i <= 41; i++ {
		b.make("l" + decimal(int64(i)) + " -> l" + decimal(int64(i-1)))
	}
	b.wantBody("l40", "T")
	b.wantRefused("l41", fault.PathSymlink)
}

// TestLinkOdd: targets that are no names, and those too long to become one.
func TestLinkOdd(t *testing.T) {
	b := newBox(t, []string{"d/", "bad -> x\xff", "none -> absent/../f", "f=F", "through -> f/../f", "slash -> f/", "late -> d/absent/x"})
	b.wantRefused("bad", fault.PathEscape)
	for _, s := range []string{"none", "through", "slash", "late"} {
		b.wantRefused(s, fault.PathMissing)
		wantCode(t, b.write(s, "x"), fault.PathMissing)
	}
	long := strings.Repeat("y", 250)
	b.make("long -> " + strings.Repeat(long+"/", 16) + "f")
	b.wantRefused("long/"+long, fault.PathDenied)
	wantCode(t, b.write("long/"+long, "x"), fault.PathDenied)
}

// TestHints: who takes a directory for a file, or a file for a directory, learns
// what works.
func TestHints(t *testing.T) {
	b := newBox(t, []string{"d/", "f=F"})
	_, read := b.name("d").Open()
	_, list := b.name("f").OpenDir()
	for want, err := range map[string]error{"list it instead": read, "read it instead": list} {
		if f := fault.As(err); f == nil || f.Code != fault.IOFailed || f.Hint != want {
			t.Errorf("%v, want the hint %q", err, want)
		}
	}
}

// TestSpecial: sockets and devices are told, moved and deleted, never opened.
func TestSpecial(t *testing.T) {
	b := newBox(t, nil)
	t.Chdir(b.R()) // a socket's name is short
	l, err := net.Listen("unix", "s")
	must(t, err)
	defer l.Close()
	names := map[string]string{"s": "socket"}
	if os.Getuid() == 0 {
		must(t, unix.Mknod(b.R()+"/c", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		must(t, unix.Mknod(b.R()+"/b", unix.S_IFBLK|0o666, int(unix.Mkdev(7, 250))))
		names["c"], names["b"] = "device", "device"
	}
	listed, err := listName(b.name("."))
	must(t, err)
	for name, kind := range names {
		i, err := b.name(name).Stat()
		must(t, err)
		fi, err := os.Lstat(b.place(name))
		must(t, err)
		if i.Kind.String() != kind || i.Mode != fi.Mode() || !strings.Contains(listed, kind+":"+name) {
			t.Errorf("%s: %v %v, listed %s", name, i.Kind, i.Mode, listed)
		}
		b.wantRefused(name, fault.PathSpecial)
		wantCode(t, b.write(name, "x"), fault.PathSpecial)
		must(t, b.move(name, "moved"))
		must(t, b.removeAll("moved"))
	}
}

// TestLease: a file that another program holds a lease on is lock.held, now.
func TestLease(t *testing.T) {
	signal.Ignore(syscall.SIGIO)
	defer signal.Reset(syscall.SIGIO)
	b := newBox(t, []string{"f=F"})
	f, err := os.Open(b.R() + "/f")
	must(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		t.Fatalf("no leases here: %v", err)
	}
	err = b.append("f", "x")
	if fault.CodeOf(err) != fault.LockHeld || !fault.As(err).Retry {
		t.Errorf("%v", err)
	}
	b.wantBody("f", "F")
	f2, err := os.OpenFile(b.R()+"/g", os.O_CREATE|os.O_RDWR, 0o644)
	must(t, err)
	defer f2.Close()
	_, err = unix.FcntlInt(f2.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	must(t, err)
	b.wantRefused("g", fault.LockHeld)
}

// TestFolderNotReadable: a directory that may be written to and not read takes
// changes, although it can't be synced.
func TestFolderNotReadable(t *testing.T) {
	needRoot(t)
	b := newBox(t, []string{"d/"})
	must(t, os.Chmod(b.R()+"/d", 0o333))
	testenv.AsNobody(t, func() {
		if err := b.write("d/n", "N"); err != nil {
			t.Error(err)
		}
		err := b.follow("d", func(n pathguard.Name) error { _, err := listName(n); return err })
		if fault.CodeOf(err) != fault.IOFailed {
			t.Errorf("%v", err)
		}
	})
	b.wantBody("d/n", "N")
}

// TestNotPermitted: what the system refuses is a failure, not a denial, and a
// folder that can't be read fails alone.
func TestNotPermitted(t *testing.T) {
	needRoot(t)
	b := newBox(t, []string{"a.txt=A", "priv/", "priv/f=F", "priv@0000", "secret=S", "secret@0000", "l -> priv/f"})
	testenv.AsNobody(t, func() {
		b.wantBody("a.txt", "A")
		for _, s := range []string{"priv/f", "secret", "l"} {
			b.wantRefused(s, fault.IOFailed)
		}
		if i, err := b.name("priv").Stat(); err != nil || i.Kind != pathguard.KindDir {
			t.Errorf("%v, %v", i, err)
		}
		wantCode(t, b.write("n", "x"), fault.IOFailed)
		wantCode(t, b.move("a.txt", "b.txt"), fault.IOFailed)
		wantCode(t, b.removeAll("a.txt"), fault.IOFailed)
	})
	// In a sticky directory somebody else's file stays.
	must(t, os.Chmod(b.R(), 0o777|os.ModeSticky))
	must(t, os.Chmod(b.R()+"/a.txt", 0o666))
	testenv.AsNobody(t, func() {
		wantCode(t, b.move("a.txt", "b.txt"), fault.IOFailed)
		wantCode(t, b.removeAll("a.txt"), fault.IOFailed)
		if err := b.write("mine", "M"); err != nil {
			t.Error(err)
		}
		if err := b.move("mine", "mine2"); err != nil {
			t.Error(err)
		}
	})
}

// TestPreview: what a preview asks of a target.
func TestPreview(t *testing.T) {
	b := newBox(t, []string{"f=F", "ro=R", "ro@0444"})
	tg, err := b.name("f").Pin()
	must(t, err)
	defer tg.Close()
	dir, entry := tg.IDs()
	if dir == (pathguard.ID{}) || entry == (pathguard.ID{}) || dir == entry || entry.Ino != inode(t, b.R()+"/f") {
		t.Errorf("%v, %v", dir, entry)
	}
	must(t, tg.CanReplace())
	ro, err := b.name("ro").Pin()
	must(t, err)
	defer ro.Close()
	wantCode(t, ro.CanReplace(), fault.IOFailed)
	absent, err := b.name("n").Pin()
	must(t, err)
	defer absent.Close()
	if _, entry := absent.IDs(); entry != (pathguard.ID{}) {
		t.Errorf("%v", entry)
	}
}

// TestRootAlone: a root that is in no workspace answers for itself.
func TestRootAlone(t *testing.T) {
	b := emptyBox(t)
	r := b.openRoot("a", b.R())
	if r.Missing() {
		t.Error("missing")
	}
}

// TestDeep: the longest names that work.
func TestDeep(t *testing.T) {
	b := newBox(t, nil)
	long := strings.Repeat("y", 255)
	must(t, b.write(long, "L"))
	b.wantBody(long, "L")
	deep := strings.Repeat("d/", 200)
	must(t, os.MkdirAll(filepath.Join(b.R(), deep), 0o755))
	must(t, b.write(deep+"f", "F"))
	b.wantBody(deep+"f", "F")
	must(t, b.removeAll("d"))
}
