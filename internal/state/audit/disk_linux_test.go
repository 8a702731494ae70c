// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/testenv"
)

func mounted(t *testing.T, what string, flags string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to mount a file system")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "mount", append(strings.Fields(flags), what, dir)...).CombinedOutput()
	if err != nil {
		testenv.Missing(t, "mount "+flags+": "+string(out))
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// fillUp leaves so many bytes of the file system free, by whole pages.
func fillUp(t *testing.T, dir string, free int64) (release func()) {
	t.Helper()
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	must(t, err)
	if size := int64(st.Bfree)*st.Bsize - free; size > 0 {
		must(t, unix.Fallocate(int(f.Fd()), 0, 0, size))
	}
	must(t, f.Close())
	return func() { must(t, os.Remove(path)) }
}

// TestDiskFull fills the disk at every point of a log's life, the making of it
// included. What was acknowledged is there, nothing is torn, changes are
// refused while it is full, and everything goes on when there is space again.
func TestDiskFull(t *testing.T) {
	root := mounted(t, "none", "-t tmpfs -o size=1m")
	for pages := int64(0); pages < 80; pages++ {
		dir := filepath.Join(root, "state")
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("2\n"), 0o600))
		release := fillUp(t, root, pages*4096)
		l := openAt(t, dir)
		var acked []string
		refusals := 0
		for i := range 60 {
			corr := fmt.Sprintf("%d", i)
			e := named(strings.Repeat("x", 200), corr)
			if err := l.Record(e, true); err == nil {
				acked = append(acked, corr)
			} else if fault.CodeOf(err) == fault.AuditUnwritable {
				refusals++
			} else {
				t.Fatalf("%d pages: %v", pages, err)
			}
			if i%20 == 19 {
				_, _ = l.Anchor()
			}
		}
		release()
		record(t, l, "after")
		must(t, l.Close())
		records := all(t, dir)
		if got := corrs(records); !slices.Equal(got, append(acked, "after")) {
			t.Errorf("%d pages: %d acknowledged, in the log %q", pages, len(acked), got)
		}
		if told := find(records, AuditFull); len(acked) > 0 && refusals > 0 && len(told) == 0 {
			t.Errorf("%d pages: that the disk was full is not told", pages)
		}
		if pages == 0 && refusals != 60 {
			t.Errorf("only %d refused on a full disk", refusals)
		}
		sound(t, dir)
		must(t, os.RemoveAll(dir))
	}
}

// TestFullIsFull: the room that the reserve gave up is not for other records,
// of this process or another.
func TestFullIsFull(t *testing.T) {
	root := mounted(t, "none", "-t tmpfs -o size=1m")
	must(t, os.Chmod(root, 0o700))
	l, other := openAt(t, root), openAt(t, root)
	record(t, l, "before")
	release := fillUp(t, root, 0)
	for _, log := range []*Log{l, l, other, other, l} {
		if err := log.Record(bulky("refused"), true); fault.CodeOf(err) != fault.AuditUnwritable {
			t.Fatalf("recorded: %v", err)
		}
	}
	read := bulky("read") // a short one could fit into what is left of a page
	read.Phase = core.PhaseDecision
	for range 5 {
		if err := l.Record(read, false); fault.CodeOf(err) != fault.AuditUnwritable {
			t.Fatalf("a read is not told: %v", err)
		}
	}
	if err := l.Problem(); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Fatalf("problem: %v", err)
	}
	release()
	record(t, l, "after")
	record(t, other, "other")
	must(t, l.Close())
	records := all(t, root)
	if got := corrs(records); !slices.Equal(got, []string{"before", "after", "other"}) {
		t.Errorf("records %q", got)
	}
	if told := find(records, ReadsUnrecorded); len(told) != 1 || told[0]["n"] != 5.0 {
		t.Errorf("reads: %v", told)
	}
	sound(t, root)
}

// failing is a file system on which writes or syncs begin to fail.
type failing struct {
	fs.LoopbackNode
	writes *atomic.Bool
	syncs  *atomic.Int64 // how many will fail
}

// WrapChild makes the files beneath fail too.
func (n *failing) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if node, ok := child.(*fs.LoopbackNode); ok {
		return &failing{fs.LoopbackNode{RootData: node.RootData}, n.writes, n.syncs}
	}
	return child
}

func (n *failing) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	h, f, e := n.LoopbackNode.Open(ctx, flags&^uint32(os.O_APPEND))
	if e != 0 {
		return h, f, e
	}
	lf, ok := h.(*fs.LoopbackFile)
	if !ok {
		return h, f, e
	}
	return &failingFile{lf, n}, f | fuse.FOPEN_DIRECT_IO, e
}

func (n *failing) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	node, h, f, e := n.LoopbackNode.Create(ctx, name, flags&^uint32(os.O_APPEND), mode, out)
	if lf, ok := h.(*fs.LoopbackFile); e == 0 && ok {
		return node, &failingFile{lf, n}, f | fuse.FOPEN_DIRECT_IO, e
	}
	return node, h, f, e
}

type failingFile struct {
	*fs.LoopbackFile
	n *failing
}

func (f *failingFile) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	if f.n.writes.Load() {
		n, _ := f.LoopbackFile.Write(ctx, data[:len(data)/2], off)
		return n, syscall.EIO
	}
	return f.LoopbackFile.Write(ctx, data, off)
}

func (f *failingFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if f.n.syncs.Add(-1) >= 0 {
		return syscall.EIO
	}
	return f.LoopbackFile.Fsync(ctx, flags)
}

func failingMount(t *testing.T) (dir string, writes *atomic.Bool, syncs *atomic.Int64) {
	t.Helper()
	writes, syncs = &atomic.Bool{}, &atomic.Int64{}
	root := &fs.LoopbackRoot{Path: t.TempDir()}
	node := &failing{fs.LoopbackNode{RootData: root}, writes, syncs}
	root.RootNode = node
	dir = t.TempDir()
	server, err := fs.Mount(dir, node, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: os.Geteuid() == 0}})
	if err != nil {
		testenv.Missing(t, "FUSE: "+err.Error())
	}
	t.Cleanup(func() { _ = server.Unmount() })
	return dir, writes, syncs
}

// TestWriteFails: a write that fails is a refusal and leaves nothing behind,
// so the segment goes on.
func TestWriteFails(t *testing.T) {
	dir, writes, _ := failingMount(t)
	l := openAt(t, dir)
	record(t, l, "before")
	writes.Store(true)
	for range 3 {
		if err := l.Record(named("f", "refused"), true); fault.CodeOf(err) != fault.AuditUnwritable {
			t.Fatalf("recorded: %v", err)
		}
	}
	writes.Store(false)
	record(t, l, "after")
	must(t, l.Close())
	if got := corrs(all(t, dir)); !slices.Equal(got, []string{"before", "after"}) {
		t.Errorf("records %q", got)
	}
	if r := sound(t, dir); r.Segments != 1 {
		t.Errorf("%d segments", r.Segments)
	}
}

// TestSyncFails: a sync that fails, once or always, is a refusal, is never
// taken for done later, and once the disk works again the log goes on in a
// segment of its own with all that was acknowledged before.
func TestSyncFails(t *testing.T) {
	for _, once := range []bool{true, false} {
		t.Run(fmt.Sprintf("once %v", once), func(t *testing.T) {
			dir, _, syncs := failingMount(t)
			l, other := openAt(t, dir), openAt(t, dir)
			record(t, l, "sealed")
			_, err := l.Anchor()
			must(t, err)
			record(t, l, "before")
			record(t, other, "other before")
			syncs.Store(1)
			if !once {
				syncs.Store(1 << 20)
			}
			// The line shares its commit with a checkpoint, as a tick does.
			l.lead <- struct{}{}
			done := make(chan error, 1)
			go func() { done <- l.Record(named("f", "refused"), true) }()
			for l.mu.Lock(); len(l.pending.lines) == 0; l.mu.Lock() {
				l.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
			l.mu.Unlock()
			_ = l.commitPending(true)
			<-l.lead
			if err := <-done; fault.CodeOf(err) != fault.AuditUnwritable {
				t.Fatalf("recorded: %v", err)
			}
			syncs.Store(0)
			record(t, l, "after")
			record(t, other, "other after")
			must(t, l.Close())
			must(t, other.Close())
			records := all(t, dir)
			if told := find(records, SegmentAbandoned); len(told) != 1 || told[0]["resource"] != "000001.jsonl" {
				t.Errorf("told %v", told)
			}
			got := slices.DeleteFunc(corrs(records), func(c string) bool { return c == "refused" }) // which may be there
			if !slices.Equal(got, []string{"sealed", "before", "other before", "after", "other after"}) {
				t.Errorf("records %q", got)
			}
			if r := sound(t, dir); r.Records < 6 {
				t.Errorf("%d records are in the tree", r.Records)
			}
		})
	}
}

// TestCheckpointFails: a checkpoint that the disk did not take is given up with
// its segment, and every process goes on.
func TestCheckpointFails(t *testing.T) {
	dir, _, syncs := failingMount(t)
	l, other := openAt(t, dir), openAt(t, dir)
	record(t, l, "before")
	_, err := l.Anchor()
	must(t, err)
	record(t, l, "given up")
	record(t, other, "given up too")
	syncs.Store(1)
	if _, err := l.Anchor(); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Fatalf("sealed: %v", err)
	}
	record(t, l, "after")
	record(t, other, "after too")
	_, err = other.Anchor()
	must(t, err)
	if told := find(all(t, dir), SegmentAbandoned); len(told) != 1 {
		t.Errorf("told %v", told)
	}
	sound(t, dir)
}

// TestPowerCut copies the image of a mounted file system while several
// processes are stopped in the middle of writing, which is what a disk holds when the
// power goes. A copy that takes its time beside them would be no disk of any moment. On the
// copy every record that was acknowledged before is there, and the log is
// sound and goes on.
func TestPowerCut(t *testing.T) {
	if dir := os.Getenv("POSTERN_TEST_CUT"); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		testenv.Missing(t, "mkfs.ext4")
	}
	images := t.TempDir()
	image := filepath.Join(images, "disk")
	f, err := os.Create(image)
	must(t, err)
	must(t, f.Truncate(48<<20))
	must(t, f.Close())
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %s", out)
	}
	dir := mounted(t, image, "-o loop")
	must(t, os.Chmod(dir, 0o700))
	acked, paused, stop := cutWriters(t, dir, 3)
	total := 0
	for cut := range 4 {
		time.Sleep(time.Duration(300+400*cut) * time.Millisecond)
		before := acked()
		copied := filepath.Join(images, fmt.Sprintf("cut%d", cut))
		paused(func() { copyFile(t, image, copied) })
		total = max(total, len(before))
		afterCut(t, copied, before)
	}
	stop()
	if total < 100 {
		t.Fatalf("only %d records were acknowledged: this run proves nothing", total)
	}
	t.Logf("%d records acknowledged before the last cut", total)
}

func afterCut(t *testing.T, image string, acked []string) {
	t.Helper()
	dir := mounted(t, image, "-o loop")
	l := openAt(t, dir)
	record(t, l, "after")
	must(t, l.Close())
	got := map[string]int{}
	for _, c := range corrs(all(t, dir)) {
		got[c]++
	}
	lost := 0
	for _, c := range acked {
		if got[c] != 1 {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged records are lost or doubled", lost, len(acked))
	}
	sound(t, dir)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "--sparse=always", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %s", out)
	}
}

// cutWriters starts processes that record as fast as they can; acked returns
// what they have said is on disk so far.
func cutWriters(t *testing.T, dir string, n int) (acked func() []string, paused func(func()), stop func()) {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	var wg sync.WaitGroup
	var cmds []*exec.Cmd
	for w := range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPowerCut$")
		cmd.Env = append(os.Environ(), "POSTERN_TEST_CUT="+dir, fmt.Sprintf("POSTERN_TEST_ID=%d", w))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		cmds = append(cmds, cmd)
		wg.Go(func() {
			for scan := bufio.NewScanner(out); scan.Scan(); {
				if id, ok := strings.CutPrefix(scan.Text(), "ack "); ok {
					mu.Lock()
					ids = append(ids, id)
					mu.Unlock()
				}
			}
		})
	}
	stop = sync.OnceFunc(func() {
		for _, cmd := range cmds {
			_ = cmd.Process.Kill()
		}
		wg.Wait()
		for _, cmd := range cmds {
			_ = cmd.Wait()
		}
	})
	t.Cleanup(stop)
	paused = func(do func()) {
		for _, cmd := range cmds {
			must(t, cmd.Process.Signal(syscall.SIGSTOP))
			for !stopped(t, cmd.Process.Pid) {
				time.Sleep(time.Millisecond)
			}
		}
		do()
		for _, cmd := range cmds {
			must(t, cmd.Process.Signal(syscall.SIGCONT))
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(ids)
	}, paused, stop
}

// stopped reports whether every thread of the process is.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	must(t, err)
	for _, at := range threads {
		text, err := os.ReadFile(at)
		if os.IsNotExist(err) {
			continue // it ended
		}
		must(t, err)
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}
