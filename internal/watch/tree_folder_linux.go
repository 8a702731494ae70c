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
			from.n.parent, from.n.base = n, entry
			n.kids[entry] = from.n
		} else {
			t.later(&node{parent: n, base: entry})
		}
		t.tell(TreeEvent{Arrived, name, entry})
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
