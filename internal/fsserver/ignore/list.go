// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"bytes"
	"slices"
	"strings"
)

// Verdict is what a list says of a name. The zero value is that it says
// nothing.
type Verdict uint8

// The verdicts.
const (
	Silent  Verdict = iota
	Ignored         // a pattern names it
	Kept            // a pattern with ! names it
)

// List is the patterns of one file.
type List struct{ rules []rule }

// MaxPattern is how many bytes a pattern may have to be heeded.
const MaxPattern = 4096

// rule is one pattern.
type rule struct {
	negated bool
	dirOnly bool
	base    bool // it holds no slash, so it is about the last component
	literal string
	tokens  []token // after the literal
}

// Parse reads the content of a .gitignore file or of one in its form.
func Parse(content []byte) List {
	var l List
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	for line := range bytes.SplitSeq(content, []byte{'\n'}) {
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if end := bytes.IndexByte(line, 0); end >= 0 {
			line = line[:end] // git's strings end there
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if r, ok := parseRule(withoutBlanks(string(line))); ok {
			l.rules = append(l.rules, r)
		}
	}
	return l
}

// withoutBlanks drops the blanks at the end that no backslash keeps.
func withoutBlanks(s string) string {
	from := -1
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if from < 0 {
				from = i
			}
			continue
		case '\\':
			i++
		}
		from = -1
	}
	if from < 0 || strings.HasSuffix(s, `\`) && from == len(s) {
		return s
	}
	return s[:from]
}

func parseRule(s string) (r rule, ok bool) {
	s, r.negated = strings.CutPrefix(s, "!")
	wild := strings.IndexAny(s, `*?[\`)
	s, r.dirOnly = strings.CutSuffix(s, "/")
	if s == "" || len(s) > MaxPattern {
		return r, false
	}
	r.base = !strings.Contains(s, "/")
	if wild < 0 || wild > len(s) {
		wild = len(s)
	}
	r.literal = s[:wild]
	if !r.base {
		r.literal = strings.TrimPrefix(r.literal, "/")
	}
	r.tokens, ok = compile(s[wild:], !r.base)
	return r, ok
}

// Match says what the list decides about a name. path is relative to the
// directory whose list it is, clean, with slashes.
func (l List) Match(path string, dir bool) Verdict {
	for i := range slices.Backward(l.rules) {
		r := &l.rules[i]
		if r.dirOnly && !dir || !r.names(path) {
			continue
		}
		if r.negated {
			return Kept
		}
		return Ignored
	}
	return Silent
}

// Empty reports a list that names nothing.
func (l List) Empty() bool { return len(l.rules) == 0 }

func (r *rule) names(path string) bool {
	if r.base {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	rest, ok := strings.CutPrefix(path, r.literal)
	return ok && match(r.tokens, rest)
}
