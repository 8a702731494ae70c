// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"runtime"
	"sync"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
)

// Bounds of what is read before a walk comes to it.
const (
	aheadDirs    = 16   // directories that are read or wait to be taken
	aheadBeside  = 4    // of one directory
	aheadEntries = 4096 // a directory of more is read again when it is its turn
)

// workers is how many goroutines one walk has at work.
func workers() int { return min(4, max(2, runtime.GOMAXPROCS(0))) }

// ahead reads directories while the walk is at those before them. What it has
// read is counted when the walk takes it, so the result does not depend on it.
// Its methods are for the walk's goroutine.
type ahead struct {
	walk  *enforce.Walk
	free  chan struct{}
	ready map[pathguard.Name]chan *enforce.Listing
	all   sync.WaitGroup
}

func newAhead(w *enforce.Walk) *ahead {
	return &ahead{walk: w, free: make(chan struct{}, workers()), ready: map[pathguard.Name]chan *enforce.Listing{}}
}

// start has a directory read, unless there are enough already.
func (a *ahead) start(dir pathguard.Name) {
	if len(a.ready) < aheadDirs {
		a.begin(dir)
	}
}

func (a *ahead) begin(dir pathguard.Name) {
	if _, begun := a.ready[dir]; begun {
		return
	}
	ready := make(chan *enforce.Listing, 1)
	a.ready[dir] = ready
	a.all.Go(func() {
		var l *enforce.Listing
		defer func() {
			if recover() != nil {
				l = nil // it comes again where the walk reads the directory itself
			}
			ready <- l
		}()
		a.free <- struct{}{}
		defer func() { <-a.free }()
		l = a.walk.Look(dir, false, aheadEntries)
	})
}

// listing is what a directory holds, at most one entry more than the walk may
// still see. While it waits it does what else there is to do: work is done
// again and again when its channel is closed.
func (a *ahead) listing(dir pathguard.Name, work func() (ready <-chan struct{}, do func())) *enforce.Listing {
	a.begin(dir)
	ready := a.ready[dir]
	delete(a.ready, dir)
	for {
		due, do := work()
		select {
		case l := <-ready:
			if l == nil || l.Over() {
				return a.walk.Look(dir, false, a.walk.Left()+1)
			}
			return l
		case <-due:
			do()
		}
	}
}
