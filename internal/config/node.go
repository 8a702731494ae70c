// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
	"go.yaml.in/yaml/v4"
)

// maxSource bounds a policy file.
const maxSource = 1 << 20

// decoder walks the nodes of one file and collects what is wrong with it.
type decoder struct {
	name     string
	src      []byte
	project  bool
	problems []Problem
	lines    []string // of src, once one is wanted
}

// maxKept bounds the problems of one file: who wrote it may have wanted it to take
// long.
const maxKept = 300

func (d *decoder) pos(n *yaml.Node) core.Position {
	return core.Position{File: d.name, Line: n.Line, Column: n.Column}
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	if len(d.problems) < maxKept {
		d.failAt(n.Line, n.Column, fmt.Sprintf(format, args...))
	}
}

// failWith is fail with what to do about it.
func (d *decoder) failWith(n *yaml.Node, next, format string, args ...any) {
	before := len(d.problems)
	if d.fail(n, format, args...); len(d.problems) > before {
		d.problems[before].next = next
	}
}

func (d *decoder) failAt(line, column int, message string) {
	if len(d.problems) >= maxKept {
		return
	}
	if d.lines == nil {
		d.lines = strings.Split(string(d.src), "\n")
	}
	line = min(max(line, 1), len(d.lines))
	text := strings.TrimRight(d.lines[line-1], "\r")
	column = min(max(column, 1), utf8.RuneCountInString(text)+1)
	d.problems = append(d.problems, Problem{
		Pos: core.Position{File: d.name, Line: line, Column: column}, Message: message, Line: text,
	})
}

// document returns the one document of the file, nil when there is a problem.
func (d *decoder) document() *yaml.Node {
	if d.screen(); len(d.problems) > 0 {
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(d.src))
	if err != nil {
		d.failAt(1, 1, "the file can't be read as YAML")
		return nil
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); err != nil {
		d.syntax(err)
		return nil
	}
	switch err := loader.Load(&more); {
	case err == nil:
		d.fail(&more, "a second document: a policy is one")
	case !errors.Is(err, io.EOF):
		d.syntax(err)
	}
	if d.features(&doc); len(d.problems) > 0 || len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

func (d *decoder) syntax(err error) {
	var e *yaml.LoadError
	switch {
	case errors.Is(err, io.EOF):
		d.failAt(1, 1, "the file is empty: write version: 1")
	case errors.As(err, &e) && strings.HasPrefix(e.Message, "unknown anchor"):
		d.failAt(e.Mark.Line, e.Mark.Column, "a value that starts with * must be in quotes")
	case errors.As(err, &e) && d.at(e.Mark.Line, e.Mark.Column) == '\t':
		d.failAt(e.Mark.Line, e.Mark.Column, "a TAB in the indentation: YAML is indented by spaces only")
	case errors.As(err, &e):
		d.failAt(e.Mark.Line, e.Mark.Column, "not valid YAML: "+e.Message)
	default:
		d.failAt(1, 1, "not valid YAML")
	}
}

// at returns the character at a place, 0 where there is none.
func (d *decoder) at(line, column int) rune {
	lines := strings.Split(string(d.src), "\n")
	if line < 1 || line > len(lines) {
		return 0
	}
	if text := []rune(lines[line-1]); 1 <= column && column <= len(text) {
		return text[column-1]
	}
	return 0
}

// screen refuses text that does not read as it is written.
func (d *decoder) screen() {
	if len(d.src) > maxSource {
		d.src = d.src[:0]
		d.failAt(1, 1, "the file is larger than 1 MB")
		return
	}
	line, column := 1, 1
	for i := 0; i < len(d.src); {
		r, size := utf8.DecodeRune(d.src[i:])
		if what := unreadable(r, size); what != "" && (r != 0xFEFF || i > 0) {
			d.failAt(line, column, what)
			return
		}
		i += size
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
}

func unreadable(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "a byte that is not UTF-8"
	case r == '\t', r == '\n', r == '\r':
		return ""
	case r < 0x20, 0x7F <= r && r < 0xA0, r == 0x2028, r == 0x2029:
		return fmt.Sprintf("a control character (%U)", r)
	case r == 0x061C, r == 0x200E, r == 0x200F, 0x202A <= r && r <= 0x202E, 0x2066 <= r && r <= 0x2069:
		return fmt.Sprintf("a direction control (%U), which makes text read differently", r)
	case r == 0x200B, 0x2060 <= r && r <= 0x2064, r == 0xFEFF, 0xE0000 <= r && r <= 0xE0FFF:
		return fmt.Sprintf("an invisible character (%U)", r)
	}
	return ""
}

// features refuses the parts of YAML that make one text mean another.
func (d *decoder) features(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, "an alias: write the value out")
	case n.Anchor != "":
		d.fail(n, "an anchor: write the value out where it is needed")
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n, "a tag: a policy needs none, and its patterns know no negation by a !")
	case n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if k := n.Content[i]; k.ShortTag() == "!!merge" {
				d.fail(k, "a merge key: write the values out")
			}
		}
	}
	for _, child := range n.Content {
		d.features(child)
	}
}

type fields map[string]func(*yaml.Node)

// object walks a mapping whose keys are all known.
func (d *decoder) object(n *yaml.Node, what string, known fields) {
	d.each(n, what, func(key *yaml.Node, value *yaml.Node) {
		f, ok := known[key.Value]
		if !ok {
			next := orKnown(key.Value, slices.Sorted(maps.Keys(known)))
			if (what == thePolicy || what == "rules") && hasRules(value) {
				next = "an agent's name belongs under agents:"
			}
			d.fail(key, "unknown key %q in %s; %s", key.Value, what, next)
			return
		}
		f(value)
	})
}

// hasRules reports whether a key stands above what an agent's name does.
func hasRules(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if _, ok := core.ParseAction(n.Content[i].Value); ok {
			return true
		}
	}
	return false
}

// each walks a mapping of any keys, all of them text and each there once.
func (d *decoder) each(n *yaml.Node, what string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s must be a mapping of keys to values", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			d.fail(key, "a key of %s must be text", what)
			continue
		}
		if line, dup := seen[key.Value]; dup {
			d.fail(key, "%q is given twice in %s, first in line %d", key.Value, what, line)
			continue
		}
		seen[key.Value] = key.Line
		f(key, n.Content[i+1])
	}
}

// list walks a sequence.
func (d *decoder) list(n *yaml.Node, what string, f func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "%s must be a list", what)
		return
	}
	for _, item := range n.Content {
		f(item)
	}
}

// text returns a value that YAML also takes for text.
func (d *decoder) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fail(n, "%s must be text", what)
	case n.ShortTag() != "!!str":
		d.fail(n, "%s must be text: put %q in quotes", what, n.Value)
	default:
		return n.Value, true
	}
	return "", false
}

// oneOf returns which of the words the value is.
func (d *decoder) oneOf(n *yaml.Node, what string, words ...string) (string, bool) {
	if n.Kind == yaml.ScalarNode && slices.Contains(words, n.Value) {
		return n.Value, true
	}
	d.fail(n, "%s must be one of: %s", what, strings.Join(words, ", "))
	return "", false
}
