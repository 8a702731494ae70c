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

func (a *ahead) start(dir pathguard.Name) {
	if _, started := a.ready[dir]; started || len(a.ready) >= aheadDirs {
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
// still see.
func (a *ahead) listing(dir pathguard.Name) *enforce.Listing {
	if ready, started := a.ready[dir]; started {
		delete(a.ready, dir)
		if l := <-ready; l != nil && !l.Over() {
			return l
		}
	}
	return a.walk.Look(dir, false, a.walk.Left()+1)
}
