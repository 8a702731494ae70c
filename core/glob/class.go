// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is the inside of [..]. A folded class holds a character when any of
// its case variants is listed; a negated one when none is.
type class struct {
	negated bool
	folded  bool
	ranges  []runeRange
}

type runeRange struct{ lo, hi rune }

// parseClass reads the class that s starts with and returns its length. A
// slash can't be inside: the pattern is already split into segments.
func parseClass(s string) (class, int, string) {
	const unclosed = `a [ without its ]: write \[ for the character itself`
	var c class
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		c.negated = true
		i++
	}
	for {
		switch {
		case i >= len(s):
			return class{}, 0, unclosed
		case s[i] == ']' && len(c.ranges) == 0:
			return class{}, 0, `an empty class: write \] for the character itself`
		case s[i] == ']':
			return c, i + 1, ""
		case strings.HasPrefix(s[i:], "[:"):
			return class{}, 0, "named classes are not supported: write the range"
		}
		r, size, ok := classItem(s[i:])
		if !ok {
			return class{}, 0, unclosed
		}
		if r.lo > r.hi {
			return class{}, 0, "a range that runs backwards holds nothing"
		}
		c.ranges = append(c.ranges, r)
		i += size
	}
}

// classItem reads one character or range; a - that is first or last is itself.
func classItem(s string) (runeRange, int, bool) {
	lo, size := classRune(s)
	if size == 0 {
		return runeRange{}, 0, false
	}
	rest := s[size:]
	if !strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "-]") {
		return runeRange{lo, lo}, size, true
	}
	hi, more := classRune(rest[1:])
	return runeRange{lo, hi}, size + 1 + more, more > 0
}

func classRune(s string) (rune, int) {
	if !strings.HasPrefix(s, `\`) {
		return decode(s)
	}
	r, size := decode(s[1:])
	if size == 0 {
		return 0, 0
	}
	return r, size + 1
}

func decode(s string) (rune, int) {
	if s == "" {
		return 0, 0
	}
	return utf8.DecodeRuneInString(s)
}

// fold returns the class for comparison with keys.
func (c class) fold() class {
	f := class{negated: c.negated, folded: true, ranges: append([]runeRange(nil), c.ranges...)}
	for _, r := range c.ranges {
		if key := []rune(Key(string(r.lo))); r.lo == r.hi && len(key) == 1 {
			f.ranges = append(f.ranges, runeRange{key[0], key[0]})
		}
	}
	return f
}

func (c *class) holds(r rune) bool {
	in := c.lists(r)
	if c.folded {
		for v := unicode.SimpleFold(r); v != r && !in; v = unicode.SimpleFold(v) {
			in = c.lists(v)
		}
	}
	return in != c.negated
}

func (c *class) lists(r rune) bool {
	for _, x := range c.ranges {
		if x.lo <= r && r <= x.hi {
			return true
		}
	}
	return false
}
