// SPDX-License-Identifier: Apache-2.0

package ignore

import "strings"

// classes are the named ones, for the ASCII bytes that git knows in them.
var classes = map[string][][2]byte{
	"alnum": {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, "alpha": {{'A', 'Z'}, {'a', 'z'}}, "blank": {{' ', ' '}, {'\t', '\t'}},
	"cntrl": {{0, 0x1f}, {0x7f, 0x7f}}, "digit": {{'0', '9'}}, "graph": {{0x21, 0x7e}}, "lower": {{'a', 'z'}},
	"print": {{0x20, 0x7e}}, "punct": {{0x21, 0x2f}, {0x3a, 0x40}, {0x5b, 0x60}, {0x7b, 0x7e}},
	"space": {{'\t', '\r'}, {' ', ' '}}, "upper": {{'A', 'Z'}}, "xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}

// class reads a set in brackets whose first byte is at i. It is nil where the
// set isn't closed or names a class that there is not: then the pattern names
// nothing.
func class(s string, i int) (members *set, end int) {
	r := classReader{s: s, i: i}
	negated := i < len(s) && (s[i] == '!' || s[i] == '^')
	if negated {
		r.i++
	}
	for first := true; ; first = false {
		c, ok := r.next()
		if !ok {
			return nil, 0
		}
		if c == ']' && !first {
			break
		}
		if !r.member(c) {
			return nil, 0
		}
	}
	if negated {
		for n := range r.set {
			r.set[n] = ^r.set[n]
		}
	}
	r.set['/'>>6] &^= 1 << ('/' & 63)
	return &r.set, r.i
}

type classReader struct {
	s    string
	i    int
	set  set
	last byte // what a range may begin with, 0 for nothing
}

func (r *classReader) next() (c byte, ok bool) {
	if r.i >= len(r.s) {
		return 0, false
	}
	r.i++
	return r.s[r.i-1], true
}

// member takes what c begins into the set.
func (r *classReader) member(c byte) (ok bool) {
	rest := r.s[r.i:]
	switch {
	case c == '\\':
		if c, ok = r.next(); !ok {
			return false
		}
	case c == '-' && r.last != 0 && rest != "" && rest[0] != ']':
		return r.span()
	case c == '[' && strings.HasPrefix(rest, ":"):
		name, _, closed := strings.Cut(rest[1:], "]")
		if !closed {
			return false
		}
		if name, ok = strings.CutSuffix(name, ":"); ok {
			return r.named(name)
		}
	}
	r.set.add(c, c)
	r.last = c
	return true
}

// span is a range that began with the member before.
func (r *classReader) span() bool {
	high, _ := r.next() // there is one
	if high == '\\' {
		var ok bool
		if high, ok = r.next(); !ok {
			return false
		}
	}
	r.set.add(r.last, high)
	r.last = 0
	return true
}

func (r *classReader) named(name string) bool {
	ranges, known := classes[name]
	for _, b := range ranges {
		r.set.add(b[0], b[1])
	}
	r.i += len(name) + len(":") + len(":]")
	r.last = 0
	return known
}
