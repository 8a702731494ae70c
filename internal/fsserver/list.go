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
		counts{w.Hidden, w.Unreadable, w.Full, w.Raced}.note(&r)
		return err
	})
	slices.SortFunc(items, func(a, b enforce.Item) int { return strings.Compare(a.Name, b.Name) })
	return items, r, full, err
}

// listing puts the lines of entries together, and their structured content,
// until the answer has no room beside what is left for the rest of the text.
func (c *call) listing(items []enforce.Item, r *reply, rest string, sizes bool, line func(enforce.Item) string) {
	room := int(c.o.Answer) - mcpwire.TextLen(rest)
	var b strings.Builder
	var structured []byte
	shown := 0
	for _, item := range items {
		text := line(item)
		before := len(structured)
		if c.o.Bare {
			structured = appendListed(structured, item, sizes)
		}
		if room -= mcpwire.TextLen(text) + len(structured) - before; room < 0 {
			structured = structured[:before]
			r.outcome.Partial = true
			r.notes = append(r.notes, "the answer has room for "+strconv.Itoa(shown)+" of "+strconv.Itoa(len(items))+" entries")
			break
		}
		b.WriteString(text)
		shown++
	}
	b.WriteString(rest)
	r.body = b.String()
	if c.o.Bare {
		structured = append([]byte(`{"entries":[`), bytes.TrimSuffix(structured, []byte{','})...)
		r.structured = closeStructured(append(structured, ']'), *r)
	}
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
	c.listing(items, &r, "", false, func(item enforce.Item) string {
		return label(item.Kind) + " " + shownName(item.Entry) + "\n"
	})
	r.body = strings.TrimSuffix(r.body, "\n")
	return r, nil
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
	if c.args.sortBy == "size" {
		slices.SortStableFunc(items, func(a, b enforce.Item) int { return cmp.Compare(size(b), size(a)) })
	} else {
		byName(items, func(item enforce.Item) string { return item.Name })
	}
	c.listing(items, &r, totals(items), true, func(item enforce.Item) string {
		name, length := shownName(item.Entry), ""
		if item.Kind == pathguard.KindFile {
			length = formatSize(item.Info.Size)
			length = pad(length, 10) + length
		}
		return label(item.Kind) + " " + name + pad(name, 30) + " " + length + "\n"
	})
	return r, nil
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
	return append(b, '}')
}

// node is one entry of a tree. It is a visitor of what is beneath it.
type node struct {
	tree     *treeWalk
	entryOf  pathguard.Entry
	children []*node
	level    int  // of its children: how many directories they are beneath
	closed   bool // its directory could not be read
}

// treeWalk is the walk of a tree, with memory to measure entries in.
type treeWalk struct {
	traversal
	bare    bool
	scratch []byte
}

func (n *node) entry(_ pathguard.Name, _ string, item enforce.Item) visitor {
	child := &node{tree: n.tree, entryOf: item.Entry, level: n.level + 1}
	if n.tree.fits(n.tree.cost(child, 2*n.level)) {
		n.children = append(n.children, child)
	}
	return child
}

// cost is how many bytes an entry takes in the answer: its lines with their
// indents, those of its braces and of the bracket that ends its children, and
// its structured content.
func (t *treeWalk) cost(n *node, depth int) int {
	const lineFeed, punctuation = 2, 8
	t.scratch = n.append(t.scratch[:0], depth+2)
	size := mcpwire.TextLen(t.scratch) + punctuation + 2*(lineFeed+2*(depth+1))
	if n.entryOf.Kind == pathguard.KindDir {
		size += lineFeed + 2*(depth+2)
	}
	if t.bare {
		t.scratch = n.appendStructured(appendItem(t.scratch[:0], n.entryOf))
		size += len(t.scratch) + len(`,"children":`)
	}
	return size
}

func (n *node) unreadable() { n.closed = true }

func directoryTree(ctx context.Context, c *call) (reply, error) {
	exclude, err := newCompiler().exclude(c.args.exclude)
	if err != nil {
		return reply{}, err
	}
	t := &treeWalk{traversal: traversal{exclude: exclude}, bare: c.o.Bare}
	top := &node{tree: t}
	t.first = top
	t.answer = func(name pathguard.Name) reply {
		r := reply{kind: untrusted.Listing, source: name.String()}
		r.body = string(top.appendChildren(make([]byte, 0, t.size), 0))
		if c.o.Bare {
			r.structured = top.appendStructured([]byte(`{"tree":`))
		}
		return r
	}
	return c.gather(ctx, &t.traversal)
}

// appendChildren appends the array of what is beneath, as JSON with two blanks
// a level.
func (n *node) appendChildren(b []byte, depth int) []byte {
	if len(n.children) == 0 {
		return append(b, "[]"...)
	}
	b = append(b, '[')
	for i, child := range n.children {
		if i > 0 {
			b = append(b, ',')
		}
		b = indent(b, depth+1)
		b = child.append(append(b, '{'), depth+2)
		b = append(indent(b, depth+1), '}')
	}
	return append(indent(b, depth), ']')
}

func (n *node) append(b []byte, depth int) []byte {
	b = jsonName(append(indent(b, depth), `"name": `...), n.entryOf)
	b = append(indent(append(b, ','), depth), `"type": "`...)
	b = append(append(b, treeType(n.entryOf.Kind)...), '"')
	if n.entryOf.Kind == pathguard.KindDir {
		b = n.appendChildren(append(indent(append(b, ','), depth), `"children": `...), depth)
	}
	if n.closed {
		b = append(indent(append(b, ','), depth), `"unreadable": true`...)
	}
	if !n.entryOf.Reachable {
		b = append(indent(append(b, ','), depth), `"reachable": false`...)
	}
	return b
}

func indent(b []byte, depth int) []byte {
	b = append(b, '\n')
	for range depth {
		b = append(b, "  "...)
	}
	return b
}

func (n *node) appendStructured(b []byte) []byte {
	b = append(b, '[')
	for i, child := range n.children {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, child.entryOf)
		if child.entryOf.Kind == pathguard.KindDir {
			b = child.appendStructured(append(b, `,"children":`...))
		}
		if child.closed {
			b = append(b, `,"unreadable":true`...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
