// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

const (
	// treeMask is what counts as a change of a file or of the tree. Facts alone
	// (mode, owner, times) do not.
	treeMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	rootMask = treeMask | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF
	// atOnce is how many folders are looked into between two looks at the queue.
	atOnce = 32
	// homeless is how long the second half of a folder's rename is waited for.
	homeless = 200 * time.Millisecond
	// rootsEvery is how often the roots are looked at: of one that is removed the
	// kernel tells nothing while it is held open.
	rootsEvery = 5 * time.Second
)

// Tree watches folders and all that is beneath them, each by the handle that the
// guard opened: no link is followed and no root is left. One goroutine does all,
// at its own pace; what the kernel can't hold meanwhile is Missed.
type Tree struct {
	o     TreeOptions
	queue *os.File
	most  int

	mu     sync.Mutex // of extent
	extent Extent

	// Of the goroutine:
	nodes map[int32]*node
	todo  []*node
	moved map[uint32]departed
	ready bool
}

// node is a folder. Its name is that of its parent with base: a rename above it
// changes it too.
type node struct {
	root   pathguard.Name // of one without a parent
	parent *node
	base   string
	wd     int32
	kids   map[string]*node
	fresh  bool // it was made while its parent was watched: its files are new
	gone   bool
	// unheard: something happened beneath while it was on its way.
	unheard bool
}

type departed struct {
	n  *node
	at time.Time
}

// OpenTree prepares a watch. Run does it. Errors are faults, or ErrNoTree.
func OpenTree(o TreeOptions) (*Tree, error) {
	t := &Tree{o: o, most: o.Most, nodes: map[int32]*node{}, moved: map[uint32]departed{}}
	if t.most == 0 {
		t.most = min(MostFolders, systemMost()/2)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return nil, ErrNoTree
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		f := &fault.Error{Code: fault.IOFailed, Op: "watch", Rule: "the system gives no queue of changes", Err: err}
		if errors.Is(err, unix.EMFILE) {
			f.Code, f.Hint = fault.LimitExceeded, "raise it: sysctl fs.inotify.max_user_instances=512"
		}
		return nil, f
	}
	t.queue = os.NewFile(uintptr(fd), "inotify")
	for _, r := range o.Roots {
		t.todo = append(t.todo, &node{root: r})
	}
	return t, nil
}

// systemMost is how many folders a user may watch.
func systemMost() int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return 8192
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return 8192
	}
	return max(2, n)
}

// Extent tells how much is watched now.
func (t *Tree) Extent() Extent {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.extent
}

// Run watches until the context ends, and tells what the kernel still has.
func (t *Tree) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = t.queue.SetReadDeadline(time.Unix(1, 0)) })()
	defer t.queue.Close()
	defer t.drain()
	buf := make([]byte, queueRead)
	var looked time.Time
	for ctx.Err() == nil {
		t.look()
		t.forget()
		if time.Since(looked) >= rootsEvery {
			t.roots()
			looked = time.Now()
		}
		until := looked.Add(rootsEvery)
		switch {
		case len(t.todo) > 0:
			until = time.Now().Add(time.Millisecond)
		case len(t.moved) > 0:
			until = time.Now().Add(homeless)
		}
		_ = t.queue.SetReadDeadline(until)
		if ctx.Err() != nil {
			return // the deadline that woke this up may be the one just set aside
		}
		n, err := t.queue.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			t.tell(TreeEvent{What: Missed})
			return
		}
		t.events(buf[:n])
		if n < len(buf)/2 && len(t.todo) == 0 {
			time.Sleep(pause)
		}
	}
}

func (t *Tree) tell(e TreeEvent) { t.o.Tell(e) }

// name is where the folder is now, false for one that is nowhere.
func (n *node) name() (pathguard.Name, bool) {
	switch {
	case n.gone:
		return pathguard.Name{}, false
	case n.parent == nil:
		return n.root, n.root != (pathguard.Name{})
	}
	up, ok := n.parent.name()
	if !ok {
		return up, false
	}
	name, err := up.Join(n.base)
	return name, err == nil && name.Root() == up.Root() // another root is watched by itself
}

func (n *node) within(other *node) bool {
	for ; n != nil; n = n.parent {
		if n == other {
			return true
		}
	}
	return false
}

// look looks into folders that are not watched yet.
func (t *Tree) look() {
	for i := 0; i < atOnce && len(t.todo) > 0; i++ {
		n := t.todo[len(t.todo)-1]
		t.todo = t.todo[:len(t.todo)-1]
		t.adopt(n)
	}
	if len(t.todo) == 0 && !t.ready {
		t.ready = true
		t.tell(TreeEvent{What: Ready})
	}
}

// adopt watches a folder and then lists it: what is made in between is told
// twice rather than never.
func (t *Tree) adopt(n *node) {
	name, ok := n.name()
	if !ok {
		return
	}
	if len(t.nodes) >= t.most && n.wd == 0 {
		t.count(func(e *Extent) { e.Partial = true })
		return
	}
	d, err := name.OpenDir()
	if err != nil {
		t.unopened(n, name, err)
		return
	}
	defer d.Close()
	wd, err := t.watch(d, n.parent == nil)
	if err != nil {
		t.unwatched(n, name, err)
		return
	}
	if old := t.nodes[wd]; old == n {
		t.list(n, d) // again
		return
	} else if old != nil {
		t.rehome(old, n)
		return
	}
	if n.wd != 0 { // another folder has its name by now
		t.drop(n)
		n = &node{root: n.root, parent: n.parent, base: n.base}
	}
	n.wd, n.kids = wd, map[string]*node{}
	t.nodes[wd] = n
	if n.parent != nil {
		n.parent.kids[n.base] = n
	}
	t.count(func(e *Extent) { e.Folders++ })
	t.list(n, d)
}

func (t *Tree) unopened(n *node, name pathguard.Name, err error) {
	switch {
	case n.parent == nil:
		t.tell(TreeEvent{What: Lost, Dir: name})
	case fault.CodeOf(err) == fault.PathMissing, fault.CodeOf(err) == fault.PathSymlink:
		// gone again, or something else by now, which is told of by itself
	default:
		t.count(func(e *Extent) { e.Closed++ })
	}
}

func (t *Tree) unwatched(n *node, name pathguard.Name, err error) {
	switch {
	case n.parent == nil:
		t.tell(TreeEvent{What: Lost, Dir: name})
	case errors.Is(err, unix.ENOSPC):
		t.count(func(e *Extent) { e.Partial = true })
	default:
		t.count(func(e *Extent) { e.Closed++ })
	}
}

// rehome gives a folder that is watched already its new place: it was moved, and
// found before the kernel told of it.
func (t *Tree) rehome(old, n *node) {
	if old.parent == nil && !old.gone && old.root != (pathguard.Name{}) || n.within(old) {
		return // a root, or a folder that is mounted inside itself
	}
	if old.parent != nil {
		delete(old.parent.kids, old.base)
	}
	for cookie, d := range t.moved {
		if d.n == old {
			delete(t.moved, cookie)
		}
	}
	t.settle(old, n.parent, n.base)
}

func (t *Tree) watch(d *pathguard.Dir, root bool) (wd int32, err error) {
	mask := uint32(treeMask)
	if root {
		mask = rootMask
	}
	err = d.Lend(func(fd int) error {
		c, err := t.queue.SyscallConn()
		if err != nil {
			return err
		}
		failed := c.Control(func(queue uintptr) {
			var number int
			number, err = unix.InotifyAddWatch(int(queue), "/proc/self/fd/"+strconv.Itoa(fd), mask) //nolint:gosec // a descriptor fits
			wd = int32(number)                                                                      //nolint:gosec // the kernel's numbers are int32
		})
		return errors.Join(err, failed)
	})
	return wd, err
}

// list takes in what a folder holds.
func (t *Tree) list(n *node, d *pathguard.Dir) {
	for {
		batch, err := d.Entries(256)
		for _, e := range batch {
			switch {
			case t.o.Skip(e.Name):
			case e.Kind == pathguard.KindDir && n.kids[e.Name] != nil:
			case e.Kind == pathguard.KindDir:
				t.later(&node{parent: n, base: e.Name, fresh: n.fresh})
			case n.fresh:
				t.tell(TreeEvent{Made, d.Name(), e.Name})
			}
		}
		if err != nil {
			return // the end, or a folder that went away
		}
	}
}

// later puts a folder on the list of those to look into, which is bounded too.
func (t *Tree) later(n *node) {
	if len(t.nodes)+len(t.todo) >= t.most {
		t.count(func(e *Extent) { e.Partial = true })
		return
	}
	t.todo = append(t.todo, n)
}

func (t *Tree) count(f func(*Extent)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.extent)
}

// events takes what the kernel says, struct inotify_event.
func (t *Tree) events(b []byte) {
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b)) //nolint:gosec // struct inotify_event
		what, cookie := binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:])
		end := min(uint64(len(b)), unix.SizeofInotifyEvent+uint64(binary.NativeEndian.Uint32(b[12:])))
		entry := strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")
		b = b[end:]
		n := t.nodes[wd]
		switch {
		case what&unix.IN_Q_OVERFLOW != 0:
			t.tell(TreeEvent{What: Missed})
			t.again()
		case n == nil:
		case what&ended != 0:
			t.over(n, what)
		case entry == "" || t.o.Skip(entry):
		case what&unix.IN_ISDIR != 0:
			t.folder(n, what, cookie, entry)
		default:
			t.file(n, what, entry)
		}
	}
}

// again looks into every folder anew: the kernel didn't tell of all.
func (t *Tree) again() {
	t.todo = t.todo[:0]
	for _, n := range t.nodes {
		n.fresh = false
		t.todo = append(t.todo, n)
	}
}

func (t *Tree) file(n *node, what uint32, entry string) {
	name, ok := n.name()
	if !ok {
		n.miss()
		return
	}
	e := TreeEvent{Dir: name, Entry: entry}
	switch {
	case what&unix.IN_CREATE != 0:
		e.What = Made
	case what&unix.IN_MODIFY != 0:
		e.What = Written
	case what&unix.IN_MOVED_TO != 0:
		e.What = Arrived
	default:
		e.What = Left
	}
	t.tell(e)
}
