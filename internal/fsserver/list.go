// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// fewEntries is how many entries a listing holds beside others; one of more is
// read in a place for large calls.
const fewEntries = 10_000

// entries reads one directory, in the order of the names' bytes.
func (c *call) entries(ctx context.Context, facts bool) (items []enforce.Item, r reply, err error) {
	items, r, full, err := c.entriesWithin(ctx, facts, min(fewEntries, c.o.WalkEntries))
	if err != nil || !full || c.o.WalkEntries <= fewEntries {
		return items, r, err
	}
	if err := c.large(ctx); err != nil {
		return nil, r, err
	}
	items, r, _, err = c.entriesWithin(ctx, facts, c.o.WalkEntries)
	return items, r, err
}

func (c *call) entriesWithin(ctx context.Context, facts bool, limit int) (items []enforce.Item, r reply, full bool, err error) {
	r.kind = untrusted.Listing
	err = c.gate.Walk(ctx, c.args.path, limit, func(w *enforce.Walk, top pathguard.Name) error {
		var err error
		var readable bool
		items, readable, err = w.Entries(top, facts)
		r.source = top.String()
		r.outcome.Partial = !readable
		full = w.Full
		counts{hidden: w.Hidden, unreadable: w.Unreadable, over: w.Full, raced: w.Raced}.note(&r)
		return err
	})
	slices.SortFunc(items, func(a, b enforce.Item) int { return strings.Compare(a.Name, b.Name) })
	return items, r, full, err
}

// list is a listing on its way into an answer.
type list struct {
	items []enforce.Item
	// order is that of the items; place is the one of an item.
	order func(a, b enforce.Item) int
	sizes bool
	line  func(enforce.Item) string
	rest  string // the end of the text
}

// place is where an item stands in a listing: for one by size that counts too.
func (l *list) place(item enforce.Item) position {
	return position{path: item.Name, n: size(item)}
}

// page leaves out what was told before the position. It is false where the
// entry that was told last is gone or another.
func (l *list) page(from position) (still bool) {
	if from.path == "" {
		return true
	}
	last := enforce.Item{Entry: pathguard.Entry{Name: from.path, Kind: pathguard.KindFile}, Info: pathguard.Info{Size: from.n}}
	i, found := slices.BinarySearchFunc(l.items, last, l.order)
	if found {
		i++
	}
	l.items = l.items[i:]
	return found
}

// answer puts the lines of entries together, and their structured content,
// until the page is full or the answer has no room beside what is left for the
// rest of the text.
func (c *call) answer(l list, r *reply) error {
	from, most, err := c.page()
	if err != nil {
		return err
	}
	if !l.page(from) {
		r.outcome.RescanPending = true
	}
	room := int(c.o.Answer) - mcpwire.TextLen(l.rest)
	var b strings.Builder
	var structured []byte
	shown := 0
	for _, item := range l.items {
		if most > 0 && shown == most {
			r.notes = append(r.notes, left(shown, len(l.items)))
			break
		}
		text := l.line(item)
		before := len(structured)
		if c.o.Bare {
			structured = appendListed(structured, item, l.sizes)
		}
		if room -= mcpwire.TextLen(text) + len(structured) - before; room < 0 {
			structured = structured[:before]
			r.outcome.Partial = true
			r.notes = append(r.notes, "the answer has room for "+strconv.Itoa(shown)+" of "+strconv.Itoa(len(l.items))+" entries")
			break
		}
		b.WriteString(text)
		shown++
	}
	if shown > 0 && shown < len(l.items) {
		c.refer(r, l.place(l.items[shown-1]))
	}
	b.WriteString(l.rest)
	r.body = b.String()
	if c.o.Bare {
		structured = append([]byte(`{"entries":[`), bytes.TrimSuffix(structured, []byte{','})...)
		r.structured = closeStructured(append(structured, ']'), *r)
	}
	return nil
}

// left says how much of a page's rest there is.
func left(shown, of int) string {
	return strconv.Itoa(shown) + " of " + quantity(of, "entry", "entries") + ", " + strconv.Itoa(of-shown) + " left"
}

// appendListed appends {"name","type"[,"size"]} and a comma.
func appendListed(b []byte, item enforce.Item, sizes bool) []byte {
	b = appendItem(b, item.Entry)
	if sizes && item.Kind == pathguard.KindFile {
		b = strconv.AppendInt(append(b, `,"size":`...), item.Info.Size, 10)
	}
	return append(b, '}', ',')
}

func listDirectory(ctx context.Context, c *call) (reply, error) {
	items, r, err := c.entries(ctx, false)
	if err != nil {
		return r, err
	}
	err = c.answer(list{items: items, order: byBytes, line: func(item enforce.Item) string {
		return label(item.Kind) + " " + shownName(item.Entry) + "\n"
	}}, &r)
	r.body = strings.TrimSuffix(r.body, "\n")
	return r, err
}

func byBytes(a, b enforce.Item) int { return strings.Compare(a.Name, b.Name) }

func bySize(a, b enforce.Item) int {
	return cmp.Or(cmp.Compare(size(b), size(a)), byBytes(a, b))
}

// byWords is the order that byName makes.
func byWords(a, b enforce.Item) int {
	return cmp.Or(compareNames(a.Name, b.Name), byBytes(a, b))
}

// size is what a listing tells of an entry: of anything but a file and a
// directory nothing, since the length of a link is that of a name outside.
func size(item enforce.Item) int64 {
	if item.Kind == pathguard.KindFile || item.Kind == pathguard.KindDir {
		return item.Info.Size
	}
	return 0
}

func listWithSizes(ctx context.Context, c *call) (reply, error) {
	items, r, err := c.entries(ctx, true)
	if err != nil {
		return r, err
	}
	order := byWords
	if c.args.sortBy == "size" {
		order = bySize
		slices.SortFunc(items, order)
	} else {
		byName(items, func(item enforce.Item) string { return item.Name })
	}
	err = c.answer(list{items: items, order: order, sizes: true, rest: totals(items), line: func(item enforce.Item) string {
		name, length := shownName(item.Entry), ""
		if item.Kind == pathguard.KindFile {
			length = formatSize(item.Info.Size)
			length = pad(length, 10) + length
		}
		return label(item.Kind) + " " + name + pad(name, 30) + " " + length + "\n"
	}}, &r)
	return r, err
}

// totals ends a listing with sizes.
func totals(items []enforce.Item) string {
	var files, dirs int
	var total int64
	for _, item := range items {
		switch item.Kind {
		case pathguard.KindDir:
			dirs++
		case pathguard.KindFile:
			total += item.Info.Size
			files++
		default:
		}
	}
	others := ""
	if n := len(items) - files - dirs; n > 0 {
		others = ", " + strconv.Itoa(n) + " others"
	}
	return "\nTotal: " + strconv.Itoa(files) + " files, " + strconv.Itoa(dirs) + " directories" + others +
		"\nCombined size: " + formatSize(total)
}

// appendItem begins the object of one entry.
func appendItem(b []byte, e pathguard.Entry) []byte {
	b = append(b, `{"name":`...)
	if e.Reachable {
		b = appendScrubbed(b, e.Name)
	} else {
		b = append(appendScrubbed(b, textsafe.Name(e.Name)), `,"reachable":false`...)
	}
	return mcpwire.AppendString(append(b, `,"type":`...), treeType(e.Kind))
}

// appendScrubbed appends text from outside as a string of structured content:
// what looks like an envelope is defused, controls are escaped by JSON.
func appendScrubbed(b []byte, s string) []byte {
	return mcpwire.AppendString(b, untrusted.Bare(untrusted.File, s).String())
}

// closeStructured says that something is missing and ends the object.
func closeStructured(b []byte, r reply) []byte {
	if r.outcome.Partial {
		b = append(b, `,"partial":true`...)
	}
	if r.next != nil {
		b = append(append(b, `,"next":`...), r.next...)
	}
	return append(b, '}')
}
