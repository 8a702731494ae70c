// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"sync"
)

// frameRoom bounds the sum of the lengths of the frames in work. One waits at a
// time, since frames are taken in their order; it waits for calls, each of which
// ends at its deadline.
type frameRoom struct {
	most int

	mu    sync.Mutex
	held  int
	freed chan struct{} // has a value if something was freed
}

func newFrameRoom(most int) *frameRoom {
	return &frameRoom{most: most, freed: make(chan struct{}, 1)}
}

// take waits until a frame of n bytes fits, or is alone; it is false when ctx
// ended before.
func (r *frameRoom) take(ctx context.Context, n int) bool {
	for {
		r.mu.Lock()
		fits := r.held == 0 || r.held+n <= r.most
		if fits {
			r.held += n
		}
		r.mu.Unlock()
		if fits {
			return true
		}
		select {
		case <-r.freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *frameRoom) free(n int) {
	r.mu.Lock()
	r.held -= n
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default: // whoever waits is told already
	}
}
