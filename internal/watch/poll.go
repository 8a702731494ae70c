// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// pollEvery is how often a directory is looked at that nobody tells of.
const pollEvery = time.Second

// rest is how many times as long as it took nobody looks again: a large
// directory costs at most 2 % of a processor.
const rest = 50

// maxPolled is how many entries of a directory are compared. One with more
// can't be polled.
const maxPolled = 10_000

// poll compares the entries of a directory with what they were. The name is
// opened anew each time, which proves that it still leads there.
func poll(n pathguard.Name, every time.Duration, tell func(Event)) (stop func(), err error) {
	before, err := snapshot(n)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		timer := time.NewTimer(every)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
			}
			began := time.Now()
			now, err := snapshot(n)
			timer.Reset(max(every, rest*time.Since(began)))
			if err != nil {
				tell(Event{Kind: Gone})
				return
			}
			compare(before, now, tell)
			before = now
		}
	}()
	return sync.OnceFunc(func() { close(done) }), nil
}

// snapshot is each entry's name with what identifies its state.
func snapshot(n pathguard.Name) (map[string]pathguard.Fingerprint, error) {
	d, err := n.OpenDir()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	all := map[string]pathguard.Fingerprint{}
	for {
		entries, err := d.Entries(1024)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(all)+len(entries) > maxPolled {
			return nil, &fault.Error{
				Code: fault.LimitExceeded, Resource: n.Resource().String(),
				Rule: "the directory has too many entries to be watched by looking at it",
			}
		}
		for _, e := range entries {
			info, _ := d.Lstat(e.Name) // of one that is gone or may not be looked at, its name only
			all[e.Name] = info.Fingerprint
		}
	}
}

func compare(before, now map[string]pathguard.Fingerprint, tell func(Event)) {
	for name, state := range now {
		if old, was := before[name]; !was || old != state {
			tell(Event{Changed, name})
		}
	}
	for name := range before {
		if _, is := now[name]; !is {
			tell(Event{Changed, name})
		}
	}
}
