// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"sync"
)

// frameRoom bounds the sum of the lengths of the frames in work. Those that
// wait do so for calls, each of which ends at its deadline.
type frameRoom struct {
	most int

	mu      sync.Mutex
	held    int
	waiting int
	freed   chan struct{} // closed, and made anew, when something is freed for those that wait
}

func newFrameRoom(most int) *frameRoom {
	return &frameRoom{most: most, freed: make(chan struct{})}
}

// try takes room for n bytes if they fit or are alone; freed is closed at the
// next time it may be worth another try.
func (r *frameRoom) try(n int, waits bool) (fits bool, freed <-chan struct{}) {
	return r.tryBelow(r.most, n, waits)
}

// tryBelow is try within a part of the room.
func (r *frameRoom) tryBelow(most, n int, waits bool) (fits bool, freed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fits = r.held == 0 || r.held+n <= most; fits {
		r.held += n
	} else if waits {
		r.waiting++
	}
	return fits, r.freed
}

// take waits until a frame of n bytes fits, or is alone; it is false when ctx
// ended before.
func (r *frameRoom) take(ctx context.Context, n int) bool { return r.takeBelow(ctx, r.most, n) }

// takeBelow is take within a part of the room.
func (r *frameRoom) takeBelow(ctx context.Context, most, n int) bool {
	for {
		fits, freed := r.tryBelow(most, n, true)
		if fits {
			return true
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return false
		}
	}
}

// add takes room that there may not be.
func (r *frameRoom) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held += n
}

func (r *frameRoom) free(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= n
	if r.waiting > 0 {
		r.waiting = 0
		close(r.freed)
		r.freed = make(chan struct{})
	}
}
