// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"strconv"
	"strings"
)

// tomlItem is one line's worth of TOML: a header, a pair or a comment. A value
// may go over several lines; what is inside it is none.
type tomlItem struct {
	kind       byte     // '[' for a table, 'a' for one of an array, '=', '#'
	path       []string // from the root, for a comment nil
	start, end int      // end is behind the value or the header, before a comment
	value      any      // of a pair: a string, a []any, a map[string]any, or nil for anything else
	text       string   // of a comment, with its sign
}

// scanner reads TOML as far as an editor has to: where its parts are. It takes
// numbers and dates for words.
type scanner struct {
	src   string
	at    int
	table []string
	items []tomlItem
	prob  *problem
}

// scanTOML returns the parts of the text in order.
func scanTOML(src string) ([]tomlItem, *problem) {
	s := &scanner{src: src}
	for i := range len(src) {
		c := src[i]
		if c < 0x20 && c != '\t' && c != '\n' && (c != '\r' || i+1 == len(src) || src[i+1] != '\n') || c == 0x7f {
			return nil, wrong(i, "a control character")
		}
	}
	for s.prob == nil && s.at < len(src) {
		s.line()
	}
	return s.items, s.prob
}

func (s *scanner) fail(text string) {
	if s.prob == nil {
		s.prob = wrong(s.at, "%s", text)
	}
}

func (s *scanner) peek() byte {
	if s.at < len(s.src) {
		return s.src[s.at]
	}
	return 0
}

func (s *scanner) take(text string) bool {
	if strings.HasPrefix(s.src[s.at:], text) {
		s.at += len(text)
		return true
	}
	return false
}

func (s *scanner) blanks() {
	for c := s.peek(); c == ' ' || c == '\t'; c = s.peek() {
		s.at++
	}
}

// space skips white space, line ends and comments within a value.
func (s *scanner) space() {
	for s.at < len(s.src) {
		switch s.peek() {
		case ' ', '\t', '\r', '\n':
			s.at++
		case '#':
			s.comment()
		default:
			return
		}
	}
}

// comment goes to the end of the line.
func (s *scanner) comment() {
	if n := strings.IndexByte(s.src[s.at:], '\n'); n >= 0 {
		s.at += n
	} else {
		s.at = len(s.src)
	}
}

// line reads one statement and the end of its line.
func (s *scanner) line() {
	s.blanks()
	start := s.at
	switch s.peek() {
	case 0, '\r', '\n', '#':
	case '[':
		s.header(start)
	default:
		path := s.key()
		if s.prob == nil && !s.take("=") {
			s.fail("a key without =")
		}
		s.blanks()
		value := s.value(0)
		full := append(append([]string{}, s.table...), path...)
		s.items = append(s.items, tomlItem{kind: '=', path: full, start: start, end: s.at, value: value})
	}
	s.blanks()
	if s.prob == nil && s.peek() == '#' {
		at := s.at
		s.comment()
		s.items = append(s.items, tomlItem{kind: '#', start: at, end: s.at, text: strings.TrimSuffix(s.src[at:s.at], "\r")})
	}
	if s.prob == nil && !s.take("\n") && !s.take("\r\n") && s.at < len(s.src) {
		s.fail("the end of the line is missing")
	}
}

func (s *scanner) header(start int) {
	s.at++
	kind, end := byte('['), "]"
	if s.peek() == '[' {
		s.at++
		kind, end = 'a', "]]"
	}
	s.table = s.key()
	if s.prob == nil && !s.take(end) {
		s.fail("a table's name without " + end)
	}
	s.items = append(s.items, tomlItem{kind: kind, path: s.table, start: start, end: s.at})
}

// maxParts bounds a key, which each line of its table repeats.
const maxParts = 64

// key reads a dotted key and the blanks around it.
func (s *scanner) key() (path []string) {
	for s.prob == nil {
		s.blanks()
		switch s.peek() {
		case '"', '\'':
			if q := s.src[s.at:]; strings.HasPrefix(q, `"""`) || strings.HasPrefix(q, "'''") {
				s.fail("a key over several lines")
			}
			path = append(path, s.quoted())
		default:
			start := s.at
			for isBare(s.peek()) {
				s.at++
			}
			if s.at == start {
				s.fail("a key is missing")
			}
			path = append(path, s.src[start:s.at])
		}
		if len(path) > maxParts {
			s.fail("a key of too many parts")
		}
		s.blanks()
		if !s.take(".") {
			return path
		}
	}
	return path
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// quoted reads a string of one line.
func (s *scanner) quoted() string {
	start, quote := s.at, s.peek()
	for s.at++; s.prob == nil; s.at++ {
		switch c := s.peek(); {
		case c == 0 || c == '\n':
			s.at = start
			s.fail("a string without an end")
		case c == '\\' && quote == '"':
			s.at++
		case c == quote:
			s.at++
			text := s.src[start+1 : s.at-1]
			if quote == '\'' {
				return text
			}
			return s.unescape(start, text)
		}
	}
	return ""
}

// unescape reads the escapes of a basic string.
func (s *scanner) unescape(start int, text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		if j := strings.IndexByte(`btnfre"\`, text[i]); j >= 0 {
			b.WriteByte("\b\t\n\f\r\x1b\"\\"[j])
			continue
		}
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[i]]
		if digits == 0 || i+digits >= len(text) {
			s.at = start
			s.fail("a string with an escape that is none")
			return ""
		}
		n, err := strconv.ParseUint(text[i+1:i+1+digits], 16, 32)
		if err != nil {
			s.at = start
			s.fail("a string with an escape that is none")
			return ""
		}
		b.WriteRune(rune(n)) //nolint:gosec // what is no code point becomes U+FFFD
		i += digits
	}
	return b.String()
}

// value reads a value of any kind.
func (s *scanner) value(depth int) any {
	if depth > maxDepth {
		s.fail("it is nested too deep")
	}
	switch c := s.peek(); {
	case s.prob != nil:
		return nil
	case strings.HasPrefix(s.src[s.at:], `"""`) || strings.HasPrefix(s.src[s.at:], "'''"):
		s.long(s.src[s.at : s.at+3])
		return nil
	case c == '"' || c == '\'':
		return s.quoted()
	case c == '[':
		return s.array(depth)
	case c == '{':
		return s.inline(depth)
	}
	s.word()
	return nil
}

// long reads a string over several lines; up to two quotes more may stand
// before its end.
func (s *scanner) long(quotes string) {
	start := s.at
	for s.at += 3; s.at < len(s.src); s.at++ {
		if s.src[s.at] == '\\' && quotes[0] == '"' {
			s.at++
			continue
		}
		if strings.HasPrefix(s.src[s.at:], quotes) {
			s.at += 3
			for n := 0; n < 2 && s.peek() == quotes[0]; n++ {
				s.at++
			}
			return
		}
	}
	s.at = start
	s.fail("a string without an end")
}

func (s *scanner) array(depth int) any {
	all := []any{}
	start := s.at
	for s.at++; s.prob == nil; {
		s.space()
		if s.take("]") {
			return all
		}
		if s.at >= len(s.src) {
			s.at = start
			s.fail("a list without an end")
		}
		all = append(all, s.value(depth+1))
		s.space()
		if !s.take(",") && s.peek() != ']' {
			s.fail("a comma or the end of the list is missing")
		}
	}
	return nil
}

func (s *scanner) inline(depth int) any {
	all := map[string]any{}
	start := s.at
	for s.at++; s.prob == nil; {
		s.space()
		if s.take("}") {
			return all
		}
		if s.at >= len(s.src) {
			s.at = start
			s.fail("a table without an end")
		}
		path := s.key()
		if s.prob == nil && !s.take("=") {
			s.fail("a key without =")
		}
		s.space()
		if v := s.value(depth + 1); s.prob == nil {
			put(all, path, v)
		}
		s.space()
		if !s.take(",") && s.peek() != '}' {
			s.fail("a comma or the end of the table is missing")
		}
	}
	return nil
}

// word reads a number, a date or a boolean. Between date and time a blank may
// stand for the T.
func (s *scanner) word() {
	start := s.at
	for c := s.peek(); isBare(c) || c == '+' || c == '.' || c == ':'; c = s.peek() {
		s.at++
	}
	if s.at == start {
		s.fail("a value is missing")
	}
	digit := func(i int) bool { return i < len(s.src) && s.src[i] >= '0' && s.src[i] <= '9' }
	if s.at-start == len("2006-01-02") && s.src[start+4] == '-' && s.peek() == ' ' && digit(s.at+1) {
		s.at++
		s.word()
	}
}
