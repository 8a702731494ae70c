// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"strings"
	"unicode/utf8"
)

// Path is a name prepared for comparison with many patterns. Its zero value
// is the root itself.
type Path struct {
	name string
	key  string
	// lower: key is an ASCII name whose capitals are lowered while comparing,
	// which spares the copy.
	lower bool
	// plain: a pattern that matches the name byte for byte also matches the
	// key, so that one comparison is enough.
	plain bool
	has   sieve
}

// sieve is which bytes a name has, at all, first in a segment, last in one. A
// pattern whose literals have another byte there can't match: three words
// spare nearly every comparison, so that a thousand patterns need no index.
type sieve struct{ any, head, tail uint64 }

// bit gives the bytes of names a bit each, capitals that of small letters, and
// lets only rare ones share: the offset keeps letters off digits and dots.
func bit(c byte) uint64 {
	c = asciiLower(c)
	return 1 << ((c + c>>6*27) & 63)
}

func bits(s string) (all uint64) {
	for i := range len(s) {
		all |= bit(s[i])
	}
	return all
}

func (s *sieve) within(x *sieve) bool {
	return s.any&^x.any|s.head&^x.head|s.tail&^x.tail == 0
}

// sieveOf returns what name has.
func sieveOf(name string) (s sieve) {
	for i := range len(name) {
		b := bit(name[i])
		s.any |= b
		if i == 0 || name[i-1] == '/' {
			s.head |= b
		}
		if i+1 == len(name) || name[i+1] == '/' {
			s.tail |= b
		}
	}
	return s
}

// need returns what every name has that these segments match.
func need(segs []segment) (s sieve) {
	for _, seg := range segs {
		head, tail := seg.lit, seg.lit
		if seg.tokens != nil {
			head, tail = seg.tokens[0].lit, seg.suffix
		}
		for _, t := range seg.tokens {
			s.any |= bits(t.lit)
		}
		s.any |= bits(seg.lit)
		if head != "" {
			s.head |= bit(head[0])
		}
		if tail != "" {
			s.tail |= bit(tail[len(tail)-1])
		}
	}
	return s
}

// Prepare returns name ready for comparison. It allocates only for names
// outside ASCII and for those that Windows would trim.
func Prepare(name string) Path {
	switch scan(name) {
	case keyed:
		return Path{name: name, key: name, plain: true, has: sieveOf(name)}
	case capital:
		return Path{name: name, key: name, lower: true, plain: true, has: sieveOf(name)}
	default: // a match by bytes and one by key may need different bytes
		return Path{name: name, key: Key(name), has: sieve{^uint64(0), ^uint64(0), ^uint64(0)}}
	}
}

// Below returns what the path is below dir, which is a key: so in every spelling of
// dir. "" is above all.
func (p *Path) Below(dir string) (string, bool) {
	switch {
	case dir == "":
		return p.name, true
	case len(p.key) < len(dir), len(p.key) > len(dir) && p.key[len(dir)] != '/', !hasPrefix(p.key, dir, p.lower):
		return "", false
	}
	end := -1 // a key has as many segments as the name, but not its length
	for range strings.Count(dir, "/") + 1 {
		end = segmentEnd(p.name, end+1)
	}
	return strings.TrimPrefix(p.name[end:], "/"), true
}

// Match reports whether the pattern names path.
func (p Pattern) Match(path string) bool {
	prepared := Prepare(path)
	return p.Matches(&prepared, false)
}

// MatchBeneath reports whether the pattern names path or a folder above it,
// the root included.
func (p Pattern) MatchBeneath(path string) bool {
	prepared := Prepare(path)
	return p.Matches(&prepared, true)
}

// Matches is Match for a prepared path, or MatchBeneath.
func (p *Pattern) Matches(path *Path, beneath bool) bool {
	return p.need.within(&path.has) && p.match(path, beneath)
}

func (p *Pattern) match(path *Path, beneath bool) bool {
	switch {
	case p.exact == nil:
		return false
	case p.folded == nil:
		return matchPath(p.exact, path.name, false, beneath)
	case matchPath(p.folded, path.key, path.lower, beneath):
		return true
	default:
		return (p.negated || !path.plain) && matchPath(p.exact, path.name, false, beneath)
	}
}

// matchPath compares segment by segment; a mismatch after a ** lets the last
// ** take one segment more, and earlier ones never need another try, so each
// pair of segments is compared once at most.
func matchPath(segs []segment, path string, lower, beneath bool) bool {
	end := len(path) + 1 // past the last segment
	pos, pi := 0, 0
	if path == "" {
		pos = end
	}
	star, starPos := -1, 0
	for {
		if pi == len(segs) {
			if beneath || pos == end {
				return true
			}
		} else if segs[pi].double {
			star, starPos = pi, pos
			pi++
			if pi == len(segs) {
				return true
			}
			continue
		} else if pos < end {
			next := segmentEnd(path, pos)
			if segs[pi].match(path[pos:next], lower) {
				pi, pos = pi+1, next+1
				continue
			}
		}
		if star < 0 || starPos >= end {
			return false
		}
		starPos = segmentEnd(path, starPos) + 1
		pi, pos = star+1, starPos
	}
}

func segmentEnd(path string, from int) int {
	if i := strings.IndexByte(path[from:], '/'); i >= 0 {
		return from + i
	}
	return len(path)
}

func (s *segment) match(name string, lower bool) bool {
	switch {
	case s.tokens == nil:
		return len(s.lit) == len(name) && hasPrefix(name, s.lit, lower)
	case name == "": // the start of an absolute path is no segment to guess
		return false
	case len(s.suffix) > len(name), !hasPrefix(name[len(name)-len(s.suffix):], s.suffix, lower):
		return false
	}
	return matchTokens(s.tokens, name, lower)
}

func matchTokens(tokens []token, name string, lower bool) bool {
	ti, ni := 0, 0
	star, starN := -1, 0
	for ti < len(tokens) || ni < len(name) {
		if ti < len(tokens) {
			if tokens[ti].kind == tokenStar {
				star, starN = ti, ni
				ti++
				if ti == len(tokens) {
					return true
				}
				continue
			}
			if n := tokens[ti].take(name[ni:], lower); n > 0 {
				ti, ni = ti+1, ni+n
				continue
			}
		}
		if star < 0 || starN >= len(name) {
			return false
		}
		_, size := utf8.DecodeRuneInString(name[starN:])
		starN += size
		ti, ni = star+1, starN
	}
	return true
}

// take returns how many bytes of name the token takes, 0 for a mismatch.
func (t *token) take(name string, lower bool) int {
	if t.kind == tokenLiteral {
		if len(t.lit) <= len(name) && hasPrefix(name, t.lit, lower) {
			return len(t.lit)
		}
		return 0
	}
	r, size := decode(name)
	switch {
	case t.kind == tokenOne || size == 0:
		return size
	case r == utf8.RuneError && size == 1: // a stray byte is no listed character
		r = -1
	case lower && r < utf8.RuneSelf:
		r = rune(asciiLower(byte(r)))
	}
	if t.class.holds(r) {
		return size
	}
	return 0
}

// hasPrefix reports whether name, at least as long as lit, starts with it.
func hasPrefix(name, lit string, lower bool) bool {
	if !lower {
		return name[:len(lit)] == lit
	}
	for i := range len(lit) {
		if asciiLower(name[i]) != lit[i] {
			return false
		}
	}
	return true
}

func asciiLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
