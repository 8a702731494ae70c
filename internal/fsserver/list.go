// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
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

// entries reads one directory, in the order of the names' bytes.
func (c *call) entries(ctx context.Context, facts bool) (items []enforce.Item, r reply, err error) {
	r.kind = untrusted.Listing
	err = c.gate.Walk(ctx, c.args.path, c.o.WalkEntries, func(w *enforce.Walk, top pathguard.Name) error {
		var err error
		var readable bool
		items, readable, err = w.Entries(top, facts)
		r.source = top.String()
		r.outcome.Partial = !readable
		counts{w.Hidden, w.Unreadable, w.Full, w.Raced}.note(&r)
		return err
	})
	slices.SortFunc(items, func(a, b enforce.Item) int { return strings.Compare(a.Name, b.Name) })
	return items, r, err
}

func listDirectory(ctx context.Context, c *call) (reply, error) {
	items, r, err := c.entries(ctx, false)
	if err != nil {
		return r, err
	}
	var b strings.Builder
	for i, item := range items {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(label(item.Kind))
		b.WriteByte(' ')
		b.WriteString(shownName(item.Entry))
	}
	r.body = b.String()
	r.structured = c.structuredList(items, r, false)
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
	var b strings.Builder
	var files, dirs int
	var total int64
	for _, item := range items {
		name, length := shownName(item.Entry), ""
		switch item.Kind {
		case pathguard.KindDir:
			dirs++
		case pathguard.KindFile:
			length = formatSize(item.Info.Size)
			length = pad(length, 10) + length
			total += item.Info.Size
			files++
		default:
		}
		b.WriteString(label(item.Kind) + " " + name + pad(name, 30) + " " + length + "\n")
	}
	others := ""
	if n := len(items) - files - dirs; n > 0 {
		others = ", " + strconv.Itoa(n) + " others"
	}
	b.WriteString("\nTotal: " + strconv.Itoa(files) + " files, " + strconv.Itoa(dirs) + " directories" + others +
		"\nCombined size: " + formatSize(total))
	r.body = b.String()
	r.structured = c.structuredList(items, r, true)
	return r, nil
}

// structuredList is {"entries":[{"name","type"[,"size"]}]}.
func (c *call) structuredList(items []enforce.Item, r reply, sizes bool) []byte {
	if !c.o.Bare {
		return nil
	}
	b := []byte(`{"entries":[`)
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, item.Entry)
		if sizes && item.Kind == pathguard.KindFile {
			b = strconv.AppendInt(append(b, `,"size":`...), item.Info.Size, 10)
		}
		b = append(b, '}')
	}
	return closeStructured(append(b, ']'), r)
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
	tree     *traversal
	entryOf  pathguard.Entry
	children []*node
	closed   bool // its directory could not be read
}

func (n *node) entry(_ pathguard.Name, _ string, item enforce.Item) visitor {
	child := &node{tree: n.tree, entryOf: item.Entry}
	n.children = append(n.children, child)
	n.tree.size += len(item.Name) + 64
	return child
}

func (n *node) unreadable() { n.closed = true }

func directoryTree(ctx context.Context, c *call) (reply, error) {
	exclude, err := excludePatterns(c.args.exclude)
	if err != nil {
		return reply{}, err
	}
	t := &traversal{exclude: exclude}
	top := &node{tree: t}
	t.first = top
	t.answer = func(name pathguard.Name) reply {
		r := reply{kind: untrusted.Listing, source: name.String()}
		r.body = string(top.appendChildren(nil, 0))
		if c.o.Bare {
			r.structured = top.appendStructured([]byte(`{"tree":`))
		}
		return r
	}
	return c.gather(ctx, t)
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
