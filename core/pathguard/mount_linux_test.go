// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"context"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/testenv"
)

// mounting runs f in a thread with mounts of its own, which end with it.
func mounting(t *testing.T, f func()) {
	t.Helper()
	needRoot(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
			t.Errorf("no mount namespace: %v", err)
			return
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

func bind(t *testing.T, from, to string) {
	t.Helper()
	must(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
}

// kernels are the ways in which openat2 answers.
var kernels = map[string]func(*pathguard.Root){
	"openat2": func(*pathguard.Root) {},
	"ENOSYS":  func(r *pathguard.Root) { pathguard.WithoutOpenat2(r, unix.ENOSYS) },
	"EPERM":   func(r *pathguard.Root) { pathguard.WithoutOpenat2(r, unix.EPERM) },
}

func eachKernel(t *testing.T, f func(t *testing.T, prepare func(*pathguard.Root))) {
	for name, prepare := range kernels {
		t.Run(name, func(t *testing.T) { mounting(t, func() { f(t, prepare) }) })
	}
}

// TestMountUnlisted: a bind mount, even of the same device, is not entered,
// listed, changed or told about.
func TestMountUnlisted(t *testing.T) {
	eachKernel(t, func(t *testing.T, prepare func(*pathguard.Root)) {
		b := newBox(t, []string{"m/", "d/m/", "f=F", "$O/s=SECRET", "l -> m/s", "d/x=X"})
		prepare(b.root)
		bind(t, b.O(), b.R()+"/m")
		bind(t, b.O(), b.R()+"/d/m")
		bind(t, b.O()+"/s", b.R()+"/f")
		for _, s := range []string{"m/s", "l", "f", "d/m/s"} {
			b.wantRefused(s, fault.PathMount)
		}
		for name, err := range map[string]error{
			"list":       b.follow("m", func(n pathguard.Name) error { _, err := listName(n); return err }),
			"stat":       b.follow("m", func(n pathguard.Name) error { _, err := n.Stat(); return err }),
			"lstat":      b.follow("m", func(n pathguard.Name) error { _, err := n.Lstat(); return err }),
			"write":      b.write("m/new", "x"),
			"replace":    b.write("f", "x"),
			"remove":     b.removeAll("m"),
			"remove all": b.removeAll("d"),
			"move":       b.move("m", "n"),
			"move into":  b.move("d/x", "m/x"),
		} {
			if fault.CodeOf(err) != fault.PathMount {
				t.Errorf("%s: %v", name, err)
			}
		}
		d, err := b.name(".").OpenDir()
		must(t, err)
		defer d.Close()
		_, err = d.Lstat("m")
		wantCode(t, err, fault.PathMount)
		for _, s := range []string{"/m/s", "/l", "/f", "/d/m/s"} {
			if got, err := os.ReadFile(b.R() + s); string(got) != "SECRET" {
				t.Errorf("the control %s: %q, %v", s, got, err)
			}
		}
		if got := tree(t, b.O()); got != " d---------\n/s ---------- SECRET" {
			t.Error(got)
		}
	})
}

// TestMountListed: a listed mount point is entered, one inside it is not, and
// a file system of the kernel never is.
func TestMountListed(t *testing.T) {
	eachKernel(t, func(t *testing.T, prepare func(*pathguard.Root)) {
		b := emptyBox(t)
		b.make("d/m/", "p/", "$O/in/", "$O/s=S", "$O/state/", "$O/state/key=KEY", "$BOX/else/", "$BOX/else/x=X")
		b.open(func(o *pathguard.Options) { o.Mounts = []string{"d/m", "p"} })
		prepare(b.root)
		bind(t, b.O(), b.R()+"/d/m")
		bind(t, b.dir+"/else", b.R()+"/d/m/in")
		must(t, unix.Mount("proc", b.R()+"/p", "proc", 0, ""))
		b.wantBody("d/m/s", "S")
		must(t, b.write("d/m/s", "T"))
		must(t, b.write("d/m/new", "N"))
		must(t, b.move("d/m/new", "d/m/newer"))
		must(t, b.removeAll("d/m/newer"))
		b.wantBody("d/m/s", "T")
		if got, err := listName(b.name("d/m")); got != "dir:in dir:state file:s" || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		b.wantRefused("d/m/in/x", fault.PathMount)
		b.wantRefused("p/self/environ", fault.PathMount)
		b.wantRefused("p/version", fault.PathMount)
		wantCode(t, b.removeAll("d/m"), fault.PathMount)
		wantCode(t, b.move("d/m/s", "moved"), fault.IOFailed) // another file system
		must(t, b.ws.Protect(b.O()+"/state"))
		b.wantRefused("d/m/state/key", fault.PolicyDenied) // under another name
		for _, s := range []string{"/d/m/in/x", "/p/version", "/d/m/state/key"} {
			if _, err := os.ReadFile(b.R() + s); err != nil {
				t.Errorf("the control: %v", err)
			}
		}
	})
}

// TestMountTmpfs: a full disk leaves the old content and nothing else.
func TestMountTmpfs(t *testing.T) {
	mounting(t, func() {
		b := emptyBox(t)
		must(t, unix.Mount("tmpfs", b.R(), "tmpfs", 0, "size=64k"))
		b.open()
		a, bb := strings.Repeat("A", 40_000), strings.Repeat("B", 90_000)
		b.make("f=" + a)
		before := tree(t, b.R())
		for name, err := range map[string]error{"write": b.write("f", bb), "create": b.write("n", bb), "append": b.append("f", bb)} {
			if fault.CodeOf(err) != fault.IOFailed || isHalfway(err) {
				t.Errorf("%s: %v", name, err)
			}
			if tree(t, b.R()) != before {
				t.Errorf("%s changed something", name)
			}
		}
		must(t, unix.Mount("tmpfs", b.R(), "tmpfs", unix.MS_REMOUNT, "size=1m"))
		must(t, b.write("f", bb))
		b.wantBody("f", bb)
	})
}

// TestMountReadOnly: a read-only file system refuses without harm.
func TestMountReadOnly(t *testing.T) {
	mounting(t, func() {
		b := emptyBox(t)
		must(t, unix.Mount("tmpfs", b.R(), "tmpfs", 0, ""))
		b.make("f=F")
		must(t, unix.Mount("tmpfs", b.R(), "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		b.open()
		for name, err := range map[string]error{"write": b.write("f", "x"), "create": b.write("n", "x"), "move": b.move("f", "g")} {
			wantCode(t, err, fault.IOFailed)
			if !strings.Contains(err.Error(), "read-only") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// foldingDir is a directory that finds its entries in any case.
type foldingDir struct {
	fs.Inode
	entries []string
}

var (
	_ fs.NodeLookuper  = (*foldingDir)(nil)
	_ fs.NodeReaddirer = (*foldingDir)(nil)
)

func (d *foldingDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	for _, e := range d.entries {
		switch {
		case !strings.EqualFold(e, name):
		case strings.HasSuffix(e, ".d"):
			return d.NewInode(ctx, &foldingDir{entries: d.entries}, fs.StableAttr{Mode: fuse.S_IFDIR}), 0
		default:
			f := &fs.MemRegularFile{Data: []byte(e), Attr: fuse.Attr{Mode: 0o644}}
			out.Size = uint64(len(e))
			return d.NewInode(ctx, f, fs.StableAttr{Mode: fuse.S_IFREG}), 0
		}
	}
	return nil, syscall.ENOENT
}

func (d *foldingDir) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	var all []fuse.DirEntry
	for _, e := range d.entries {
		all = append(all, fuse.DirEntry{Name: e, Mode: fuse.S_IFREG})
	}
	return fs.NewListDirStream(all), 0
}

// TestMountFolding: on a file system that folds names each component must be
// spelled as its directory spells it.
func TestMountFolding(t *testing.T) {
	eachKernel(t, func(t *testing.T, prepare func(*pathguard.Root)) {
		b := emptyBox(t)
		root := &foldingDir{entries: []string{"Readme", "Sub.d", "caf\u00e9"}}
		server, err := fs.Mount(b.R(), root, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "folding"}})
		if err != nil {
			testenv.Missing(t, "no FUSE: "+err.Error())
		}
		b.open()
		defer func() { must(t, b.root.Close()); must(t, server.Unmount()) }()
		prepare(b.root)
		b.wantBody("Readme", "Readme")
		b.wantBody("Sub.d/Readme", "Readme")
		for _, s := range []string{"README", "sub.d/Readme", "Sub.d/readme", "SUB.D/Sub.d/Readme"} {
			b.wantRefused(s, fault.PathMissing)
			if got, err := os.ReadFile(b.R() + "/" + s); string(got) != "Readme" {
				t.Errorf("the control %s: %q, %v", s, got, err)
			}
		}
		wantCode(t, b.write("README", "x"), fault.PathMissing)
		b.wantRefused("absent", fault.PathMissing)
		err = b.follow("README", func(n pathguard.Name) error { _, err := n.Lstat(); return err })
		wantCode(t, err, fault.PathMissing)
	})
}
