// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"slices"

	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// The events that excuse or explain what is found. docs/events.md has them all.
const (
	clockBack = "clock_back"
	garbage   = "garbage"
	abandoned = "segment_abandoned"
	vanished  = "segment_vanished"
	replaced  = "segment_replaced"
	pruned    = "pruned"
	renewed   = "renewed"
)

// event is one that names a file, or a line of one.
type event struct{ code, resource string }

// events is what can only be judged at the end, since an event comes after
// what it is about.
type events struct {
	told   map[event]place
	bads   []Finding // lines that are no records
	tails  []tail    // that don't count
	pruned file      // the last one
}

// mostHeld bounds what is held in memory until the end.
const mostHeld = 10_000

func (e *events) add(code, resource string, at place) {
	switch code {
	case garbage, abandoned, vanished, replaced, pruned, renewed:
		if len(e.told) < mostHeld {
			e.told[event{code, resource}] = at
		}
	}
}

// drop forgets what stands in lines that are no part of the log.
func (e *events) drop(name string, after int) {
	e.bads = slices.DeleteFunc(e.bads, func(f Finding) bool { return f.Segment == name && f.Line > after })
	for k, at := range e.told {
		if at.file == name && at.line > after {
			delete(e.told, k)
		}
	}
}

// has tells whether an event names a file or a line.
func (e *events) has(code, resource string) bool {
	_, ok := e.told[event{code, resource}]
	return ok
}

// bad keeps a line that is no record until an event may have named it.
func (c *checker) bad(f Finding) {
	if len(c.events.bads) < mostHeld {
		c.events.bads = append(c.events.bads, f)
		return
	}
	c.problem(f.Kind, "%s", f.Text)
}

// finish judges what had to wait, and returns the report.
func (c *checker) finish() Report {
	c.file, c.line = file{}, 0
	for _, f := range c.events.bads {
		if !c.events.has(garbage, f.Place()) {
			c.problemAt(f.Segment, f.Line, f.Kind, "%s", f.Text)
			if f.Segment == c.tail.file.name && f.Line > c.tail.after {
				c.r.AtEnd++
			}
		}
	}
	for _, t := range c.events.tails {
		c.finishTail(t)
	}
	if p := c.events.pruned; p.name != "" && !c.events.has(pruned, segment.Name(p.Number)) {
		c.problemAt(p.name, 0, Pruned, "no event says that the lines of this segment were removed")
	}
	for _, w := range c.watches.all {
		c.outcome(w)
	}
	if c.r.Segments == 0 && len(c.watches.all) == 0 {
		c.problem(Truncated, "there is no log")
	}
	c.finishLost()
	c.count()
	if c.opened == 0 && c.others > 0 {
		text := "nothing in this log is signed by this key, which is of " + c.r.Origin
		if c.r.Signer != "" {
			text += "; the log is " + c.r.Signer
		}
		c.r.More, c.r.Problems = 0, []Finding{{Kind: UnknownKey, Text: text}}
	}
	c.r.Problems, c.r.Notes = append([]Finding{}, c.r.Problems...), append([]Finding{}, c.r.Notes...)
	slices.SortStableFunc(c.r.Problems, inOrder)
	if c.o.Progress != nil {
		c.o.Progress(c.progress.total, c.progress.total)
	}
	return c.r
}

// inOrder sorts by place; what has none comes last.
func inOrder(a, b Finding) int {
	return cmp.Or(
		-cmp.Compare(min(len(a.Segment), 1), min(len(b.Segment), 1)),
		cmp.Compare(len(a.Segment), len(b.Segment)), cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Line, b.Line))
}

func (c *checker) finishTail(t tail) {
	if c.events.has(abandoned, t.file.name) {
		c.note(GivenUp, t.file.name, t.after, "what follows this line is no part of the log: %d lines, left when the disk failed", t.leaves)
		return
	}
	if t.leaves > 0 {
		c.problemAt(t.file.name, t.after+1, Unsealed, "%d lines are no part of the log, which goes on from line %d, and no event says why", t.leaves, t.after)
	}
	if t.torn > 0 {
		c.problemAt(t.file.name, t.torn, Torn, "the line has no end")
	}
}

// renewals are the folders that the log says an older one was put aside in.
func (e *events) renewals() (all []string) {
	for told := range e.told {
		if told.code == renewed {
			all = append(all, told.resource)
		}
	}
	slices.Sort(all)
	return all
}

// finishLost says with the problems of a segment that it was lost while it was
// in use, which the writers noticed and recorded.
func (c *checker) finishLost() {
	for e, at := range c.events.told {
		if e.code != vanished && e.code != replaced {
			continue
		}
		found := false
		for i, p := range c.r.Problems {
			if p.Segment == e.resource {
				c.r.Problems[i].Text += "; " + e.code + " was recorded at " + at.String()
				found = true
			}
		}
		if !found {
			c.note(Recovered, at.file, at.line, "%s was recorded here, and the segment that it names is whole", e.code)
		}
	}
}

// count fills in the sizes.
func (c *checker) count() {
	c.r.Records, c.r.Renewed = c.edge.Size(), c.events.renewals()
	if c.last != nil {
		c.r.Sealed, c.r.Root, c.r.Newest = c.last.Size, c.last.Root.String(), c.last.Note
	}
	if c.r.Unsealed = max(0, c.r.Records-c.r.Sealed); c.r.Unsealed > 0 && c.last != nil {
		c.note(UnsealedTail, c.lastAt.file, c.lastAt.line, "the %d records after this checkpoint are not covered by one yet", c.r.Unsealed)
	}
}
