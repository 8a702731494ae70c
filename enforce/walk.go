// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
)

// Walk is a look at directories under one decision: what the policy hides is
// left out and counted, what can't be read is counted. Only Look, Kind and Open
// may be called by several goroutines at once.
type Walk struct {
	ctx  context.Context //nolint:containedctx // a Walk lives no longer than the call that made it
	gate *Gate
	over *crossing
	top  *operand
	said *reach
	left int

	Hidden     int  // entries that the policy does not let be listed
	Unreadable int  // directories that could not be opened
	Full       bool // the limit was reached, so the rest is missing
	Raced      bool // a directory vanished or became something else during the walk
}

// Walk opens the directory and hands it to visit, which asks for entries, this
// directory's and those beneath it. limit bounds the entries seen in all.
func (g *Gate) Walk(ctx context.Context, spelling string, limit int, visit func(*Walk, pathguard.Name) error) error {
	c := &crossing{action: core.FSList, operands: []operand{{spelling: spelling, use: useDir, actions: listActions}}}
	c.perform = func(ctx context.Context) error {
		w := &Walk{ctx: ctx, gate: g, over: c, top: &c.operands[0], said: c.reach(), left: limit}
		return visit(w, c.operands[0].name)
	}
	_, err := g.cross(ctx, c)
	return err
}

// Item is an entry with the facts about it where they were asked for.
type Item struct {
	pathguard.Entry
	Info pathguard.Info
}

// Listing is what Look has read of a directory.
type Listing struct {
	items        []Item
	seen, hidden int
	over, raced  bool
	whole        bool  // it was opened and read without a failure
	missed       error // why it wasn't
}

// Seen is how many entries were read, those that are hidden too.
func (l *Listing) Seen() int { return l.seen }

// Over reports that there are more entries than were asked for.
func (l *Listing) Over() bool { return l.over }

// batch is how many entries are judged between two looks at the context.
const batch = 1024

// judgedBetween is the same for one decision that takes long.
const judgedBetween = 16

// Left is how many entries may still be seen.
func (w *Walk) Left() int { return w.left }

// Entries returns what the directory holds and the policy lets be listed, with
// facts if asked for. ok is false where it can't be read; the walk counts that
// and goes on. It fails only when the call is over.
func (w *Walk) Entries(dir pathguard.Name, facts bool) (items []Item, ok bool, err error) {
	return w.Take(w.Look(dir, facts, w.left))
}

// Take counts what Look has read and returns it, in the order of the names'
// bytes. Of more than the walk may still see it is the beginning.
func (w *Walk) Take(l *Listing) (items []Item, ok bool, err error) {
	if err := w.ctx.Err(); err != nil {
		return nil, false, err
	}
	items = l.items
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	if l.seen > w.left {
		items = items[:min(len(items), w.left)]
	}
	w.Full = w.Full || l.over || l.seen > w.left
	w.left = max(0, w.left-l.seen)
	w.Hidden += l.hidden
	w.Raced = w.Raced || l.raced
	if !l.whole {
		w.miss(l.missed)
	}
	return items, l.whole, nil
}

// Look reads at most so many entries of a directory, and counts nothing yet.
// The directory that the walk began with can be looked at once.
func (w *Walk) Look(dir pathguard.Name, facts bool, most int) *Listing {
	l := &Listing{}
	d := w.top.dir
	if dir != w.top.name {
		var err error
		if d, err = dir.OpenDir(); err != nil {
			l.missed = err
			return l
		}
		defer d.Close()
	}
	for l.seen < most && w.ctx.Err() == nil {
		entries, err := d.Entries(min(batch, most-l.seen))
		if err != nil {
			l.whole, l.missed = errors.Is(err, io.EOF), err
			return l
		}
		l.seen += len(entries)
		w.keep(l, d, entries, facts)
	}
	l.over, l.whole = true, true
	return l
}

func (w *Walk) keep(l *Listing, d *pathguard.Dir, entries []pathguard.Entry, facts bool) {
	for i, e := range entries {
		if i%judgedBetween == 0 && w.ctx.Err() != nil {
			return // the caller looks at the context next
		}
		if !w.allowed(d.Name(), e) {
			l.hidden++
			continue
		}
		item := Item{Entry: e}
		if facts {
			info, err := d.Lstat(e.Name)
			if errors.Is(err, fs.ErrNotExist) && e.Reachable {
				l.raced = true // it went away meanwhile
				continue
			}
			item.Info = info // zero for what may not be looked at, as a mount point
		}
		l.items = append(l.items, item)
	}
}

func (w *Walk) miss(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		w.Raced = true
		return
	}
	w.Unreadable++
}

// allowed reports whether the policy lets the entry be listed, or a person did. A
// name that can't be spelled as a resource is judged by how it would be drawn.
func (w *Walk) allowed(dir pathguard.Name, e pathguard.Entry) bool {
	name, err := dir.Join(strings.ToValidUTF8(e.Name, "\uFFFD"))
	if err != nil {
		return true
	}
	return w.gate.lists(name, w.said)
}

// Kind is what lies under a name, unknown where nothing does or it may not be
// listed.
func (w *Walk) Kind(name pathguard.Name) pathguard.Kind {
	if !w.gate.lists(name, w.said) {
		return pathguard.KindUnknown
	}
	info, err := name.Lstat()
	if err != nil {
		return pathguard.KindUnknown
	}
	return info.Kind
}

// Open returns a file for reading, judged like one that a call names; links are
// not followed, and what the policy asks about is refused: nobody was asked. It
// is not recorded: the caller tells nothing of the content before Told.
func (w *Walk) Open(name pathguard.Name) (*pathguard.File, error) {
	if v := w.gate.evaluate(core.FSRead, name.Resource()); v.Decision != core.Allow {
		return nil, denied(core.FSRead, name.Resource(), v)
	}
	f, err := name.Open()
	if err != nil {
		return nil, plain(err)
	}
	if err := contentRule(name.Resource(), f); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Told records, under the walk's own id, that something of a file's content is
// about to be told. Where reads are denied without a record the error says that
// there is none.
func (w *Walk) Told(name pathguard.Name) error {
	c, o := w.over, w.gate.o
	v := w.gate.evaluate(core.FSRead, name.Resource())
	if v.Decision != core.Allow {
		return denied(core.FSRead, name.Resource(), v) // the policy has changed
	}
	e := core.Event{
		Time: o.Clock.Now(), Phase: core.PhaseDecision, Subject: o.Subject, Action: core.FSRead, Resource: name.Resource(),
		Verdict: v, Folder: name.Root().Resolved(), Corr: c.corr, Policy: o.Decider.Version(), Class: v.Class, File: true,
	}
	e.Verdict.Class = ""
	if err := o.Recorder.Record(e, o.ReadsNeedAudit); err != nil && o.ReadsNeedAudit {
		return err
	}
	return nil
}
