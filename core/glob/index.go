// SPDX-License-Identifier: Apache-2.0

package glob

// Index finds the first of many patterns that matches, without comparing
// most of them: a pattern with a literal segment can only match a name that
// has this segment, and one with a literal start or end of a segment only a
// name with a segment of that first or last byte. Its zero value is empty.
type Index struct {
	patterns []Pattern
	beneath  bool
	narrow   bool // the tables below are in use
	literal  map[string][]int
	first    map[byte][]int
	last     map[byte][]int
	rest     []int
	// Which bytes the keys of the tables start (or end) with: most segments of
	// a name need no lookup.
	hasLiteral, hasFirst, hasLast letters
}

const (
	// linear is the number of patterns up to which comparing all is faster.
	linear = 8
	// maxLiteral bounds the buffer in which a segment is lowered.
	maxLiteral = 64
)

// NewIndex returns an index over patterns, all of them made by Compile or all
// by CompileFolded, which it keeps. Beneath says that a pattern also matches
// what lies below what it names.
func NewIndex(patterns []Pattern, beneath bool) Index {
	x := Index{patterns: patterns, beneath: beneath, narrow: len(patterns) > linear}
	if !x.narrow {
		return x
	}
	x.literal, x.first, x.last = map[string][]int{}, map[byte][]int{}, map[byte][]int{}
	for i, p := range patterns {
		x.add(i, p)
	}
	return x
}

func (x *Index) add(i int, p Pattern) {
	segs := p.exact
	if p.folded != nil {
		segs = p.folded
	}
	if p.negated && p.folded != nil { // its two readings may need different segments
		x.rest = append(x.rest, i)
		return
	}
	var literal, prefix, suffix string
	for _, s := range segs {
		switch {
		case s.tokens == nil && len(s.lit) <= maxLiteral && len(s.lit) > len(literal):
			literal = s.lit
		case s.tokens != nil && s.tokens[0].kind == tokenLiteral:
			prefix = s.tokens[0].lit
		case s.suffix != "":
			suffix = s.suffix
		}
	}
	switch {
	case literal != "":
		x.literal[literal] = append(x.literal[literal], i)
		x.hasLiteral |= letter(literal[0])
	case prefix != "":
		x.first[prefix[0]] = append(x.first[prefix[0]], i)
		x.hasFirst |= letter(prefix[0])
	case suffix != "":
		end := suffix[len(suffix)-1]
		x.last[end] = append(x.last[end], i)
		x.hasLast |= letter(end)
	default:
		x.rest = append(x.rest, i)
	}
}

// Len returns the number of patterns.
func (x *Index) Len() int { return len(x.patterns) }

// Matches reports whether pattern i matches path.
func (x *Index) Matches(i int, path Path) bool { return x.patterns[i].match(&path, x.beneath) }

// First returns the lowest i whose pattern matches path and which keep
// accepts, or -1. It does not allocate.
func (x *Index) First(path Path, keep func(i int) bool) int {
	s := search{index: x, path: path, keep: keep, best: len(x.patterns)}
	folded := len(x.patterns) > 0 && x.patterns[0].folded != nil
	if !x.narrow || folded && !path.plain {
		for i := range x.patterns {
			s.try(i)
		}
		return s.found()
	}
	name, lower := path.name, false
	if folded {
		name, lower = path.key, path.lower
	}
	s.list(x.rest)
	for pos := 0; pos < len(name); {
		end := segmentEnd(name, pos)
		s.segment(name[pos:end], lower)
		pos = end + 1
	}
	return s.found()
}

type search struct {
	index *Index
	path  Path
	keep  func(int) bool
	best  int
}

func (s *search) found() int {
	if s.best == len(s.index.patterns) {
		return -1
	}
	return s.best
}

func (s *search) try(i int) {
	if i >= s.best || s.index.patterns[i].need&^s.path.has != 0 {
		return
	}
	if s.keep(i) && s.index.patterns[i].match(&s.path, s.index.beneath) {
		s.best = i
	}
}

func (s *search) list(ids []int) {
	for _, i := range ids {
		s.try(i)
	}
}

// segment tries the patterns that this segment of the name can satisfy.
func (s *search) segment(seg string, lower bool) {
	if seg == "" {
		return
	}
	x, head, tail := s.index, seg[0], seg[len(seg)-1]
	if x.hasFirst&letter(head) != 0 {
		s.list(x.first[asciiLower(head, lower)])
	}
	if x.hasLast&letter(tail) != 0 {
		s.list(x.last[asciiLower(tail, lower)])
	}
	if x.hasLiteral&letter(head) == 0 || len(seg) > maxLiteral {
		return
	}
	if !lower {
		s.list(x.literal[seg])
		return
	}
	var buf [maxLiteral]byte
	for i := range len(seg) {
		buf[i] = asciiLower(seg[i], lower)
	}
	s.list(x.literal[string(buf[:len(seg)])])
}

func asciiLower(c byte, lower bool) byte {
	if lower && 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
