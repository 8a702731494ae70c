// SPDX-License-Identifier: Apache-2.0

package textsafe

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Name returns the name of a file, host or tool as it is drawn: s itself when
// it is a Line already and doesn't begin with a quote, otherwise a JSON string
// literal in which only letters, digits, punctuation and symbols stand for
// themselves. That literal is how a tool's argument spells the name.
//
// A byte that isn't UTF-8 is drawn as \xNN, which JSON refuses: such a name
// can't be spelled in an argument, and no spelling leads to another file.
func Name(s string) string {
	if firstChange(s, false) == len(s) && !strings.HasPrefix(s, `"`) {
		return s
	}
	return literal(s)
}

// Word is Name for a place in a line that is read by its blanks: a name that
// holds one, or nothing at all, is a literal too.
func Word(s string) string {
	if s == "" || strings.ContainsFunc(s, endsWord) {
		return literal(s)
	}
	return Name(s)
}

// endsWord reports whether r is read as the end of a word.
func endsWord(r rune) bool { return unicode.IsSpace(r) || r == 0x2800 }

func literal(s string) string {
	b := make([]byte, 0, len(s)+16)
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, '\\', 'x', hexDigits[s[i]>>4], hexDigits[s[i]&15])
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case drawable(r):
			b = utf8.AppendRune(b, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = appendEscape(appendEscape(b, high), low)
		default:
			b = appendEscape(b, r)
		}
		i += size
	}
	return string(append(b, '"'))
}

const hexDigits = "0123456789abcdef"

func appendEscape(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// drawable reports whether r shows as itself wherever it stands. U+2800 and U+FFFC
// are symbols that look like a blank.
func drawable(r rune) bool {
	return r == ' ' || classify(r) == keep && r != 0x2800 && r != 0xFFFC &&
		unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S)
}
