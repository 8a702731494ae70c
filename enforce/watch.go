// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/watch"
)

// Watcher holds the watches of every gate that shares it. The zero value is
// ready.
type Watcher struct{ all watch.Watcher }

// WatchKind says what a WatchEvent is about.
type WatchKind uint8

// The kinds. After WatchOver nothing follows.
const (
	// WatchChanged: what the name stands for is other than it was.
	WatchChanged WatchKind = iota + 1
	// WatchRescan: something may have changed that isn't told of.
	WatchRescan
	// WatchOver: what was watched was removed or moved, or the policy doesn't
	// let it be watched any more.
	WatchOver
)

// WatchEvent is one change. Name is what changed: the watched file, or an entry
// of the watched directory; it is zero where the kind has none.
type WatchEvent struct {
	Kind WatchKind
	Name pathguard.Name
}

// Watch is one watched file or directory.
type Watch struct {
	gate    *Gate
	name    pathguard.Name
	only    string // the one entry, of a watched file
	decided core.Decision
	said    *reach
	tell    func(WatchEvent)

	mu    sync.Mutex
	inner *watch.Watch
	over  bool
}

// Name returns the canonical name of what is watched.
func (w *Watch) Name() pathguard.Name { return w.name }

// Polled reports that the system doesn't tell of changes here, so that it is
// looked at once a second.
func (w *Watch) Polled() bool { return w.inner.Polled() }

// Close ends the watch. An event that is on its way may still come.
func (w *Watch) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	if w.inner != nil {
		w.inner.Close()
	}
}

var watchActions = []core.Action{core.FSList, core.FSWatch}

// Watch tells of changes to a file, or to the entries of a directory and not
// beneath them, until it is closed; tell must not block. The crossing is
// recorded once. Every event is judged again: one about a name that the policy
// hides is not told, and a policy that became stricter ends the watch. A
// WatchRescan has no name to judge by: it may stem from a burst of changes to
// hidden names, or to neighbours of a watched file. A file is
// watched by its name in its directory, so that one which is replaced is still
// watched.
func (g *Gate) Watch(ctx context.Context, spelling string, tell func(WatchEvent)) (*Watch, error) {
	w := &Watch{gate: g, tell: tell}
	c := &crossing{action: core.FSWatch, operands: []operand{{spelling: spelling, use: useFacts, actions: watchActions}}}
	c.check = func(context.Context) error {
		if g.o.Watcher == nil {
			return &fault.Error{Code: fault.LimitExceeded, Rule: "nothing can be watched here"}
		}
		return nil
	}
	c.perform = func(context.Context) error {
		w.name, w.decided, w.said = c.operands[0].name, c.verdict.Decision, c.reach()
		return w.start(c.operands[0].info.Kind)
	}
	if _, err := g.cross(ctx, c); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Watch) start(kind pathguard.Kind) error {
	top := w.name
	if kind != pathguard.KindDir {
		up, inside := w.name.Parent()
		if kind != pathguard.KindFile || !inside {
			return &fault.Error{Code: fault.PathSpecial, Resource: w.name.Resource().String()}
		}
		top, w.only = up, w.name.Base()
	}
	d, err := top.OpenDir()
	if err != nil {
		return err
	}
	defer d.Close()
	inner, err := w.gate.o.Watcher.all.Add(d, w.judge)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inner = inner; w.over {
		inner.Close() // it was over before it was known here
	}
	return nil
}

// judge passes an event on that the policy lets be told.
func (w *Watch) judge(e watch.Event) {
	told := WatchEvent{Kind: WatchRescan}
	switch {
	case e.Kind == watch.Gone, w.gate.evaluate(core.FSWatch, w.name.Resource()).Decision < w.decided:
		told.Kind = WatchOver
	case e.Kind != watch.Changed:
	case w.only != "" && e.Entry != w.only:
		return
	case w.only != "":
		told = WatchEvent{WatchChanged, w.name}
	default:
		name, err := w.name.Join(strings.ToValidUTF8(e.Entry, "\uFFFD"))
		if err != nil || !w.gate.lists(name, w.said) {
			return
		}
		told = WatchEvent{WatchChanged, name}
	}
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over {
		return
	}
	w.tell(told)
	if told.Kind == WatchOver {
		w.Close()
	}
}
