// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
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
	entry(dir pathguard.Name, path string, item enforce.Item) visitor
	unreadable()
}

// traversal walks everything beneath a directory, entries in the order of
// their bytes, each directory before what is in it, links as themselves.
type traversal struct {
	exclude []pattern
	first   visitor
	// answer makes the reply from what the visitors hold. size is how much
	// that takes in the answer, at most limit.
	answer func(top pathguard.Name) reply
	size   int
	limit  int
	// progress is told how many entries have been looked at.
	progress func(done, total float64, message textsafe.Line)
	seen     int

	mu     sync.Mutex // of what the visitors hold, and of the fields below
	walk   *enforce.Walk
	began  bool
	top    pathguard.Name
	at     pathguard.Name // the directory that is being read
	counts counts
}

// counts are those of an enforce.Walk.
type counts struct {
	hidden, unreadable int
	full, raced        bool
}

// errEnough ends a walk whose answer is full.
var errEnough = errors.New("the answer is full")

// gather runs the walk of a call. A walk that its deadline ends is an answer
// with what it has found.
func (c *call) gather(ctx context.Context, t *traversal) (reply, error) {
	t.limit, t.progress = int(c.o.Answer), c.progress
	c.found.mu.Lock()
	c.found.walk = t
	c.found.mu.Unlock()
	var ended error
	err := c.gate.Walk(ctx, c.args.path, c.o.WalkEntries, func(w *enforce.Walk, top pathguard.Name) error {
		t.mu.Lock()
		t.walk, t.top, t.began = w, top, true
		t.mu.Unlock()
		ended = t.descend(ctx, top, "", t.first)
		return nil
	})
	if err != nil {
		return reply{}, err
	}
	late := errors.Is(ended, context.DeadlineExceeded)
	if ended != nil && !late && !errors.Is(ended, errEnough) {
		return reply{}, &fault.Error{Code: fault.Cancelled, Op: "fs.list", Retry: true, Err: ended}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reply(late), nil
}

func (t *traversal) descend(ctx context.Context, dir pathguard.Name, rel string, v visitor) error {
	t.mu.Lock()
	t.at = dir
	t.mu.Unlock()
	items, readable, err := t.walk.Entries(dir, false)
	slices.SortFunc(items, func(a, b enforce.Item) int { return strings.Compare(a.Name, b.Name) })
	t.count(readable || err != nil, v)
	if err != nil {
		return err
	}
	t.seen += len(items)
	t.progress(float64(t.seen), 0, textsafe.Line{})
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err // matching takes time too
		}
		path := item.Name
		if rel != "" {
			path = rel + "/" + path
		}
		if matchesAny(t.exclude, path) {
			continue
		}
		t.mu.Lock()
		next := v.entry(dir, path, item)
		full := t.counts.full
		t.mu.Unlock()
		if full {
			return errEnough
		}
		if item.Kind != pathguard.KindDir || !item.Reachable {
			continue
		}
		child, err := dir.Join(item.Name)
		if err == nil {
			err = t.descend(ctx, child, path, next)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fits takes n bytes of what the answer has left; where it hasn't so much, the
// answer is full and the walk ends. The caller holds mu.
func (t *traversal) fits(n int) bool {
	if t.size+n > t.limit {
		t.counts.full = true
		return false
	}
	t.size += n
	return true
}

func (t *traversal) count(readable bool, v visitor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.walk
	t.counts = counts{w.Hidden, w.Unreadable, w.Full, w.Raced}
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
	r.outcome.Partial = r.outcome.Partial || aborted
	if r.structured != nil {
		r.structured = closeStructured(r.structured, r)
	}
	return r
}

// note says what the policy hides, what could not be read and what is missing.
func (n counts) note(r *reply) {
	if n.hidden > 0 {
		r.notes = append(r.notes, quantity(n.hidden, "name is", "names are")+" hidden by policy")
	}
	if n.unreadable > 0 {
		r.notes = append(r.notes, quantity(n.unreadable, "directory", "directories")+" could not be read")
	}
	if n.full {
		r.notes = append(r.notes, "there is more than the limit of one answer")
	}
	r.outcome.Partial = r.outcome.Partial || n.unreadable > 0 || n.full
	r.outcome.RescanPending = n.raced
}

func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// shown is a name as the caller can send it back: absolute, or with the scheme
// of a root that has no other form.
func shown(n pathguard.Name) string {
	if alias := n.Root().Alias(); alias != "" {
		return alias + "://" + n.Rel()
	}
	return n.Abs()
}
