// SPDX-License-Identifier: Apache-2.0

package watch

import (
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
	// mask is what counts as a change, inotify(7).
	mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB |
		unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
		unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
	// ended is what ends a watch.
	ended = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_UNMOUNT | unix.IN_IGNORED
	// pause is the least time between two looks at the kernel's queue, so that
	// a busy directory costs little. What overflows it is a Rescan.
	pause = 20 * time.Millisecond
	// maxNames is how many entries of one directory are told of between two
	// looks, instead of a Rescan.
	maxNames = 256
	// queueRead holds some thousand events.
	queueRead = 64 << 10
)

// native is one inotify instance, open while there is a watch: a user has few of
// them (fs.inotify.max_user_instances).
type native struct {
	mu    sync.Mutex
	queue *os.File
	// by has the watches of each directory: the kernel knows one directory by
	// one number, however often it is added.
	by map[int32]map[*watcher]bool
}

type watcher struct {
	tell func(Event)
	name pathguard.Name
	id   identity

	// Under native.mu:
	over bool   // nothing may follow
	busy bool   // somebody tells of a batch, as of a file system that is slow
	next *batch // what came meanwhile
}

// identity tells a directory from every other: while it is watched, the kernel
// gives its number to no other one.
type identity struct{ dev, ino uint64 }

func identify(d *pathguard.Dir) (id identity, err error) {
	err = d.Lend(func(fd int) error {
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		id = identity{uint64(st.Dev), st.Ino} //nolint:unconvert // narrower on some systems
		return err
	})
	return id, err
}

// still reports whether the name still leads to the directory. The kernel tells
// of a directory that is moved, and not of one above it.
func (w *watcher) still() bool {
	d, err := w.name.OpenDir()
	if err != nil {
		return false
	}
	defer d.Close()
	id, err := identify(d)
	return err == nil && id == w.id
}

// add watches the directory that the handle holds. /proc/self/fd leads from the
// number to it without any name of it being looked up again.
func (n *native) add(d *pathguard.Dir, tell func(Event)) (stop func(), err error) {
	id, err := identify(d)
	if err != nil {
		return nil, n.explain(d, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.open(); err != nil {
		return nil, n.explain(d, err)
	}
	var number int
	err = d.Lend(func(fd int) error {
		return n.control(func(queue int) (err error) {
			number, err = unix.InotifyAddWatch(queue, "/proc/self/fd/"+strconv.Itoa(fd), mask)
			return err
		})
	})
	if err != nil {
		n.closeIfIdle()
		return nil, n.explain(d, err)
	}
	wd, w := int32(number), &watcher{tell: tell, name: d.Name(), id: id} //nolint:gosec // the kernel's numbers are int32
	if n.by[wd] == nil {
		n.by[wd] = map[*watcher]bool{}
	}
	n.by[wd][w] = true
	return func() { n.remove(wd, w) }, nil
}

func (n *native) open() error {
	if n.queue != nil {
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	n.queue, n.by = os.NewFile(uintptr(fd), "inotify"), map[int32]map[*watcher]bool{}
	go n.read(n.queue)
	return nil
}

func (n *native) control(f func(fd int) error) error {
	c, err := n.queue.SyscallConn()
	if err != nil {
		return err
	}
	failed := c.Control(func(fd uintptr) { err = f(int(fd)) }) //nolint:gosec // a descriptor fits
	return errors.Join(err, failed)
}

// explain says what a person can do about it.
func (n *native) explain(d *pathguard.Dir, err error) error {
	f := &fault.Error{Code: fault.IOFailed, Resource: d.Name().Resource().String(), Rule: "the directory can't be watched", Err: err}
	switch {
	case errors.Is(err, unix.ENOENT):
		return errNoKernel // without /proc
	case errors.Is(err, unix.ENOSPC):
		f.Code, f.Rule = fault.LimitExceeded, "the system's limit of watched directories is reached"
		f.Hint = "raise it: sysctl fs.inotify.max_user_watches=524288"
	case errors.Is(err, unix.EMFILE):
		f.Code, f.Rule = fault.LimitExceeded, "the system's limit of inotify instances is reached"
		f.Hint = "raise it: sysctl fs.inotify.max_user_instances=512"
	}
	return f
}

func (n *native) remove(wd int32, w *watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.over = true
	if !n.by[wd][w] {
		return
	}
	delete(n.by[wd], w)
	if len(n.by[wd]) == 0 {
		delete(n.by, wd)
		_ = n.control(func(fd int) error {
			_, err := unix.InotifyRmWatch(fd, uint32(wd)) //nolint:gosec // the kernel's own number
			return err
		}) // a directory that is gone is removed already
	}
	n.closeIfIdle()
}

func (n *native) closeIfIdle() {
	if n.queue != nil && len(n.by) == 0 {
		_ = n.queue.Close() // which wakes its reader up
		n.queue = nil
	}
}

// read takes events until the queue is closed.
func (n *native) read(queue *os.File) {
	buf := make([]byte, queueRead)
	for {
		got, err := queue.Read(buf)
		if err != nil {
			return // closed: an open queue doesn't fail
		}
		n.deliver(queue, parse(buf[:got]))
		time.Sleep(pause)
	}
}

// batch is what happened to one directory between two looks.
type batch struct {
	names  []string
	seen   map[string]bool
	rescan bool
	gone   bool
}

// parse puts events together by directory; -1 is the queue that ran over.
func parse(b []byte) map[int32]*batch {
	all := map[int32]*batch{}
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b)) //nolint:gosec // struct inotify_event
		what := binary.NativeEndian.Uint32(b[4:])
		size := uint64(binary.NativeEndian.Uint32(b[12:]))
		end := min(uint64(len(b)), unix.SizeofInotifyEvent+size)
		name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:end]), "\x00")
		b = b[end:]
		if all[wd] == nil {
			all[wd] = &batch{seen: map[string]bool{}}
		}
		all[wd].add(what, name)
	}
	return all
}

func (c *batch) add(what uint32, name string) {
	switch {
	case what&unix.IN_Q_OVERFLOW != 0:
		c.rescan = true
	case what&ended != 0:
		c.gone = true
	case name == "": // the facts of the directory itself
		c.rescan = true
	default:
		c.entry(name)
	}
}

// entry notes a name, while there are not too many.
func (c *batch) entry(name string) {
	switch {
	case len(c.names) >= maxNames && !c.seen[name]:
		c.rescan = true
	case !c.seen[name]:
		c.seen[name] = true
		c.names = append(c.names, name)
	}
}

// join adds what another batch holds, which may be told of at the same time.
func (c *batch) join(other *batch) {
	c.rescan, c.gone = c.rescan || other.rescan, c.gone || other.gone
	for _, name := range other.names {
		c.entry(name)
	}
}

func (n *native) deliver(queue *os.File, all map[int32]*batch) {
	if over := all[-1]; over != nil {
		n.mu.Lock()
		for wd := range n.by {
			if all[wd] == nil {
				all[wd] = &batch{}
			}
			all[wd].rescan = true
		}
		n.mu.Unlock()
	}
	for wd, c := range all {
		for _, w := range n.watchers(queue, wd, c.gone) {
			n.hand(wd, w, c)
		}
	}
}

// watchers are those of a directory; one that is gone has none any more.
func (n *native) watchers(queue *os.File, wd int32, gone bool) []*watcher {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.queue != queue {
		return nil // the numbers are those of a queue that is closed
	}
	var list []*watcher
	for w := range n.by[wd] {
		list = append(list, w)
	}
	if gone && list != nil {
		delete(n.by, wd)
		_ = n.control(func(fd int) error {
			_, err := unix.InotifyRmWatch(fd, uint32(wd)) //nolint:gosec // the kernel's own number
			return err
		}) // of one that was moved
		n.closeIfIdle()
	}
	return list
}

// hand has a watch told of a batch, by a goroutine of its own: to look whether
// the name still leads there may take as long as a file system likes, and keeps
// nobody else waiting. What comes meanwhile is put together.
func (n *native) hand(wd int32, w *watcher, c *batch) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.busy {
		if w.next == nil {
			w.next = &batch{seen: map[string]bool{}}
		}
		w.next.join(c)
		return
	}
	w.busy = true
	go func() {
		for c := c; c != nil; c = n.following(w) {
			n.tell(wd, w, c)
		}
	}()
}

// following is what came meanwhile; nil lets the goroutine go.
func (n *native) following(w *watcher) *batch {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := w.next
	w.next, w.busy = nil, c != nil
	return c
}

func (n *native) tell(wd int32, w *watcher, c *batch) {
	if !c.gone && !w.still() {
		n.one(w, Event{Kind: Gone})
		n.remove(wd, w)
		return
	}
	for _, name := range c.names {
		n.one(w, Event{Changed, name})
	}
	if c.rescan {
		n.one(w, Event{Kind: Rescan})
	}
	if c.gone {
		n.one(w, Event{Kind: Gone})
	}
}

// one tells of an event, unless the watch has been closed.
func (n *native) one(w *watcher, e Event) {
	n.mu.Lock()
	over := w.over
	n.mu.Unlock()
	if !over {
		w.tell(e)
	}
}
