// SPDX-License-Identifier: Apache-2.0

// Package spell draws what is read to be agreed to: nothing in it is invisible.
package spell

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/textsafe"
)

// Out returns s with everything that a reader wouldn't see, or would take for
// a blank, spelled as \u{200b}, and each byte that isn't UTF-8 as \xff: what is
// read to be agreed to. hidden counts what was spelled. With block, tab and
// newline stay, and a CR at the end of a line doesn't count. The result is a
// textsafe.Line, or a textsafe.Text with block, and to spell it again changes nothing.
// Marks on a letter show as long as they are few: see marks.
//
// A text that holds such a spelling itself looks the same; only hidden tells
// them apart.
func Out(s string, block bool) (text string, hidden int) {
	var b []byte
	on := marks{baseless: true}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		next := i + size
		switch shown := on.carry(r, shows(s, i, r, size, block)); {
		case shown && b != nil:
			b = append(b, s[i:next]...)
		case !shown:
			if b == nil {
				b = append(make([]byte, 0, len(s)+64), s[:i]...)
			}
			b = spelled(b, s[i], r, size)
			if lineEnd := next == len(s) || s[next] == '\n'; !block || r != '\r' || !lineEnd {
				hidden++
			}
		}
		i = next
	}
	if b == nil {
		return s, 0
	}
	return string(b), hidden
}

// mostMarks is how many marks a letter carries: a Hebrew one has five at most,
// and a Tibetan stack six. Of many on one, drawn over each other, nobody sees how
// many there are, and a browser takes seconds to place them.
const mostMarks = 6

// marks are the combining marks on a letter or number. On anything else, as the
// sign of a line of a diff, they would make it another sign. The first that is not
// shown takes the rest with it, which would stand on its spelling otherwise.
type marks struct {
	n          int
	base, last rune
	baseless   bool
}

// dotAbove on a letter that has a dot shows as that letter.
const dotAbove = '\u0307'

// carry reports whether the code point is shown, where shown says so of it alone.
func (m *marks) carry(r rune, shown bool) bool {
	if !unicode.Is(unicode.M, r) {
		*m = marks{base: r, baseless: !shown || !unicode.In(r, unicode.L, unicode.N)}
		return shown
	}
	if !shown || m.baseless || r == m.last || m.n == mostMarks || r == dotAbove && unicode.Is(unicode.Soft_Dotted, m.base) {
		m.baseless = true
		return false
	}
	m.n, m.last = m.n+1, r
	return true
}

// shows reports whether the code point at i stays as it is.
func shows(s string, i int, r rune, size int, block bool) bool {
	return seen(r, size) || block && (r == '\n' || r == '\t') || joins(s, i, r, size)
}

// spelled appends a code point, or the byte that is none.
func spelled(b []byte, first byte, r rune, size int) []byte {
	if r == utf8.RuneError && size == 1 {
		return append(b, '\\', 'x', digits[first>>4], digits[first&15])
	}
	return append(strconv.AppendInt(append(b, `\u{`...), int64(r), 16), '}')
}

// Name returns a name as it is drawn where it is read to be agreed to: s itself,
// or in quotes, spelled by Out, where a reader wouldn't see all of it or where it
// ends. In quotes a quote and a backslash stand behind a backslash, so that no two
// names are drawn alike but those whose letters look alike.
func Name(s string) string {
	if _, hidden := Out(s, false); hidden == 0 && s == strings.Trim(s, " ") && !strings.HasPrefix(s, `"`) {
		return s
	}
	return quoted(s)
}

// Word is Name for a place in a line that is read by its words: a name that holds
// a blank is quoted too.
func Word(s string) string {
	if strings.Contains(s, " ") {
		return quoted(s)
	}
	return Name(s)
}

func quoted(s string) string {
	text, _ := Out(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s), false)
	return `"` + text + `"`
}

const digits = "0123456789abcdef"

// stackers show in the letters of their own script alone, by drawing what follows
// beneath or beside what stands before; elsewhere, with many fonts, as nothing.
var stackers = map[rune]*unicode.RangeTable{
	0x1039: unicode.Myanmar, 0x17D2: unicode.Khmer, 0x1A60: unicode.Tai_Tham, 0x1BAB: unicode.Sundanese,
	0x2D7F: unicode.Tifinagh, 0xAAF6: unicode.Meetei_Mayek, 0x10A3F: unicode.Kharoshthi, 0x1107F: unicode.Brahmi,
	0x11133: unicode.Chakma, 0x11A47: unicode.Zanabazar_Square, 0x11A99: unicode.Soyombo, 0x11D45: unicode.Masaram_Gondi,
	0x11D97: unicode.Gunjala_Gondi, 0x1193E: unicode.Dives_Akuru, 0x11F42: unicode.Kawi,
}

// joins reports whether the code point at i is a stacker among letters of its script.
func joins(s string, i int, r rune, size int) bool {
	script := stackers[r]
	if script == nil {
		return false
	}
	before, n := utf8.DecodeLastRuneInString(s[:i])
	after, m := utf8.DecodeRuneInString(s[i+size:])
	return unicode.Is(script, before) && seen(before, n) && unicode.Is(script, after) && unicode.In(after, unicode.L, unicode.N) && seen(after, m)
}

// blank are the joiners and fillers that Clean keeps, for the scripts that need
// them, or as a symbol of its own, and that show as nothing or as a blank.
const blank = "\u034f\u200c\u200d\u17b4\u17b5\u2800\ufffc\U00013441\U00013442\U00016fe4\U0001bc9d\U0001d159"

// seen reports whether a reader sees that this code point is there.
func seen(r rune, size int) bool {
	switch {
	case r < utf8.RuneSelf:
		return r >= ' ' && r < 0x7F
	case r == utf8.RuneError:
		return size > 1
	case strings.ContainsRune(blank, r) || stackers[r] != nil || unicode.Is(unicode.Variation_Selector, r):
		return false
	}
	text := string(r)
	return textsafe.Clean(text).String() == text && !unicode.IsSpace(r) && unicode.IsOneOf([]*unicode.RangeTable{unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Co}, r)
}
