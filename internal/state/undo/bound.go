// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"cmp"
	"os"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/lock"
)

const (
	// MaxJournals bounds the bytes of all journals together.
	MaxJournals = 64 << 20

	// rotateParts is how many journals fill the bound: what a process still
	// writes to can't be made smaller.
	rotateParts = 64

	// heldKey is the range of a journal's own file that its process holds while
	// it writes to it. It lies behind any content: elsewhere such a range can't
	// be read.
	heldKey = 1 << 40
)

// bound brings the journals back to three quarters of their bound, once they are
// over it. Another process that does so, or looks after the dead, is not waited
// for: there is a next time.
func (l *Log) bound() {
	names, _, err := journals(l.join())
	if err != nil || total(names) <= l.o.Journals {
		return
	}
	release, err := l.lock.Try(journalsKey)
	if err != nil {
		return
	}
	defer release()
	_ = l.compact() // else the next journal tries it again
}

func total(names []string) (n int64) {
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// closed is the journals that nobody writes to any more. An empty one may be
// about to be held.
func closed(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		if info, err := os.Lstat(name); err != nil || info.Size() == 0 {
			continue
		}
		if release, err := lock.Open(name).Try(heldKey); err == nil {
			release()
			all[name] = true
		}
	}
	return all
}

// cluster is the changes that took each other back, which go together.
type cluster struct {
	txns   []*Txn
	owner  string // of the first
	newest time.Time
	bytes  int64
}

// clusters are the oldest first.
func (x *Index) clusters() []*cluster {
	of := map[string]*cluster{}
	for _, t := range x.Txns { // the oldest first: what is taken back comes before
		c := &cluster{owner: t.owner()}
		for _, e := range t.Steps {
			if e.Of == nil || of[e.Of.ID] == nil || of[e.Of.ID] == c {
				continue
			}
			former := of[e.Of.ID]
			if len(c.txns) == 0 {
				c = former
				continue
			}
			for _, moved := range former.txns {
				of[moved.ID] = c
			}
			c.txns, c.bytes = append(c.txns, former.txns...), c.bytes+former.bytes
		}
		c.txns, c.bytes, c.newest = append(c.txns, t), c.bytes+t.bytes, t.Time
		of[t.ID] = c
	}
	var all []*cluster
	for _, t := range x.Txns {
		if c := of[t.ID]; c != nil {
			all = append(all, c)
			for _, each := range c.txns {
				of[each.ID] = nil
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *cluster) int { return a.newest.Compare(b.newest) })
	return all
}

// owner is who the lines of a change count for.
func (t *Txn) owner() string { return (&Change{Agent: t.Agent, Undoes: t.Undoes}).owner() }

// shrinking is one choice of what goes.
type shrinking struct {
	closed map[string]bool // journals
	images map[string]bool // that are there
	pinned map[string]bool // the newest change of each process that runs
	old    time.Time       // when what is kept begins
	over   int64           // bytes that have to go
	held   map[string]int64
	gone   map[*cluster]bool
}

// choose picks the changes that go: what is older than is kept, then what can't
// be undone any more, then the oldest of whoever has the most. What is not
// finished, or wants a person's look, stays, and the newest of each process that
// runs.
func (s *shrinking) choose(all []*cluster) []*cluster {
	queues := map[string][]*cluster{}
	for _, c := range all {
		s.held[c.owner] += c.bytes
		switch {
		case !s.may(c):
		case c.newest.Before(s.old):
			s.drop(c)
		default:
			queues[c.owner] = append(queues[c.owner], c)
		}
	}
	for _, c := range all {
		if s.over > 0 && !s.gone[c] && s.may(c) && s.spent(c) {
			s.drop(c)
		}
	}
	for s.over > 0 && len(queues) > 0 {
		owner := s.largest(queues)
		c := queues[owner][0]
		if queues[owner] = queues[owner][1:]; len(queues[owner]) == 0 {
			delete(queues, owner)
		}
		if !s.gone[c] {
			s.drop(c)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *cluster) bool { return !s.gone[c] })
}

// largest is who has the most of those that have something to give.
func (s *shrinking) largest(queues map[string][]*cluster) (owner string) {
	for o := range queues {
		if owner == "" || cmp.Or(cmp.Compare(s.held[o], s.held[owner]), cmp.Compare(owner, o)) > 0 {
			owner = o
		}
	}
	return owner
}

func (s *shrinking) drop(c *cluster) {
	s.gone[c] = true
	s.over -= c.bytes
	s.held[c.owner] -= c.bytes
}

// may is false for what has to stay.
func (s *shrinking) may(c *cluster) bool {
	for _, t := range c.txns {
		if s.pinned[t.ID] || slices.ContainsFunc(t.journals, func(name string) bool { return !s.closed[name] }) {
			return false
		}
		open := func(e *Entered) bool { return e.State == Prepared || e.State == Attention }
		if !t.Time.Before(s.old) && slices.ContainsFunc(t.Steps, open) {
			return false
		}
	}
	return true
}

// spent reports changes of which nothing can be undone any more.
func (s *shrinking) spent(c *cluster) bool {
	for _, t := range c.txns {
		for _, e := range t.Steps {
			needs := e.Image != "" && e.Do != Create
			there := s.images[e.Image] || s.images[e.Image+pathguard.OldSuffix]
			if t.Lost == "" && e.State != Aborted && (!needs || there) {
				return false
			}
		}
	}
	return true
}
