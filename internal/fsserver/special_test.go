// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/testenv"
)

func fifoBlock(t *testing.T) {
	w := newWorld(t, map[string]string{"a.txt": "A"})
	w.must(unix.Mkfifo(w.at("f"), 0o644))
	w.must(unix.Mknod(w.at("s"), unix.S_IFSOCK|0o644, 0))
	var waiting []chan json.RawMessage
	for range 100 {
		_, ch := w.startCall("read_text_file", args{"path": w.at("f")})
		waiting = append(waiting, ch)
	}
	if got := w.call("read_text_file", args{"path": w.at("a.txt")}).body(); got != "A" {
		t.Error(got)
	}
	for _, ch := range waiting {
		w.result(w.await(ch)).refused("path.special")
	}
	for _, name := range []string{"f", "s"} {
		w.call("write_file", args{"path": w.at(name), "content": "x"}).refused("path.special")
		w.call("append_file", args{"path": w.at(name), "content": "x"}).refused("path.special")
		w.call("read_media_file", args{"path": w.at(name)}).refused("path.special")
		w.call("list_directory", args{"path": w.at(name)}).refused("path.special")
	}
	if info, err := os.Lstat(w.at("f")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Error(info, err)
	}
	if got := w.call("list_directory", args{"path": w.root}).body(); got != "[FILE] a.txt\n[FIFO] f\n[SOCKET] s" {
		t.Errorf("%q", got)
	}
	w.call("directory_tree", args{"path": w.root}).has(`"type": "fifo"`, `"type": "socket"`)
	w.call("get_file_info", args{"path": w.at("f")}).has("isFile: false", "kind: fifo")
}

// slowNode is a directory whose every operation waits until the test lets go.
type slowNode struct {
	fs.Inode
	held chan struct{}
}

func (n *slowNode) wait(ctx context.Context) {
	select {
	case <-n.held:
	case <-ctx.Done(): // the request was interrupted
	}
}

func (n *slowNode) OnAdd(context.Context) {}

func (n *slowNode) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	n.wait(ctx)
	return fs.NewListDirStream(nil), 0
}

func (n *slowNode) OpendirHandle(ctx context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	<-n.held
	return nil, 0, 0
}

func (n *slowNode) Lookup(ctx context.Context, _ string, _ *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.wait(ctx)
	return nil, syscall.ENOENT
}

// mountSlow mounts a folder with a.md and slow/, and returns what lets go.
func (w *world) mountSlow(dir string) (letGo func()) {
	w.Helper()
	w.must(os.MkdirAll(dir, 0o755))
	slow := &slowNode{held: make(chan struct{})}
	root := &fs.Inode{}
	opts := &fs.Options{OnAdd: func(ctx context.Context) {
		root.AddChild("a.md", root.NewPersistentInode(ctx, &fs.MemRegularFile{Data: []byte("A")}, fs.StableAttr{}), false)
		root.AddChild("slow", root.NewPersistentInode(ctx, slow, fs.StableAttr{Mode: syscall.S_IFDIR}), false)
	}}
	opts.MountOptions = fuse.MountOptions{DirectMount: true, FsName: "slow"}
	srv, err := fs.Mount(dir, root, opts)
	if err != nil {
		testenv.Missing(w.T, "FUSE: "+err.Error())
	}
	letGo = sync.OnceFunc(func() { close(slow.held) })
	w.Cleanup(func() {
		letGo()
		_ = srv.Unmount()
		srv.Wait()
	})
	return letGo
}

// noHandleBeneath waits until no file beneath a directory is open here.
func (w *world) noHandleBeneath(dir string) {
	w.Helper()
	for end := time.Now().Add(patience); ; {
		var left []string
		for _, fd := range w.names("/proc/self/fd") {
			if path, err := os.Readlink("/proc/self/fd/" + fd); err == nil && strings.HasPrefix(path, dir+"/") {
				left = append(left, path)
			}
		}
		if left == nil {
			return
		}
		if time.Now().After(end) {
			w.Errorf("still open: %q", left)
			return
		}
		runtime.Gosched()
	}
}

func slowProvider(t *testing.T) {
	w := newWorld(t, map[string]string{"c.txt": "C"}, later)
	slow := w.box + "/slowfs"
	letGo := w.mountSlow(slow)
	quiet := goleak.IgnoreCurrent()
	s := w.setup
	s.Roots, s.CallTime = append(s.Roots, "slow="+slow), time.Second
	c := w.serve(s, nil)
	search := args{"path": slow, "pattern": "**/*.md"}
	_, first := c.startCall("search_files", search)
	id, second := c.startCall("search_files", search)
	if got := c.call("read_text_file", args{"path": w.at("c.txt")}).body(); got != "C" {
		t.Error(got)
	}
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
	r := c.result(c.await(first)).ok().has(slow+"/a.md", "partial: true", "slow://slow")
	if o := r.outcome(); o["partial"] != true || o["aborted_at"] != "slow://slow" {
		t.Error(o)
	}
	if !strings.HasSuffix(r.Content[0].Text, ">") {
		t.Error("no envelope")
	}
	c.call("list_directory", args{"path": slow + "/slow"}).refused("call.cancelled").has("ran out of time")
	w.put(w.at("c.txt"), "C2")
	if got := c.call("read_text_file", args{"path": w.at("c.txt")}).body(); got != "C2" {
		t.Error(got)
	}
	select {
	case line := <-second:
		t.Errorf("a cancelled call was answered: %s", line)
	default:
	}
	letGo()
	c.hangUp()
	w.noHandleBeneath(slow)
	if err := goleak.Find(quiet, goleak.IgnoreAnyFunction("github.com/hanwen/go-fuse/v2/fuse.(*Server).loop"),
		goleak.IgnoreAnyFunction("github.com/hanwen/go-fuse/v2/fuse.(*Server).readRequest")); err != nil {
		t.Error(err)
	}
}
