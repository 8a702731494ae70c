// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/undo"
	"github.com/postern-gate/postern/internal/watch"
)

// WatcherSource is the source of the records of Outside.
const WatcherSource = "watcher"

// OutsideOptions are what Outside watches.
type OutsideOptions struct {
	Workspace *pathguard.Workspace
	Decider   Decider // says which names are not told; nothing is decided
	most      int
	pace      outsidePace
}

// outsidePace bounds what is held and what is recorded.
type outsidePace struct {
	quiet   time.Duration // an entry is recorded once nothing happened to it for this long
	longest time.Duration // or has happened for this long
	between time.Duration // least time between two records without a name
	waits   time.Duration // how long the end of a call is waited for
	named   int           // names told at once; then one a second
	held    int           // entries that wait
}

func (p outsidePace) orDefault() outsidePace {
	return outsidePace{
		quiet: cmp.Or(p.quiet, time.Second), longest: cmp.Or(p.longest, time.Minute), between: cmp.Or(p.between, 5*time.Second),
		waits: cmp.Or(p.waits, 30*time.Second), named: cmp.Or(p.named, 64), held: cmp.Or(p.held, 16_384),
	}
}

// Outside records changes beneath the roots that went through no postern of this
// state directory. It is for the record only: it blocks nothing, decides
// nothing, and knows of no agent. What it can't see is in docs/undo.md.
type Outside struct {
	state  *State
	o      OutsideOptions
	pace   outsidePace
	id     string
	tree   *watch.Tree
	left   *undo.Follower
	wake   chan struct{}
	ready  chan struct{}
	cancel func()
	ended  sync.WaitGroup

	mu      sync.Mutex
	pending map[entryKey]*unsettled
	missed  string // why there may be changes that are not told, "" for none
	begun   bool   // the roots have been looked through

	// Of the goroutine that records:
	told       bool
	partial    bool
	bucket     float64
	filled     time.Time
	unnamed    int64
	lastCount  time.Time
	lastMissed time.Time
}

type entryKey struct {
	dir   pathguard.Name
	entry string
}

// unsettled is an entry that something has happened to.
type unsettled struct {
	first, last time.Time
	made        bool // it was not there before
}

// WatchOutside begins to watch, until Close: the end of ctx alone does not end it,
// since calls may go on for a while. It fails where the system can't watch.
func (s *State) WatchOutside(ctx context.Context, o OutsideOptions) (*Outside, error) {
	w := &Outside{
		state: s, o: o, pace: o.pace.orDefault(), id: newID(), left: undo.Follow(s.Path()),
		wake: make(chan struct{}, 1), ready: make(chan struct{}), pending: map[entryKey]*unsettled{},
	}
	w.bucket, w.filled = float64(w.pace.named), time.Now()
	opts := watch.TreeOptions{Most: o.most, Tell: w.tell, Skip: func(entry string) bool {
		return entry == ".git" || strings.HasPrefix(entry, litterPrefix)
	}}
	for _, r := range o.Workspace.Roots() {
		if n, err := o.Workspace.Parse(r.Name() + "://"); err == nil && len(n) > 0 {
			opts.Roots = append(opts.Roots, n[0])
		}
	}
	var err error
	if w.tree, err = watch.OpenTree(opts); err != nil {
		return nil, err
	}
	_ = w.left.Poll() // what was left before this is not taken for somebody else's
	ctx = context.WithoutCancel(ctx)
	over, end := context.WithCancel(ctx)
	ctx, w.cancel = context.WithCancel(ctx)
	w.ended.Go(func() {
		defer end()
		w.tree.Run(ctx)
	})
	w.ended.Go(func() { w.run(over) })
	return w, nil
}

// litterPrefix begins the name of a file of ours that has not its own yet.
const litterPrefix = ".postern-tmp-"

// Ready is closed once every folder is watched.
func (w *Outside) Ready() <-chan struct{} { return w.ready }

// Extent says how much is watched.
func (w *Outside) Extent() (folders int, limits string) {
	e := w.tree.Extent()
	return e.Folders, limitsOf(e)
}

func limitsOf(e watch.Extent) string {
	var parts []string
	if e.Partial {
		parts = append(parts, "partial: there are more folders than may be watched")
	}
	if e.Closed > 0 {
		parts = append(parts, strconv.Itoa(e.Closed)+" can't be looked into")
	}
	return strings.Join(parts, ", ")
}

// Close records what is known and ends the watch.
func (w *Outside) Close() {
	w.cancel()
	w.ended.Wait()
}

// tell takes a change in, and never waits for anybody but a map.
func (w *Outside) tell(e watch.TreeEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := entryKey{e.Dir, e.Entry}
	switch p := w.pending[key]; {
	case e.What == watch.Ready:
		w.begun = true
		close(w.ready)
	case e.What == watch.Missed:
		w.missed = "the system told of too many changes at once; it was looked again at the folders, not at what changed"
	case e.What == watch.Lost:
		w.missed = "a root was removed, moved, or can't be opened: nothing is seen there any more"
	case p != nil:
		p.last = time.Now()
		return
	case len(w.pending) >= w.pace.held:
		w.missed = "too many files changed at once"
	default:
		now := time.Now()
		w.pending[key] = &unsettled{now, now, e.What == watch.Made}
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run records what has settled, and sleeps while there is nothing.
func (w *Outside) run(ctx context.Context) {
	tick := time.NewTicker(w.pace.quiet / 4)
	defer tick.Stop()
	for idle := true; ; {
		if idle {
			select {
			case <-w.wake:
			case <-ctx.Done():
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.settle(true)
			return
		}
		idle = w.settle(false)
	}
}

// settle records what nothing happened to for a while; all of it at the end.
// It returns whether nothing is left to do.
func (w *Outside) settle(all bool) (idle bool) {
	due := w.due(all)
	if len(due) > 0 && w.left.Poll() != nil {
		w.miss("the journals of undo can't be read, so a call's own changes may be among these")
	}
	for key, p := range due {
		w.judge(key, p, all)
	}
	w.summary(all)
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0 && w.unnamed == 0 && w.missed == ""
}

// atOnce bounds how many entries are looked at in one go.
const atOnce = 4096

func (w *Outside) due(all bool) map[entryKey]*unsettled {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	due := map[entryKey]*unsettled{}
	for key, p := range w.pending {
		if all || now.Sub(p.last) >= w.pace.quiet || now.Sub(p.first) >= w.pace.longest {
			due[key] = p
			delete(w.pending, key)
		}
		if !all && len(due) == atOnce {
			break
		}
	}
	return due
}

func (w *Outside) miss(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed = why
}

// record writes one record. It is not waited for on disk.
func (w *Outside) record(e core.Event) {
	e.Time, e.Phase, e.Corr, e.Policy = time.Now(), core.PhaseOutside, w.id, w.o.Decider.Version()
	if roots := w.o.Workspace.Roots(); e.Folder == "" && len(roots) > 0 {
		e.Folder = roots[0].Resolved()
	}
	e.Subject = core.Subject{Source: WatcherSource, Session: prefixOf(w.id)}
	if w.state.Record(e, false) != nil {
		w.miss("the log could not be written")
	}
}

// summary tells what has no name: the beginning, counts, and what was missed.
func (w *Outside) summary(all bool) {
	now, extent := time.Now(), w.tree.Extent()
	w.mu.Lock()
	begun := w.begun
	if begun && w.told && extent.Partial && !w.partial {
		w.missed, w.partial = limitsOf(watch.Extent{Partial: true}), true
	}
	missed := w.missed
	if missed != "" && (all || now.Sub(w.lastMissed) >= w.pace.between) {
		w.missed, w.lastMissed = "", now
	} else {
		missed = ""
	}
	w.mu.Unlock()
	if begun && !w.told {
		w.told, w.partial = true, extent.Partial
		why := "what the roots hold, but .git"
		if limits := limitsOf(extent); limits != "" {
			why += "; " + limits
		}
		w.unnamedRecord(audit.Watching, why, int64(extent.Folders))
	}
	if missed != "" {
		w.unnamedRecord(audit.OutsideMissed, missed, 0)
	}
	if w.unnamed > 0 && (all || now.Sub(w.lastCount) >= w.pace.between) {
		n := w.unnamed
		w.unnamed, w.lastCount = 0, now
		w.unnamedRecord(audit.Outside, "another program; names are left out", n)
	}
}

func (w *Outside) unnamedRecord(event audit.Event, why string, n int64) {
	w.record(core.Event{
		Action: core.FSWatch, Verdict: core.Verdict{Reason: core.Reason{Why: why}}, Outside: core.Outside{Event: string(event), N: n},
	})
}
