// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/postern-gate/postern/internal/config/advice"
)

// follow does what the steps say to a policy file, as a person would who has
// all of them before the eyes: places are those of the file as it was.
func (p *place) follow(steps []advice.Step) {
	p.Helper()
	if len(steps) == 0 {
		return
	}
	file := steps[0].File
	src, err := os.ReadFile(file)
	if steps[0].New != errors.Is(err, fs.ErrNotExist) {
		p.Fatalf("%s: new %t, and %v", file, steps[0].New, err)
	}
	if steps[0].New {
		src = []byte("version: 1\n")
	}
	var doc yaml.Node
	p.must(yaml.Unmarshal(src, &doc))
	top := doc.Content[0]
	for _, s := range steps {
		switch {
		case s.File != file:
			p.Fatalf("the change is in %s", s.File)
		case s.Remove:
			if !removeAt(top, s.Line, s.Column) {
				p.Fatalf("nothing stands at %s:%d:%d", s.File, s.Line, s.Column)
			}
		case s.Put != "":
			if !putAt(top, s.Line, s.Column, p.node(s.Put)) {
				p.Fatalf("nothing stands at %s:%d:%d", s.File, s.Line, s.Column)
			}
		default:
			at := top
			for i, key := range s.Under {
				if is, want := has(at, key), i < len(s.Under)-len(s.Make); is != want {
					p.Fatalf("%s is there: %t, and the step says %t: %+v", key, is, want, s)
				}
				at = under(at, key)
			}
			merged(at, p.node(strings.Join(s.Lines, "\n")))
		}
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	p.must(enc.Encode(top))
	p.put(file, b.String())
}

func (p *place) node(text string) *yaml.Node {
	p.Helper()
	var n yaml.Node
	p.must(yaml.Unmarshal([]byte(text), &n))
	nowhere(&n)
	return n.Content[0]
}

// nowhere takes the place from what is new.
func nowhere(n *yaml.Node) {
	n.Line, n.Column = 0, 0
	for _, c := range n.Content {
		nowhere(c)
	}
}

func at(n *yaml.Node, line, column int) bool { return n.Line == line && n.Column == column }

// putAt changes the value at the place, or of the key at the place.
func putAt(n *yaml.Node, line, column int, to *yaml.Node) bool {
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 0 && at(c, line, column):
			n.Content[i+1] = to
			return true
		case at(c, line, column) && c.Kind == yaml.ScalarNode:
			n.Content[i] = to
			return true
		case putAt(c, line, column, to):
			return true
		}
	}
	return false
}

// removeAt removes the entry of a list that is at the place, or whose match is.
func removeAt(n *yaml.Node, line, column int) bool {
	for i, c := range n.Content {
		here := at(c, line, column)
		for _, m := range c.Content {
			here = here || c.Kind == yaml.MappingNode && at(m, line, column)
		}
		if n.Kind == yaml.SequenceNode && here {
			n.Content = append(n.Content[:i], n.Content[i+1:]...)
			return true
		}
		if removeAt(c, line, column) {
			return true
		}
	}
	return false
}

func has(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}

// under is the value of a key, made where it isn't there.
func under(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	value := &yaml.Node{}
	n.Kind, n.Tag = yaml.MappingNode, "!!map"
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
	return value
}

// merged adds entries, and replaces those with the same key.
func merged(to, more *yaml.Node) {
	if to.Kind == 0 {
		*to = *more
		return
	}
	if more.Kind == yaml.SequenceNode {
		to.Content = append(to.Content, more.Content...)
		return
	}
	for i := 0; i+1 < len(more.Content); i += 2 {
		*under(to, more.Content[i].Value) = *more.Content[i+1]
	}
}
