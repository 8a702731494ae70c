// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
)

// Open returns the judged file for reading; the caller closes it.
func (g *Gate) Open(ctx context.Context, spelling string) (*pathguard.File, error) {
	var file *pathguard.File
	c := &crossing{action: core.FSRead, operands: []operand{{spelling: spelling, use: useFile, actions: readActions}}}
	c.perform = func(context.Context) error {
		file, c.operands[0].file = c.operands[0].file, nil
		return nil
	}
	_, err := g.cross(ctx, c)
	return file, err
}

var (
	readActions = []core.Action{core.FSRead}
	listActions = []core.Action{core.FSList}
)

// Stat returns facts about what the name leads to: its canonical name, and
// never anything about what lies outside.
func (g *Gate) Stat(ctx context.Context, spelling string) (pathguard.Name, pathguard.Info, error) {
	c := &crossing{action: core.FSList, operands: []operand{{spelling: spelling, use: useFacts, actions: listActions}}}
	_, err := g.cross(ctx, c)
	return c.operands[0].name, c.operands[0].info, err
}

// Walk is a look at directories under one decision: what the policy hides is
// left out and counted, what can't be read is counted.
type Walk struct {
	ctx  context.Context //nolint:containedctx // a Walk lives no longer than the call that made it
	gate *Gate
	top  *operand
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
		w := &Walk{ctx: ctx, gate: g, top: &c.operands[0], left: limit}
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

// batch is how many entries are judged between two looks at the context.
const batch = 1024

// judgedBetween is the same for one decision that takes long.
const judgedBetween = 16

// Entries returns what the directory holds and the policy lets be listed, with
// facts if asked for. ok is false where it can't be read; the walk counts that
// and goes on. It fails only when the call is over.
func (w *Walk) Entries(dir pathguard.Name, facts bool) (items []Item, ok bool, err error) {
	d := w.top.dir
	if dir != w.top.name {
		if d, err = dir.OpenDir(); err != nil {
			w.miss(err)
			return nil, false, nil
		}
		defer d.Close()
	}
	for w.left > 0 {
		if err := w.ctx.Err(); err != nil {
			return nil, false, err
		}
		entries, err := d.Entries(min(batch, w.left))
		if errors.Is(err, io.EOF) {
			return items, true, nil
		}
		if err != nil {
			w.miss(err)
			return items, false, nil
		}
		w.left -= len(entries)
		items = w.keep(items, d, entries, facts)
	}
	w.Full = true
	return items, true, nil
}

func (w *Walk) keep(items []Item, d *pathguard.Dir, entries []pathguard.Entry, facts bool) []Item {
	for i, e := range entries {
		if i%judgedBetween == 0 && w.ctx.Err() != nil {
			return items // the caller looks at the context next
		}
		if !w.allowed(d.Name(), e) {
			w.Hidden++
			continue
		}
		item := Item{Entry: e}
		if facts {
			info, err := d.Lstat(e.Name)
			if errors.Is(err, fs.ErrNotExist) && e.Reachable {
				w.Raced = true // it went away meanwhile
				continue
			}
			item.Info = info // zero for what may not be looked at, as a mount point
		}
		items = append(items, item)
	}
	return items
}

func (w *Walk) miss(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		w.Raced = true
		return
	}
	w.Unreadable++
}

// allowed reports whether the policy lets the entry be listed. What it asks
// about is left out too: nobody was asked. A name that can't be spelled as a
// resource is judged by how it would be drawn.
func (w *Walk) allowed(dir pathguard.Name, e pathguard.Entry) bool {
	name, err := dir.Join(strings.ToValidUTF8(e.Name, "\uFFFD"))
	if err != nil {
		return true
	}
	return w.gate.evaluate(core.FSList, name.Resource()).Decision == core.Allow
}
