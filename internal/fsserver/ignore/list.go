// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"iter"
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

// setSize is what a set in brackets takes of a Budget beside its bytes.
const setSize = 32

// Budget is what lists may hold together: bytes of their files, where a set in
// brackets counts for 32 more, and patterns. What they take of memory is some
// times that.
type Budget struct{ Bytes, Rules int }

// rule is one pattern.
type rule struct {
	negated bool
	dirOnly bool
	base    bool // it holds no slash, so it is about the last component
	literal string
	ends    bool // after the literal is one star and then tail, as in *.o
	tail    string
	tokens  []token // otherwise what is after the literal
	sets    []set   // that the tokens mean
}

// Parse reads the content of a .gitignore file or of one in its form. A list
// that holds more than the budget allows is refused whole, since a part of it
// could say the contrary, and takes nothing of it.
func (b *Budget) Parse(content string) (l List, ok bool) {
	content = strings.TrimPrefix(content, "\ufeff")
	left := Budget{Bytes: b.Bytes - len(content), Rules: b.Rules}
	for range patterns(content) {
		if left.Rules--; left.Rules < 0 {
			return List{}, false
		}
	}
	l.rules = make([]rule, 0, b.Rules-left.Rules)
	for line := range patterns(content) {
		if left.Bytes < 0 {
			return List{}, false
		}
		if r, ok := parseRule(withoutBlanks(line)); ok {
			l.rules = append(l.rules, r)
			left.Bytes -= setSize * len(r.sets)
		}
	}
	if left.Bytes < 0 {
		return List{}, false
	}
	*b = left
	return l, true
}

// patterns are the lines that say something.
func patterns(content string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(content, "\n") {
			line = strings.TrimSuffix(line, "\r")
			if end := strings.IndexByte(line, 0); end >= 0 {
				line = line[:end] // git's strings end there
			}
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
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
	if rest, star := strings.CutPrefix(s[wild:], "*"); r.base && star && !strings.ContainsAny(rest, `*?[\`) {
		r.ends, r.tail = true, rest
		return r, true
	}
	r.tokens, r.sets, ok = compile(s[wild:], !r.base)
	return r, ok
}

// Match says what the list decides about a name. path is relative to the
// directory whose list it is, clean, with slashes. What it takes is subtracted
// from steps; where these are used up before it is known, it is below 0 and the
// list is Silent.
func (l List) Match(path string, dir bool, steps *int) Verdict {
	last := path[strings.LastIndexByte(path, '/')+1:]
	for i := range slices.Backward(l.rules) {
		r, name := &l.rules[i], path
		if r.base {
			name = last
		}
		if *steps--; *steps < 0 {
			return Silent
		}
		if r.dirOnly && !dir || !r.names(name, steps) {
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

func (r *rule) names(path string, steps *int) bool {
	rest, ok := strings.CutPrefix(path, r.literal)
	if !ok || r.ends {
		return ok && strings.HasSuffix(rest, r.tail)
	}
	return match(r, rest, steps)
}
