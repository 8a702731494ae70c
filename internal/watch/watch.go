// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// Most is how many watches one Watcher has at once.
const Most = 1024

// Kind says what an event is about.
type Kind uint8

// The kinds. After Gone nothing follows.
const (
	// Changed: the entry was made, written, removed, renamed, or its facts are others.
	Changed Kind = iota + 1
	// Rescan: something may have changed that isn't told of.
	Rescan
	// Gone: the directory was removed or moved, or can't be watched any more.
	Gone
)

// Event is one change. Entry is the name of an entry as the file system has it,
// "" where the kind has none.
type Event struct {
	Kind  Kind
	Entry string
}

// Watcher holds watches. The zero value is ready; it takes nothing from the
// kernel while it has no watch. It is safe for concurrent use.
type Watcher struct {
	mu     sync.Mutex
	held   int
	native native
}

// Watch is one watched directory.
type Watch struct {
	polled bool
	stop   func()
	once   sync.Once
}

// Polled reports that the entries are looked at once a second, instead of the
// kernel telling.
func (w *Watch) Polled() bool { return w.polled }

// Close ends the watch. An event that is on its way may still come.
func (w *Watch) Close() { w.once.Do(w.stop) }

// errNoKernel says that the kernel can't tell of this directory.
var errNoKernel = errors.New("the kernel does not tell of changes here")

// Add watches a directory, which the caller may close afterwards. tell is
// called from one goroutine at a time; it must not block, and may close the
// watch.
func (w *Watcher) Add(d *pathguard.Dir, tell func(Event)) (*Watch, error) {
	if err := w.take(d.Name()); err != nil {
		return nil, err
	}
	stop, err := w.native.add(d, tell)
	polled := errors.Is(err, errNoKernel)
	if polled {
		stop, err = poll(d.Name(), pollEvery, tell)
	}
	if err != nil {
		w.give()
		return nil, err
	}
	return &Watch{polled: polled, stop: func() {
		stop()
		w.give()
	}}, nil
}

func (w *Watcher) take(n pathguard.Name) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held >= Most {
		return &fault.Error{
			Code: fault.LimitExceeded, Resource: n.Resource().String(), Retry: true,
			Rule: "too many directories are watched", Hint: "end another subscription first",
		}
	}
	w.held++
	return nil
}

func (w *Watcher) give() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held--
}
