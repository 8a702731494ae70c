// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDepth bounds nesting: the parser is recursive.
const maxDepth = 500

// parsed is a text of JSON with comments, and where its parts are.
type parsed struct {
	text []byte // without the byte order mark
	root *object
	// servers is the object of entries, nil where there is none.
	servers *object
	empty   bool // there is no value at all
}

// object is an object of the text by its offsets.
type object struct {
	start, end int // of both braces
	members    []member
}

// member is one member of an object: where its name begins, its value, and the
// comma behind it, -1 for none.
type member struct {
	name       string
	at         int
	start, end int
	comma      int
	value      hujson.ValueTrimmed
}

// parseJSON finds the root object and that of key.
func parseJSON(text []byte, key string) (*parsed, *problem) {
	p := &parsed{text: text}
	if at := loneReturn(text); at >= 0 {
		return nil, wrong(at, "there is a carriage return without a line feed: readers differ in whether it ends a line and with it a comment")
	}
	if len(bytes.Trim(text, " \t\r\n")) == 0 {
		p.empty = true
		return p, nil
	}
	if at := tooDeep(text); at >= 0 {
		return nil, wrong(at, "it is nested more than %d levels deep", maxDepth)
	}
	// The parser wants a line end behind a comment, also in the last line.
	v, err := hujson.Parse(append(bytes.Clone(text), '\n'))
	if err != nil {
		return nil, parseProblem(text, err)
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, wrong(v.StartOffset, "the file is not an object")
	}
	if p.root, err = members(root, v.StartOffset, v.EndOffset); err != nil {
		return nil, wrong(v.StartOffset, "%v", err)
	}
	m, prob := p.root.only(key)
	if m == nil {
		return p, prob
	}
	servers, ok := m.value.(*hujson.Object)
	if !ok {
		return nil, wrong(m.start, "%q is not an object", key)
	}
	if p.servers, err = members(servers, m.start, m.end); err != nil {
		return nil, wrong(m.start, "%v", err)
	}
	return p, nil
}

// parseProblem takes the place out of the parser's error.
func parseProblem(text []byte, err error) *problem {
	m := regexp.MustCompile(`^hujson: line (\d+), column (\d+): (.*)$`).FindStringSubmatch(err.Error())
	if m == nil {
		return wrong(-1, "it can't be parsed")
	}
	line, _ := strconv.Atoi(m[1])   // they are digits
	column, _ := strconv.Atoi(m[2]) // they are digits
	at := 0
	for range line - 1 {
		at += bytes.IndexByte(text[at:], '\n') + 1
	}
	at = min(at+column-1, len(text))
	if rest := bytes.TrimLeft(text[at:], " \t\r\n"); len(rest) > 0 && !strings.HasSuffix(m[3], "unexpected EOF") {
		r, _ := utf8.DecodeRune(rest) // what the parser says may be the file's own text, of any length
		return wrong(at, "it is not valid JSON: there can't be %s at this place", strconv.QuoteRuneToASCII(r))
	}
	return wrong(at, "it is not valid JSON: the file ends before everything in it does")
}

// loneReturn returns where a carriage return is that no line feed follows, or -1.
func loneReturn(text []byte) int {
	for i, c := range text {
		if c == '\r' && (i+1 == len(text) || text[i+1] != '\n') {
			return i
		}
	}
	return -1
}

// tooDeep returns where nesting passes maxDepth, or -1. What it skips is what
// the parser skips, to the byte: else a text could hide its depth. Behind a
// comment that doesn't end there is nothing that the parser would read.
func tooDeep(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"', '/':
			if i = skip(text, i); i < 0 {
				return -1
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// skip returns the last byte of the string or comment that begins at i: i itself
// where none does, -1 where it doesn't end.
func skip(text []byte, i int) int {
	end := []byte("\n")
	switch rest := text[i:]; {
	case rest[0] == '"':
		for i++; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
		return i
	case bytes.HasPrefix(rest, []byte("/*")):
		end = []byte("*/")
	case !bytes.HasPrefix(rest, []byte("//")):
		return i
	}
	n := bytes.Index(text[i+2:], end)
	if n < 0 {
		return -1
	}
	return i + 2 + n + len(end) - 1
}

// members reads an object's offsets off the parser's tree.
func members(o *hujson.Object, start, end int) (*object, error) {
	out := &object{start: start, end: end}
	for i, m := range o.Members {
		literal, ok := m.Name.Value.(hujson.Literal)
		if !ok {
			return nil, fmt.Errorf("a name is not a string")
		}
		comma := m.Value.EndOffset + len(m.Value.AfterExtra)
		if i == len(o.Members)-1 && m.Value.AfterExtra == nil { // the parser's sign for no trailing comma
			comma = -1
		}
		out.members = append(out.members, member{literal.String(), m.Name.StartOffset, m.Value.StartOffset, m.Value.EndOffset, comma, m.Value.Value})
	}
	return out, nil
}

// only returns the member of that name, nil for none; a second one is refused,
// since readers differ in which one counts.
func (o *object) only(name string) (*member, *problem) {
	var found *member
	for i := range o.members {
		if o.members[i].name != name {
			continue
		}
		if found != nil {
			return nil, wrong(o.members[i].at, "%q is there twice", name)
		}
		found = &o.members[i]
	}
	return found, nil
}

// gap returns where the white space and comments before a member begin.
func (o *object) gap(i int) int {
	if i == 0 {
		return o.start + 1
	}
	return o.members[i-1].comma + 1
}

// read returns what an entry's value runs. Plain says that it has the members
// that we write, each once, and no other.
func (f form) read(name string, v hujson.ValueTrimmed) (e entry, plain bool) {
	e.name = name
	o, ok := v.(*hujson.Object)
	if !ok {
		return e, false
	}
	got := map[string]string{}
	for _, m := range o.Members {
		name, ok := m.Name.Value.(hujson.Literal)
		if !ok {
			return e, false
		}
		value := m.Value.Clone()
		value.Standardize()
		value.Minimize()
		if _, twice := got[name.String()]; twice {
			return e, false
		}
		got[name.String()] = value.String()
	}
	// A value of another kind leaves the entry without it, so that it isn't ours.
	if f.array {
		_ = json.Unmarshal([]byte(got["command"]), &e.args)
		if len(e.args) > 0 {
			e.command, e.args = e.args[0], e.args[1:]
		}
	} else {
		_ = json.Unmarshal([]byte(got["command"]), &e.command)
		_ = json.Unmarshal([]byte(got["args"]), &e.args)
	}
	e.odd = f.odd(got)
	return e, f.plain(e, got)
}

// plain compares an entry's members with those that we would write for it.
func (f form) plain(e entry, got map[string]string) bool {
	var want map[string]json.RawMessage
	if json.Unmarshal([]byte(f.object(e, style{inline: true})), &want) != nil || len(want) != len(got) {
		return false
	}
	for name := range want {
		if _, ok := got[name]; !ok {
			return false
		}
	}
	return (f.kind == "" || got["type"] == quote(f.kind)) && (!f.enabled || got["enabled"] == "true") && (!f.tools || got["tools"] == `["*"]`)
}
