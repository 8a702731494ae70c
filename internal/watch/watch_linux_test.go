// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// box is a root with the directory d.
type box struct {
	*testing.T
	dir string
	ws  *pathguard.Workspace
}

func newBox(t *testing.T) box {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "r"})
	must(t, err)
	t.Cleanup(func() { _ = root.Close() })
	ws, err := pathguard.NewWorkspace(root)
	must(t, err)
	return box{t, dir, ws}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b box) name(rel string) pathguard.Name {
	b.Helper()
	names, err := b.ws.Parse("r://" + rel)
	must(b.T, err)
	return names[0]
}

func (b box) open(rel string) *pathguard.Dir {
	b.Helper()
	d, err := b.name(rel).OpenDir()
	must(b.T, err)
	return d
}

func (b box) put(rel, text string) {
	b.Helper()
	must(b.T, os.WriteFile(filepath.Join(b.dir, rel), []byte(text), 0o644))
}

// told collects events.
type told struct {
	mu   sync.Mutex
	list []Event
}

func (c *told) tell(e Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, e)
}

func (c *told) has(e Event) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, got := range c.list {
		if got == e {
			return true
		}
	}
	return false
}

// patience only catches a hang.
const patience = 20 * time.Second

func (c *told) wait(t *testing.T, want Event) {
	t.Helper()
	for end := time.Now().Add(patience); !c.has(want); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no %+v among %+v", want, c.list)
		}
	}
}

// both runs a test with the kernel telling and by polling.
func both(t *testing.T, test func(t *testing.T, b box, add func(rel string, tell func(Event)) func())) {
	t.Run("kernel", func(t *testing.T) {
		b, w := newBox(t), &Watcher{}
		test(t, b, func(rel string, tell func(Event)) func() {
			d := b.open(rel)
			defer d.Close()
			watch, err := w.Add(d, tell)
			must(t, err)
			if watch.Polled() {
				t.Error("polled")
			}
			return watch.Close
		})
	})
	t.Run("polled", func(t *testing.T) {
		b := newBox(t)
		test(t, b, func(rel string, tell func(Event)) func() {
			stop, err := poll(b.name(rel), 5*time.Millisecond, tell)
			must(t, err)
			return stop
		})
	})
}

// TestChanges: every kind of change of an entry is told of, one beside the
// directory isn't, and after Close nothing is.
func TestChanges(t *testing.T) {
	both(t, func(t *testing.T, b box, add func(string, func(Event)) func()) {
		b.put("d/old", "1")
		var c told
		stop := add("d", c.tell)
		b.put("beside", "x")
		b.put("d/new", "1")
		c.wait(t, Event{Changed, "new"})
		b.put("d/old", "22")
		c.wait(t, Event{Changed, "old"})
		must(t, os.Rename(filepath.Join(b.dir, "d/new"), filepath.Join(b.dir, "d/renamed")))
		c.wait(t, Event{Changed, "renamed"})
		must(t, os.Mkdir(filepath.Join(b.dir, "d/sub"), 0o755))
		c.wait(t, Event{Changed, "sub"})
		must(t, os.Remove(filepath.Join(b.dir, "d/sub")))
		must(t, os.Chmod(filepath.Join(b.dir, "d/renamed"), 0o600))
		stop()
		if c.has(Event{Changed, "beside"}) {
			t.Error("what lies beside the directory was told of")
		}
		time.Sleep(3 * pause)
		c.mu.Lock()
		before := len(c.list)
		c.mu.Unlock()
		b.put("d/late", "1")
		time.Sleep(3 * pause)
		if c.has(Event{Changed, "late"}) || len(c.list) != before {
			t.Errorf("told after Close: %+v", c.list[before:])
		}
	})
}

// TestGone: a directory that is removed, or moved, ends its watch.
func TestGone(t *testing.T) {
	both(t, func(t *testing.T, b box, add func(string, func(Event)) func()) {
		var moved, removed told
		must(t, os.Mkdir(filepath.Join(b.dir, "e"), 0o755))
		defer add("d", moved.tell)()
		defer add("e", removed.tell)()
		must(t, os.Rename(filepath.Join(b.dir, "d"), filepath.Join(b.dir, "f")))
		must(t, os.Remove(filepath.Join(b.dir, "e")))
		moved.wait(t, Event{Kind: Gone})
		removed.wait(t, Event{Kind: Gone})
		b.put("f/x", "1")
		time.Sleep(3 * pause)
		if moved.has(Event{Changed, "x"}) {
			t.Error("a directory that was moved is still watched")
		}
	})
}

// TestShared: two watches of one directory are told both, and one outlives the
// other; with the last one the kernel's queue goes.
func TestShared(t *testing.T) {
	b, w := newBox(t), &Watcher{}
	d := b.open("d")
	defer d.Close()
	var one, two told
	first, err := w.Add(d, one.tell)
	must(t, err)
	second, err := w.Add(d, two.tell)
	must(t, err)
	b.put("d/x", "1")
	one.wait(t, Event{Changed, "x"})
	two.wait(t, Event{Changed, "x"})
	first.Close()
	first.Close()
	b.put("d/y", "1")
	two.wait(t, Event{Changed, "y"})
	if one.has(Event{Changed, "y"}) {
		t.Error("told after Close")
	}
	second.Close()
	if w.native.queue != nil || w.held != 0 {
		t.Errorf("queue %v, %d held", w.native.queue, w.held)
	}
	third, err := w.Add(d, one.tell) // and comes again
	must(t, err)
	b.put("d/z", "1")
	one.wait(t, Event{Changed, "z"})
	third.Close()
}

// TestRenamedWhileOpen: no name is followed to what lies there by now. What is
// behind the handle has another name, which ends the watch.
func TestRenamedWhileOpen(t *testing.T) {
	b, w := newBox(t), &Watcher{}
	d := b.open("d")
	defer d.Close()
	must(t, os.Rename(filepath.Join(b.dir, "d"), filepath.Join(b.dir, "kept")))
	must(t, os.Mkdir(filepath.Join(b.dir, "d"), 0o755))
	var c told
	watch, err := w.Add(d, c.tell)
	must(t, err)
	defer watch.Close()
	b.put("d/impostor", "1")
	b.put("kept/x", "1")
	c.wait(t, Event{Kind: Gone})
	if len(c.list) != 1 {
		t.Errorf("%+v", c.list)
	}
}

// TestMovedAbove: a directory above that is moved out takes the watch's right to
// tell with it.
func TestMovedAbove(t *testing.T) {
	b, w := newBox(t), &Watcher{}
	must(t, os.MkdirAll(filepath.Join(b.dir, "d/sub"), 0o755))
	d := b.open("d/sub")
	defer d.Close()
	var c told
	watch, err := w.Add(d, c.tell)
	must(t, err)
	defer watch.Close()
	must(t, os.Rename(filepath.Join(b.dir, "d"), filepath.Join(b.dir, "away")))
	b.put("away/sub/secret", "1")
	c.wait(t, Event{Kind: Gone})
	if c.has(Event{Changed, "secret"}) {
		t.Error("told of what lies elsewhere by now")
	}
}

// TestMost: the number of watches is bounded, and one that ends makes room.
func TestMost(t *testing.T) {
	b, w := newBox(t), &Watcher{}
	d := b.open("d")
	defer d.Close()
	var all []*Watch
	for range Most {
		watch, err := w.Add(d, func(Event) {})
		must(t, err)
		all = append(all, watch)
	}
	if _, err := w.Add(d, func(Event) {}); fault.CodeOf(err) != fault.LimitExceeded {
		t.Errorf("%v", err)
	}
	all[0].Close()
	again, err := w.Add(d, func(Event) {})
	must(t, err)
	again.Close()
	for _, watch := range all {
		watch.Close()
	}
}

// TestExplain: what a limit of the system is, is said with what raises it.
func TestExplain(t *testing.T) {
	b := newBox(t)
	d := b.open("d")
	defer d.Close()
	var n native
	for errno, want := range map[unix.Errno]fault.Code{
		unix.ENOSPC: fault.LimitExceeded, unix.EMFILE: fault.LimitExceeded, unix.EACCES: fault.IOFailed,
	} {
		f := fault.As(n.explain(d, errno))
		if f.Code != want || (want == fault.LimitExceeded) != (f.Hint != "") {
			t.Errorf("%v: %+v", errno, f)
		}
	}
	if err := n.explain(d, unix.ENOENT); err != errNoKernel { //nolint:errorlint // the very value
		t.Error(err)
	}
}

func event(wd int32, mask uint32, name string) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(wd))
	b = binary.NativeEndian.AppendUint32(b, mask)
	b = binary.NativeEndian.AppendUint32(b, 0)
	padded := make([]byte, (len(name)+16)/16*16)
	copy(padded, name)
	if name == "" {
		padded = nil
	}
	b = binary.NativeEndian.AppendUint32(b, uint32(len(padded)))
	return append(b, padded...)
}

// TestSlow: one watch that takes its time keeps no other waiting, and hears of
// what came meanwhile.
func TestSlow(t *testing.T) {
	b, w := newBox(t), &Watcher{}
	d := b.open("d")
	defer d.Close()
	var slow, quick told
	let := make(chan struct{})
	first, err := w.Add(d, func(e Event) {
		slow.tell(e)
		<-let
	})
	must(t, err)
	defer first.Close()
	second, err := w.Add(d, quick.tell)
	must(t, err)
	defer second.Close()
	for i := range 5 {
		name := strconv.Itoa(i)
		b.put("d/"+name, "1")
		quick.wait(t, Event{Changed, name})
	}
	slow.wait(t, Event{Changed, "0"})
	close(let)
	for i := range 5 {
		slow.wait(t, Event{Changed, strconv.Itoa(i)})
	}
	if slow.has(Event{Kind: Rescan}) {
		t.Error("names that could be told came as a rescan")
	}
}

// TestOverflow: what the kernel could not queue is a rescan of every watch.
func TestOverflow(t *testing.T) {
	b, w := newBox(t), &Watcher{}
	d := b.open("d")
	defer d.Close()
	var c told
	watch, err := w.Add(d, c.tell)
	must(t, err)
	defer watch.Close()
	w.native.deliver(w.native.queue, parse(event(-1, unix.IN_Q_OVERFLOW, "")))
	c.wait(t, Event{Kind: Rescan})
}

// TestTooManyToPoll: a directory that can't be compared whole isn't polled.
func TestTooManyToPoll(t *testing.T) {
	b := newBox(t)
	for i := range maxPolled + 1 {
		b.put("d/"+strconv.Itoa(i), "")
	}
	if _, err := poll(b.name("d"), time.Hour, func(Event) {}); fault.CodeOf(err) != fault.LimitExceeded {
		t.Errorf("%v", err)
	}
}
