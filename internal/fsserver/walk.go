// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"errors"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
)

// harvest is what a walk has found so far, for an answer at the deadline.
type harvest struct {
	mu   sync.Mutex
	walk *traversal
}

// reply is the answer with what there is, false for a call that gathers
// nothing.
func (h *harvest) reply() (reply, bool) {
	h.mu.Lock()
	t := h.walk
	h.mu.Unlock()
	if t == nil {
		return reply{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.began {
		return reply{}, false
	}
	return t.reply(true), true
}

// visitor is told of what a walk finds. entry returns the visitor of what is
// beneath the entry, if that is a directory.
type visitor interface {
	entry(e entry) visitor
	unreadable()
}

// entry is one that a walk has come to.
type entry struct {
	dir  pathguard.Name
	path string // relative to where the walk began
	item enforce.Item
	told bool // on a page before; what is beneath it may be new
}

// traversal walks everything beneath a directory, entries in the order of
// their bytes, each directory before what is in it, links as themselves.
type traversal struct {
	call    *call
	exclude []pattern
	ignore  *ignoring // nil where .gitignore files mean nothing
	first   visitor
	// answer makes the reply from what the visitors hold. size is how much
	// that takes in the answer, at most limit.
	answer func(top pathguard.Name) reply
	size   int
	limit  int
	// from is where the page begins, most how many it tells of, 0 for all.
	from  position
	most  int
	shown int
	// finish, if there is one, tells of what waits when the walk ends.
	finish func() error
	// work is what can be told meanwhile, once its channel is closed.
	work  func() (ready <-chan struct{}, do func())
	ahead *ahead
	seen  int
	moved bool     // something of this page was visited
	last  position // what was visited last
	met   bool     // what the page before ended with is still there

	mu      sync.Mutex // of what the visitors hold, and of the fields below
	walk    *enforce.Walk
	began   bool
	top     pathguard.Name
	at      pathguard.Name // the directory or file that is being read
	reached position       // up to which all is told
	counts  counts
}

// errEnough ends a walk whose answer is full.
var errEnough = errors.New("the answer is full")

// gather runs the walk of a call. A walk that its deadline ends is an answer
// with what it has found.
func (c *call) gather(ctx context.Context, t *traversal) (reply, error) {
	if err := t.begin(c); err != nil {
		return reply{}, err
	}
	c.found.mu.Lock()
	c.found.walk = t
	c.found.mu.Unlock()
	var ended error
	err := c.gate.Walk(ctx, c.args.path, c.o.WalkEntries, func(w *enforce.Walk, top pathguard.Name) error {
		t.mu.Lock()
		t.walk, t.top, t.at, t.began = w, top, top, true
		t.mu.Unlock()
		ended = t.run(ctx, w, top)
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	late := ranOut(ctx, ended)
	if err := t.failure(ended, late); err != nil {
		return reply{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reply(late), nil
}

// begin takes over what the call says of its page.
func (t *traversal) begin(c *call) error {
	from, most, err := c.page()
	t.call, t.limit, t.from, t.reached = c, int(c.o.Answer), from, from
	if most > 0 {
		t.most = most
	}
	return err
}

func (t *traversal) failure(ended error, late bool) error {
	var f *fault.Error
	switch {
	case ended == nil || late || errors.Is(ended, errEnough):
		return nil
	case errors.As(ended, &f) && f.Code != fault.Cancelled:
		return ended
	default:
		return &fault.Error{Code: fault.Cancelled, Op: "fs.list", Retry: true, Err: ended}
	}
}

func (t *traversal) run(ctx context.Context, w *enforce.Walk, top pathguard.Name) error {
	t.ahead = newAhead(w)
	defer t.ahead.all.Wait()
	var rules *scope
	if t.ignore != nil {
		t.ignore.walk = w
		rules = t.ignore.around(top)
	}
	err := t.descend(ctx, step{dir: top, visitor: t.first, rules: rules})
	if t.finish == nil {
		return err
	}
	if failed := t.finish(); failed != nil && (err == nil || errors.Is(err, errEnough)) {
		return failed
	}
	return err
}

// step is one directory of a walk.
type step struct {
	dir     pathguard.Name
	rel     string
	visitor visitor
	rules   *scope
}

func (t *traversal) descend(ctx context.Context, s step) error {
	t.mu.Lock()
	t.at = s.dir
	t.mu.Unlock()
	l := t.listing(s.dir)
	flat := l.Seen() > t.walk.Left()
	if flat && t.moved {
		return t.stop() // the next page begins with it
	}
	items, readable, err := t.walk.Take(l)
	t.count(readable || err != nil, s.visitor)
	if err != nil {
		return err
	}
	t.seen += len(items)
	t.call.progress(float64(t.seen), 0, textsafe.Line{})
	if s.rules, items, err = t.keep(ctx, s, items); err != nil {
		return err
	}
	if err := t.visit(ctx, s, items, !flat); err != nil || !flat {
		return err
	}
	t.pass(position{path: s.rel, past: true})
	return t.stop()
}

// listing is what a directory holds. That with which the walk began can be read
// once only, so not ahead.
func (t *traversal) listing(dir pathguard.Name) *enforce.Listing {
	if dir == t.top {
		return t.walk.Look(dir, false, t.walk.Left()+1)
	}
	work := t.work
	if work == nil {
		work = func() (<-chan struct{}, func()) { return nil, nil }
	}
	return t.ahead.listing(dir, work)
}

// keep leaves out what is excluded or told already with all beneath it.
func (t *traversal) keep(ctx context.Context, s step, items []enforce.Item) (*scope, []enforce.Item, error) {
	rules := s.rules
	if t.ignore != nil {
		rules = t.ignore.enter(s.dir, s.rel, items, rules)
	}
	kept := items[:0]
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return nil, nil, err // matching takes time too
		}
		path := joined(s.rel, item.Name)
		t.met = t.met || path == t.from.path
		if t.from.relation(path) == passed || matchesAny(t.exclude, path) {
			continue
		}
		if t.ignore != nil && t.ignore.ignored(ctx, rules, path, item) {
			continue
		}
		kept = append(kept, item)
	}
	if t.ignore != nil {
		t.mu.Lock()
		t.counts.ignored, t.counts.unheeded = t.ignore.n, t.ignore.unheeded
		t.mu.Unlock()
	}
	return rules, kept, nil
}

// visit tells of entries in their order, and of what is beneath them unless the
// directory has more of them than a walk looks at: then what isn't seen of it
// now isn't seen on a later page either.
func (t *traversal) visit(ctx context.Context, s step, items []enforce.Item, deep bool) error {
	next := 0 // the first directory that isn't read ahead
	for i, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if deep && item.Kind == pathguard.KindDir {
			next = t.lookAhead(s.dir, items, max(next, i))
		}
		path := joined(s.rel, item.Name)
		told := t.from.relation(path) == onWay
		beneath := s.visitor.entry(entry{s.dir, path, item, told})
		if t.full() {
			return errEnough
		}
		if !told {
			t.pass(position{path: path})
		}
		if !deep || item.Kind != pathguard.KindDir || !item.Reachable {
			continue
		}
		child, err := s.dir.Join(item.Name)
		if err == nil {
			err = t.descend(ctx, step{child, path, beneath, s.rules})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lookAhead has some of the next directories read, from index i on.
func (t *traversal) lookAhead(dir pathguard.Name, items []enforce.Item, i int) int {
	for n := 0; i < len(items) && n < aheadBeside; i++ {
		if items[i].Kind != pathguard.KindDir || !items[i].Reachable {
			continue
		}
		if child, err := dir.Join(items[i].Name); err == nil {
			t.ahead.start(child)
			n++
		}
	}
	return i
}

// pass notes that the walk has visited something, and that it is told unless
// that waits.
func (t *traversal) pass(p position) {
	t.moved, t.last = true, p
	if t.finish == nil {
		t.reach(p)
	}
}

func joined(rel, name string) string {
	if rel == "" {
		return name
	}
	return rel + "/" + name
}

// stop ends the walk at its limit of entries.
func (t *traversal) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.over = true
	return errEnough
}

// answered reports that the answer has no room for more.
func (t *traversal) answered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts.full || t.counts.paged
}

func (t *traversal) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts.more()
}

func (t *traversal) reach(p position) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached = p
}

// fits takes n bytes of what the answer has left, and one of the places of the
// page; where it hasn't so much, the answer is full and the walk ends. The
// caller holds mu.
func (t *traversal) fits(n int) bool {
	switch {
	case t.most > 0 && t.shown >= t.most:
		t.counts.paged = true
	case t.size+n > t.limit:
		t.counts.full = true
	default:
		t.size += n
		t.shown++
		return true
	}
	return false
}

func (t *traversal) count(readable bool, v visitor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.walk
	t.counts.hidden, t.counts.unreadable, t.counts.raced = w.Hidden, w.Unreadable, t.counts.raced || w.Raced
	if !readable {
		v.unreadable()
	}
}

// reply is what there is; aborted says that the time was over. The caller
// holds mu.
func (t *traversal) reply(aborted bool) reply {
	r := t.answer(t.top)
	if aborted {
		r.outcome.AbortedAt = textsafe.Name(t.at.String())
		r.notes = append(r.notes, "the time was over before this was read: "+r.outcome.AbortedAt)
	}
	t.counts.note(&r)
	r.outcome.RescanPending = r.outcome.RescanPending || !aborted && t.from.path != "" && !t.met
	r.outcome.Partial = r.outcome.Partial || aborted || t.counts.paged && !t.call.args.limit.given
	if (aborted || t.counts.more()) && t.reached != t.from && t.reached != (position{past: true}) {
		t.call.refer(&r, t.reached)
	}
	if r.structured != nil {
		r.structured = closeStructured(r.structured, r)
	}
	return r
}

// shown is a name as the caller can send it back: absolute, or with the scheme
// of a root that has no other form.
func shown(n pathguard.Name) string {
	if alias := n.Root().Alias(); alias != "" {
		return alias + "://" + n.Rel()
	}
	return n.Abs()
}

// shownBeneath is the same for an entry of a directory, be its name such that
// no path can be made of it.
func shownBeneath(dir pathguard.Name, entry string) string {
	if s := shown(dir); s[len(s)-1] == '/' {
		return s + entry
	}
	return shown(dir) + "/" + entry
}
