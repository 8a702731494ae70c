// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"slices"
	"sync"
	"time"
)

// Change is what a watch of a resource tells.
type Change uint8

// The changes. The zero value says that the resource was updated.
const (
	WatchUpdated Change = iota
	// WatchMissed: it may have changed more than was told.
	WatchMissed
	// WatchOver: it isn't watched any more, as when it was removed.
	WatchOver
)

// UpdateInterval is the least time between two notifications of one resource.
const UpdateInterval = 200 * time.Millisecond

// resend is how long a notification waits that could not be sent, as to a client
// that does not listen.
const resend = time.Second

// feed holds what a subscription has still to tell: one notification a resource,
// however often that changed.
type feed struct {
	wake chan struct{} // has a value when there is something to look at

	mu     sync.Mutex
	topics []*topic // in the order in which they came
}

// topic is one resource of a feed.
type topic struct {
	uri  string
	stop func() // nil while the watch begins
	gone bool   // removed: nothing may follow

	due    bool
	change Change
	next   time.Time // nothing is sent before
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake
	}
}

// add enters a resource; there is none where it has been entered before.
func (f *feed) add(uri string) *topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.ContainsFunc(f.topics, func(t *topic) bool { return t.uri == uri }) {
		return nil
	}
	t := &topic{uri: uri}
	f.topics = append(f.topics, t)
	return t
}

// begun notes what ends the watch, which ends at once if the topic was removed
// meanwhile.
func (f *feed) begun(t *topic, stop func()) {
	f.mu.Lock()
	gone := t.gone
	t.stop = stop
	f.mu.Unlock()
	if gone {
		stop()
	}
}

// note tells of a change. What is more serious stays until it is sent.
func (f *feed) note(t *topic, c Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t.gone || t.due && c < t.change {
		return
	}
	t.due, t.change = true, c
	f.poke()
}

// remove takes a resource out and ends its watch; it reports whether there was
// one.
func (f *feed) remove(uri string) bool {
	f.mu.Lock()
	i := slices.IndexFunc(f.topics, func(t *topic) bool { return t.uri == uri })
	if i < 0 {
		f.mu.Unlock()
		return false
	}
	t := f.topics[i]
	f.topics = slices.Delete(f.topics, i, i+1)
	t.gone = true
	stop := t.stop
	f.mu.Unlock()
	if stop != nil {
		stop()
	}
	f.poke()
	return true
}

// close takes every resource out and returns how many there were.
func (f *feed) close() (n int) {
	for {
		f.mu.Lock()
		if len(f.topics) == 0 {
			f.mu.Unlock()
			return n
		}
		uri := f.topics[0].uri
		f.mu.Unlock()
		if f.remove(uri) {
			n++
		}
	}
}

// uris are those that are still entered.
func (f *feed) uris() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]string, len(f.topics))
	for i, t := range f.topics {
		all[i] = t.uri
	}
	return all
}

// run sends what is due until done is closed, or over is called with the last
// resource. over is told of each that isn't watched any more.
func (f *feed) run(done <-chan struct{}, send func(uri string, c Change) error, over func(uri string) (last bool)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-f.wake:
		case <-timer.C:
		}
		for {
			t, change, wait := f.take(time.Now())
			if t == nil {
				if wait > 0 {
					timer.Reset(wait)
				}
				break
			}
			if err := send(t.uri, change); err != nil {
				f.again(t, change)
				continue
			}
			if change == WatchOver && over(t.uri) {
				return
			}
		}
	}
}

// take returns what is due, or else how long nothing is.
func (f *feed) take(now time.Time) (t *topic, c Change, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.topics {
		if !t.due {
			continue
		}
		if left := t.next.Sub(now); left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		c, t.due, t.change, t.next = t.change, false, WatchUpdated, now.Add(UpdateInterval)
		return t, c, 0
	}
	return nil, 0, wait
}

// again keeps what could not be sent.
func (f *feed) again(t *topic, c Change) {
	f.note(t, c)
	f.mu.Lock()
	defer f.mu.Unlock()
	t.next = time.Now().Add(resend)
}
