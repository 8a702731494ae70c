// SPDX-License-Identifier: Apache-2.0

package grep

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
)

// Limits of a query. A few bytes of one may stand for many steps.
const (
	maxQuery = 1024 // bytes
	maxSteps = 1000
)

// Query is a compiled expression. It may be used by several goroutines.
type Query struct {
	// needed is in every match; all says that it is the whole of one.
	needed []byte
	all    bool
	re     *regexp.Regexp // nil if all
}

// Compile compiles an RE2 expression, or plain text if literal is set. A query
// that is no expression is refused with the place.
func Compile(query string, literal, anyCase bool) (*Query, error) {
	switch {
	case query == "":
		return nil, refused("is empty", "")
	case len(query) > maxQuery:
		return nil, refused("is longer than 1024 bytes", "")
	}
	flags := syntax.Perl &^ syntax.OneLine
	if literal {
		flags |= syntax.Literal
	}
	if anyCase {
		flags |= syntax.FoldCase
	}
	parsed, err := syntax.Parse(query, flags)
	if err != nil {
		return nil, mistake(query, err)
	}
	if steps(parsed) > maxSteps {
		return nil, refused("stands for more than 1000 steps", "use smaller counts")
	}
	parsed, ok := withinLine(parsed)
	if !ok {
		return nil, refused("asks for a line feed, and lines are searched one by one", "search for what is on one line")
	}
	q := &Query{needed: []byte(needed(parsed))}
	if q.all = parsed.Op == syntax.OpLiteral && len(q.needed) > 0; q.all {
		return q, nil
	}
	if q.re, err = regexp.Compile(parsed.String()); err != nil {
		return nil, mistake(query, err)
	}
	return q, nil
}

func refused(what, hint string) *fault.Error {
	if hint == "" {
		hint = "send an RE2 expression, or plain text with literal: true"
	}
	return &fault.Error{Code: fault.RequestInvalid, Rule: "the query " + what, Hint: hint}
}

// mistake tells what is wrong with an expression and where.
func mistake(query string, err error) error {
	var e *syntax.Error
	if !errors.As(err, &e) {
		return refused("is no RE2 expression", "")
	}
	at := strings.LastIndex(query, e.Expr)
	if e.Expr == "" || at < 0 {
		at = len(query) - 1
	}
	character := utf8.RuneCountInString(query[:at]) + 1
	return refused("is no RE2 expression: "+e.Code.String()+" at character "+strconv.Itoa(character), "")
}

// steps is about how many instructions an expression compiles to.
func steps(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if n += steps(sub); n > maxSteps {
			return n
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// withinLine changes an expression so that it matches in a text of many lines
// what it matches in each line alone. It is false for one that no line matches.
func withinLine(re *syntax.Regexp) (*syntax.Regexp, bool) {
	switch re.Op {
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText, syntax.OpEndLine:
		end := &syntax.Regexp{Op: syntax.OpEndLine}
		cr := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{{Op: syntax.OpQuest, Sub: []*syntax.Regexp{cr}}, end}}, true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			if r == '\n' {
				return nil, false
			}
		}
	case syntax.OpCharClass:
		re.Rune = withoutLineFeed(re.Rune)
		return re, len(re.Rune) > 0
	default:
	}
	for i, sub := range re.Sub {
		var ok bool
		if re.Sub[i], ok = withinLine(sub); !ok {
			return nil, false
		}
	}
	return re, true
}

// withoutLineFeed takes the line feed out of the ranges of a class.
func withoutLineFeed(ranges []rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if low > '\n' || high < '\n' {
			out = append(out, low, high)
			continue
		}
		if low < '\n' {
			out = append(out, low, '\n'-1)
		}
		if high > '\n' {
			out = append(out, '\n'+1, high)
		}
	}
	return out
}

// needed is the longest text that is known to be in every match, "" for none.
func needed(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 || strings.ContainsRune(text, utf8.RuneError) {
			return "" // that rune stands for any byte that isn't UTF-8
		}
		return text
	case syntax.OpCapture, syntax.OpPlus:
		return needed(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needed(re.Sub[0])
		}
	case syntax.OpConcat:
		longest := ""
		for _, sub := range re.Sub {
			if text := needed(sub); len(text) > len(longest) {
				longest = text
			}
		}
		return longest
	default:
	}
	return ""
}

// find returns where the first match in b lies, -1 for none. b is whole lines.
func (q *Query) find(b []byte) (from, to int) {
	if len(q.needed) == 0 {
		if loc := q.re.FindIndex(b); loc != nil {
			return loc[0], loc[1]
		}
		return -1, -1
	}
	for at := 0; ; {
		i := bytes.Index(b[at:], q.needed)
		if i < 0 {
			return -1, -1
		}
		i += at
		if q.all {
			return i, i + len(q.needed)
		}
		begin, end := lineOf(b, i)
		if loc := q.re.FindIndex(b[begin:end]); loc != nil {
			return begin + loc[0], begin + loc[1]
		}
		at = end
	}
}

// lineOf is the line that holds position i, without its line feed.
func lineOf(b []byte, i int) (begin, end int) {
	begin = bytes.LastIndexByte(b[:i], '\n') + 1
	if end = bytes.IndexByte(b[i:], '\n'); end < 0 {
		return begin, len(b)
	}
	return begin, i + end
}
