// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// word is what makes an angle bracket a tag of ours.
const word = "untrusted"

// escaped stands in place of a look-alike's bracket.
const escaped = "&lt;"

// span is the bracket of a look-alike: its offset and its length in bytes.
type span struct{ at, size int }

// scanner finds look-alikes in one pass over the text, without a folded copy.
// Every opening bracket starts it anew and the word holds none, so it never
// goes back and the cost is linear. It can be fed in parts.
type scanner struct {
	state int // 0: idle; 1: after a bracket; 1+n: n letters of the word seen
	open  span
	hits  []span
}

// feed scans text, whose first byte has the offset base.
func (s *scanner) feed(text string, base int) {
	for i := 0; i < len(text); {
		if s.state == 0 {
			if i = nextBracket(text, i); i == len(text) {
				return
			}
		}
		i += s.advance(text[i:], base+i)
	}
}

// advance takes the first code point of text, at offset at, and returns its
// size in bytes.
func (s *scanner) advance(text string, at int) int {
	if c := text[0]; c < utf8.RuneSelf {
		s.step(foldASCII(c), span{at, 1})
		return 1
	}
	r, size := utf8.DecodeRuneInString(text)
	if ignorable(r) {
		return size
	}
	parts := norm.NFKD.PropertiesString(text).Decomposition()
	if len(parts) == 0 {
		s.step(fold(r), span{at, size})
		return size
	}
	for len(parts) > 0 {
		part, n := utf8.DecodeRune(parts)
		s.step(fold(part), span{at, size})
		parts = parts[n:]
	}
	return size
}

// step takes one folded character.
func (s *scanner) step(c byte, at span) {
	switch {
	case c == ignored:
	case c == '<':
		s.state, s.open = 1, at
	case s.state == 0 || s.state == 1 && (c == ' ' || c == '/'):
	case c != word[s.state-1]:
		s.state = 0
	default:
		if s.state++; s.state > len(word) {
			s.hits = append(s.hits, s.open)
			s.state = 0
		}
	}
}

// before returns how many hits lie before the offset end.
func (s *scanner) before(end int) int {
	n := 0
	for n < len(s.hits) && s.hits[n].at < end {
		n++
	}
	return n
}

// nextBracket returns the index of the next character from i on that may fold
// to an opening bracket, or len(text).
func nextBracket(text string, i int) int {
	for i < len(text) {
		if i = skipPlain(text, i); i == len(text) || text[i] == '<' {
			return i
		}
		for ; i < len(text) && text[i] >= utf8.RuneSelf; i++ {
			switch c := text[i]; {
			case c < 0xCB, c > 0xE3 && c < 0xEF:
				continue // no bracket begins with this byte
			case c == 0xE3 && i+1 < len(text) && text[i+1] > 0x80:
				continue // of this block only U+3000 to U+303F has one
			}
			if r, _ := utf8.DecodeRuneInString(text[i:]); bracket(r) {
				return i
			}
		}
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipPlain returns the first index from i on that is '<' or not ASCII, eight
// bytes at a time.
func skipPlain(s string, i int) int {
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		other := x ^ '<'*ones
		if (x|((other-ones)&^other))&highs != 0 {
			break
		}
	}
	for i < len(s) && s[i] < utf8.RuneSelf && s[i] != '<' {
		i++
	}
	return i
}

// escape returns text with the brackets at hits escaped, text itself if there
// are none.
func escape(text string, hits []span, base int) string {
	if len(hits) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(hits)*len(escaped))
	writeEscaped(&b, text, hits, base)
	return b.String()
}

func writeEscaped(b *strings.Builder, text string, hits []span, base int) {
	done := 0
	for _, h := range hits {
		b.WriteString(text[done : h.at-base])
		b.WriteString(escaped)
		done = h.at - base + h.size
	}
	b.WriteString(text[done:])
}

// Escapes counts the places of body that hold the escaped form of a
// look-alike, as Wrap writes it. A content with more of them than the file on
// disk was copied from an envelope, and writing it would damage the file.
func Escapes(body string) int {
	n := 0
	for i := 0; ; {
		next := strings.Index(body[i:], escaped)
		if next < 0 {
			return n
		}
		i += next + len(escaped)
		s := scanner{state: 1, open: span{at: -1}}
		for i < len(body) && s.state > 0 && s.open.at < 0 && body[i] != '&' {
			i += s.advance(body[i:], i)
		}
		n += len(s.hits)
	}
}
