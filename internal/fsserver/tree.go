// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"slices"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// node is one entry of a tree. It is a visitor of what is beneath it.
type node struct {
	tree     *treeWalk
	entryOf  pathguard.Entry
	children []*node
	level    int  // of its children: how many directories they are beneath
	closed   bool // its directory could not be read
	told     bool // on a page before, so it is here for its children alone
}

// treeWalk is the walk of a tree, with memory to measure entries in.
type treeWalk struct {
	traversal
	bare    bool
	scratch []byte
}

func (n *node) entry(e entry) visitor {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	child := &node{tree: n.tree, entryOf: e.item.Entry, level: n.level + 1, told: e.told}
	if e.told {
		n.children = append(n.children, child)
		n.tree.size += n.tree.cost(child, 2*n.level)
	} else if n.tree.fits(n.tree.cost(child, 2*n.level)) {
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
		top.prune()
		r := reply{kind: untrusted.Listing, source: name.String()}
		r.body = string(top.appendChildren(make([]byte, 0, t.size), 0))
		if c.o.Bare {
			r.structured = top.appendStructured([]byte(`{"tree":`))
		}
		return r
	}
	return c.gather(ctx, &t.traversal)
}

// prune takes out what was told before and has nothing new beneath it.
func (n *node) prune() {
	n.children = slices.DeleteFunc(n.children, func(child *node) bool {
		if child.told {
			child.prune()
		}
		return child.told && len(child.children) == 0
	})
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
