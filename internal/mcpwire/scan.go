// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
)

// MaxDepth is how deep objects and arrays may nest; what MCP defines stays
// below ten, and arguments that go deeper are an attack on some decoder.
const MaxDepth = 128

// level says which keys of an object count as equal.
type level uint8

const (
	exact    level = iota // the same characters
	envelope              // also under case folding, as below
	params
	guarded
)

// below returns the level of the value of key.
func (l level) below(key []byte) level {
	switch {
	case l == envelope && string(key) == "params":
		return params
	case l == params && (string(key) == "arguments" || string(key) == "_meta"):
		return guarded
	}
	return exact
}

// scanner walks over JSON text. A violation of the grammar ends it; a flaw in
// well-formed text is noted and the walk goes on, so that the id is found.
type scanner struct {
	b     []byte
	i     int
	depth int
	keys  [][]byte // the keys of the objects that are open, unescaped
	flaw  string   // the first flaw
	bad   string   // what is wrong with the grammar
}

func (s *scanner) fail(what string) bool {
	s.bad = what
	return false
}

func (s *scanner) note(flaw string) {
	if s.flaw == "" {
		s.flaw = flaw
	}
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\t' || s.b[s.i] == '\r' || s.b[s.i] == '\n') {
		s.i++
	}
}

// peek returns the next byte after white space, 0 at the end.
func (s *scanner) peek() byte {
	s.space()
	if s.i == len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *scanner) value(l level) bool {
	switch c := s.peek(); c {
	case '{':
		return s.object(l, nil)
	case '[':
		return s.array(nil)
	case '"':
		_, _, ok := s.text()
		return ok
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

const noValue = "a value is neither an object, array, string, number, true, false nor null"

func (s *scanner) literal(word string) bool {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.fail(noValue)
	}
	s.i += len(word)
	return true
}

// enter counts one level of nesting.
func (s *scanner) enter() bool {
	s.i++
	if s.depth++; s.depth > MaxDepth {
		s.note("it nests deeper than the limit")
		return false
	}
	return true
}

func (s *scanner) leave() bool {
	s.i++
	s.depth--
	return true
}

// object walks over an object; visit, if any, gets each unescaped key and the
// value's own bytes.
func (s *scanner) object(l level, visit func(key, value []byte)) bool {
	if !s.enter() {
		return false
	}
	open := keySet{fold: l != exact, from: len(s.keys)}
	if s.peek() == '}' {
		return s.leave()
	}
	for {
		if s.peek() != '"' {
			return s.fail("a key is not a string")
		}
		key, escaped, ok := s.text()
		if !ok {
			return false
		}
		if escaped {
			key = unescape(key)
		}
		if !open.add(s, key) {
			s.note("the key " + strconv.Quote(string(key[:min(len(key), maxShown)])) + " repeats another one of its object")
		}
		if s.peek() != ':' {
			return s.fail("a colon is missing")
		}
		s.i++
		s.space()
		start := s.i
		if !s.value(l.below(key)) {
			return false
		}
		if visit != nil {
			visit(key, s.b[start:s.i:s.i])
		}
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.keys = s.keys[:open.from]
			return s.leave()
		default:
			return s.fail("an object is not closed")
		}
	}
}

func (s *scanner) array(visit func(value []byte)) bool {
	if !s.enter() {
		return false
	}
	if s.peek() == ']' {
		return s.leave()
	}
	for {
		s.space()
		start := s.i
		if !s.value(exact) {
			return false
		}
		if visit != nil {
			visit(s.b[start:s.i:s.i])
		}
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			return s.leave()
		default:
			return s.fail("an array is not closed")
		}
	}
}

func (s *scanner) digits() bool {
	start := s.i
	for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > start
}

func (s *scanner) accept(chars string) bool {
	if s.i < len(s.b) && bytes.IndexByte([]byte(chars), s.b[s.i]) >= 0 {
		s.i++
		return true
	}
	return false
}

func (s *scanner) number() bool {
	start := s.i
	s.accept("-")
	if !s.accept("0") && !s.digits() {
		if s.i == start {
			return s.fail(noValue)
		}
		return s.fail("a number is malformed")
	}
	if s.accept(".") && !s.digits() {
		return s.fail("a number is malformed")
	}
	if s.accept("eE") {
		s.accept("+-")
		if !s.digits() {
			return s.fail("a number is malformed")
		}
	}
	return true
}

// text walks over a string and returns what is between the quotes.
func (s *scanner) text() (raw []byte, escaped, ok bool) {
	s.i++
	for start := s.i; ; {
		s.i = skipText(s.b, s.i)
		switch {
		case s.i == len(s.b):
			return nil, false, s.fail("a string is not closed")
		case s.b[s.i] == '"':
			s.i++
			return s.b[start : s.i-1], escaped, true
		case s.b[s.i] != '\\':
			return nil, false, s.fail("a string holds a raw control character")
		}
		escaped = true
		if !s.escape() {
			return nil, false, s.fail("a string holds an unknown escape")
		}
	}
}

func (s *scanner) escape() bool {
	s.i++
	if s.accept(`"\/bfnrt`) {
		return true
	}
	unit, ok := hex4(s.b[s.i:])
	if !ok {
		return false
	}
	s.i += 5
	switch {
	case unit >= 0xDC00 && unit <= 0xDFFF:
		s.note("a string holds a lone surrogate")
	case unit >= 0xD800 && unit <= 0xDBFF:
		if !s.lowSurrogate() {
			s.note("a string holds a lone surrogate")
			return true
		}
		s.i += 6
	}
	return true
}

// lowSurrogate reports whether the escape of a second half comes next.
func (s *scanner) lowSurrogate() bool {
	if s.i == len(s.b) || s.b[s.i] != '\\' {
		return false
	}
	unit, ok := hex4(s.b[s.i+1:])
	return ok && unit >= 0xDC00 && unit <= 0xDFFF
}

// hex4 reads u and four hexadecimal digits.
func hex4(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range b[1:5] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// fewKeys is up to how many keys each new one is compared with all others;
// beyond that a map keeps the cost linear.
const fewKeys = 16

// keySet finds keys of one object that count as equal.
type keySet struct {
	fold bool
	from int // where the object's keys begin in scanner.keys
	seen map[string]struct{}
}

// maxShown is how many bytes of a key an error shows.
const maxShown = 64

// add reports whether key equals no earlier one.
func (k *keySet) add(s *scanner, key []byte) bool {
	if k.seen == nil {
		for _, other := range s.keys[k.from:] {
			if bytes.Equal(key, other) || k.fold && equalFold(key, other) {
				return false
			}
		}
		s.keys = append(s.keys, key)
		if len(s.keys)-k.from > fewKeys {
			k.seen = make(map[string]struct{}, 2*fewKeys)
			for _, other := range s.keys[k.from:] {
				k.seen[k.norm(other)] = struct{}{}
			}
		}
		return true
	}
	name := k.norm(key)
	if _, found := k.seen[name]; found {
		return false
	}
	k.seen[name] = struct{}{}
	return true
}

func (k *keySet) norm(key []byte) string {
	if k.fold {
		return foldKey(key)
	}
	return string(key)
}

// equalFold reports whether two keys are equal under full Unicode case
// folding, where U+017F equals s and U+212A equals k.
func equalFold(a, b []byte) bool {
	if isASCII(a) && isASCII(b) {
		return len(a) == len(b) && bytes.EqualFold(a, b)
	}
	return foldKey(a) == foldKey(b)
}

// foldKey folds fully (a sharp s is ss), then maps each character to the least
// of those it is simply equal to: the tables of full folding leave out pairs,
// such as those of Cherokee, that other decoders take for equal.
func foldKey(key []byte) string {
	if isASCII(key) {
		return string(bytes.ToUpper(key))
	}
	return string(bytes.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, cases.Fold().Bytes(key)))
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
