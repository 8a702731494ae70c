// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
)

// folder takes what happened to a folder in n.
func (t *Tree) folder(n *node, what, cookie uint32, entry string) {
	name, ok := n.name()
	if !ok {
		n.miss()
		return
	}
	switch {
	case what&unix.IN_CREATE != 0:
		t.later(&node{parent: n, base: entry, fresh: true})
	case what&unix.IN_MOVED_FROM != 0:
		if kid := n.kids[entry]; kid != nil {
			delete(n.kids, entry)
			kid.parent, kid.root = nil, pathguard.Name{}
			t.moved[cookie] = departed{kid, time.Now()}
		}
		t.tell(TreeEvent{Left, name, entry})
	case what&unix.IN_MOVED_TO != 0:
		if from, known := t.moved[cookie]; known {
			delete(t.moved, cookie)
			t.settle(from.n, n, entry)
		} else {
			t.later(&node{parent: n, base: entry})
		}
		t.tell(TreeEvent{Arrived, name, entry})
	}
}

// miss notes, of a folder that is on its way, that something happened in it.
func (n *node) miss() {
	for n.parent != nil {
		n = n.parent
	}
	n.unheard = true
}

// settle gives a folder its new place.
func (t *Tree) settle(kid, parent *node, base string) {
	kid.parent, kid.base = parent, base
	parent.kids[base] = kid
	if kid.unheard {
		kid.unheard = false
		t.tell(TreeEvent{What: Missed})
	}
}

// lastWords bounds what is read of the queue at the end.
const lastWords = 64

// drain reads what the kernel has, and waits for nothing.
func (t *Tree) drain() {
	c, err := t.queue.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, queueRead)
	for range lastWords {
		t.look()
		n := 0
		failed := c.Control(func(fd uintptr) { n, err = unix.Read(int(fd), buf) }) //nolint:gosec // a descriptor fits
		if failed != nil || err != nil || n <= 0 {
			if len(t.todo) == 0 || failed != nil {
				return
			}
			continue
		}
		t.events(buf[:n])
	}
	t.tell(TreeEvent{What: Missed})
}

// roots looks whether the roots are there still.
func (t *Tree) roots() {
	for _, n := range t.nodes {
		if n.parent != nil || n.root == (pathguard.Name{}) {
			continue
		}
		var st unix.Stat_t
		d, err := n.root.OpenDir()
		if err == nil {
			err = d.Lend(func(fd int) error { return unix.Fstat(fd, &st) })
			_ = d.Close()
		}
		if err != nil || st.Nlink == 0 {
			t.over(n, unix.IN_DELETE_SELF)
		}
	}
}

// over ends the watch of a folder that is gone, and of a root that was moved.
func (t *Tree) over(n *node, what uint32) {
	if n.parent == nil && n.root != (pathguard.Name{}) {
		root := n.root
		t.drop(n)
		t.tell(TreeEvent{What: Lost, Dir: root})
		return
	}
	if what&unix.IN_IGNORED != 0 || what&unix.IN_UNMOUNT != 0 {
		t.drop(n)
	}
}

// forget ends the watches of what was moved out of the tree.
func (t *Tree) forget() {
	for cookie, d := range t.moved {
		if time.Since(d.at) >= homeless {
			delete(t.moved, cookie)
			t.drop(d.n)
		}
	}
}

// drop ends the watch of a folder and of all beneath it.
func (t *Tree) drop(n *node) {
	for _, kid := range n.kids {
		t.drop(kid)
	}
	n.gone = true
	if n.parent != nil && n.parent.kids[n.base] == n {
		delete(n.parent.kids, n.base)
	}
	if t.nodes[n.wd] != n {
		return
	}
	delete(t.nodes, n.wd)
	t.count(func(e *Extent) { e.Folders-- })
	c, err := t.queue.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Control(func(fd uintptr) {
		_, _ = unix.InotifyRmWatch(int(fd), uint32(n.wd)) //nolint:gosec // the kernel's own number
	}) // one that is gone is removed already
}
