// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"bytes"
	"encoding/base64"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special sets the high bit of some byte of x if one of them is a quote, a
// backslash or a control character; bits beyond the first such byte may be
// wrong, so the caller looks again byte by byte.
func special(x uint64) uint64 {
	quote, slash := x^'"'*ones, x^'\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & highs
}

// skipText returns the first index from i on of a quote, a backslash or a
// control character, or len(b).
func skipText[T []byte | string](b T, i int) int {
	for ; i+8 <= len(b); i += 8 {
		x := uint64(b[i]) | uint64(b[i+1])<<8 | uint64(b[i+2])<<16 | uint64(b[i+3])<<24 |
			uint64(b[i+4])<<32 | uint64(b[i+5])<<40 | uint64(b[i+6])<<48 | uint64(b[i+7])<<56
		if special(x) != 0 {
			break
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}
	return i
}

// unescape decodes what the scanner accepted between two quotes.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for {
		next := bytes.IndexByte(raw, '\\')
		if next < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:next]...)
		c := raw[next+1]
		raw = raw[next+2:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, size := unescapeUnit(raw)
			out = utf8.AppendRune(out, r)
			raw = raw[size:]
		default: // a quote, a slash or a backslash
			out = append(out, c)
		}
	}
}

// unescapeUnit decodes the four digits after \u, and the second half of a
// surrogate pair, and returns how many bytes they took.
func unescapeUnit(raw []byte) (rune, int) {
	r, _ := hex4(append([]byte{'u'}, raw[:4]...))
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(raw) < 10 {
		return utf8.RuneError, 4
	}
	low, _ := hex4(raw[5:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return r, 4
	}
	return r, 10
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string with as few escapes as the grammar
// allows, each byte that isn't UTF-8 as U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = slices.Grow(dst, len(s)+len(s)/32+2)
	dst = append(dst, '"')
	for !utf8.ValidString(s) {
		good := 0
		for r, size := utf8.DecodeRuneInString(s); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRuneInString(s[good:]) {
			good += size
		}
		dst = utf8.AppendRune(appendText(dst, s[:good]), utf8.RuneError)
		s = s[good+1:]
	}
	return append(appendText(dst, s), '"')
}

// appendText appends valid text with its escapes.
func appendText(dst []byte, s string) []byte {
	for {
		next := skipText(s, 0)
		dst = append(dst, s[:next]...)
		if next == len(s) {
			return dst
		}
		dst = appendEscaped(dst, s[next])
		s = s[next+1:]
	}
}

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// TextLen returns how many bytes valid text takes as a JSON string, without the
// quotes; a byte that isn't UTF-8 counts as itself.
func TextLen[T []byte | string](s T) int {
	n := len(s)
	for i := skipText(s, 0); i < len(s); i = skipText(s, i+1) {
		n += escapedLen(s[i]) - 1
	}
	return n
}

// Fit returns the length of the longest beginning of s that takes at most that
// many bytes as a JSON string. It may end within a character.
func Fit[T []byte | string](s T, most int) int {
	at := 0
	for most > 0 && at < len(s) {
		plain := min(skipText(s[at:min(len(s), at+most)], 0), most)
		at, most = at+plain, most-plain
		if plain > 0 || at == len(s) {
			continue
		}
		if most -= escapedLen(s[at]); most >= 0 {
			at++
		}
	}
	return at
}

// FitEnd is Fit for the longest end of s, and returns where that begins.
func FitEnd[T []byte | string](s T, most int) int {
	at := len(s)
	for at > 0 {
		n := 1
		if c := s[at-1]; c < ' ' || c == '"' || c == '\\' {
			n = escapedLen(c)
		}
		if most -= n; most < 0 {
			break
		}
		at--
	}
	return at
}

// escapedLen is how many bytes appendEscaped appends.
func escapedLen(c byte) int {
	switch c {
	case '"', '\\', '\b', '\f', '\n', '\r', '\t':
		return 2
	}
	return 6
}

// AppendBase64 appends data as a JSON string in base64 (RFC 4648, section 4).
func AppendBase64(dst, data []byte) []byte {
	dst = slices.Grow(dst, base64.StdEncoding.EncodedLen(len(data))+2)
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"')
}
