// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"unicode"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/textsafe"
)

// ignored and other are folded characters without a meaning of their own: the
// first doesn't separate, the second matches nothing.
const (
	ignored byte = 0
	other   byte = 1
)

// foldASCII folds an ASCII character: blanks to a space, letters to lower
// case, backslash to slash.
func foldASCII(c byte) byte {
	switch {
	case c == '\t' || c == '\n' || c == '\r':
		return ' '
	case c < ' ' || c == 0x7F:
		return ignored
	case c == '\\':
		return '/'
	case c >= 'A' && c <= 'Z':
		return c | 0x20
	}
	return c
}

// ignorable reports whether a code point from beyond ASCII doesn't show: what
// textsafe.Hidden counts, format characters, marks, the default-ignorable
// rest. Blank letters do separate.
func ignorable(r rune) bool {
	var b [utf8.UTFMax]byte
	if n := utf8.EncodeRune(b[:], r); textsafe.Hidden(string(b[:n])) > 0 {
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.M, unicode.Other_Default_Ignorable_Code_Point) && !blank(r)
}

func blank(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800: // Hangul fillers, empty braille
		return true
	}
	return unicode.In(r, unicode.Z)
}

// fold folds one code point of a compatibility decomposition.
func fold(r rune) byte {
	if r = unicode.ToLower(r); r < utf8.RuneSelf {
		return foldASCII(byte(r))
	}
	switch {
	case ignorable(r):
		return ignored
	case blank(r):
		return ' '
	case bracket(r):
		return '<'
	case slash(r):
		return '/'
	}
	return letter(r)
}

// bracket reports whether r, or the start of its decomposition, looks like an
// opening angle bracket. Doubled ones are quotation marks and stay.
func bracket(r rune) bool {
	switch r {
	case '<', '\u02C2', '\u1438', '\u16B2', '\u2039', '\u226E', '\u2329', '\u276C', '\u276E', '\u2770',
		'\u27E8', '\u2991', '\u29FC', '\u3008', '\uFE3F', '\uFE64', '\uFF1C', '\U0001D236':
		return true
	}
	return false
}

func slash(r rune) bool {
	switch r {
	case '᜵', '⁁', '⁄', '∕', '∖', '╱', '╲', '⟋', '⟍', '⧵', '⧸', '⧹', 'Ⳇ', 'ⳇ', '〳', 'ノ', '㇏', '㇓', '丶', '丿', 0x1D20F, 0x1D23A:
		return true
	}
	return false
}

// letter maps the look-alikes of the letters of "untrusted" that neither
// decompose to them nor differ by case alone: the confusables of UTS #39, small
// capitals, letters with a stroke or hook, and boxed letters. Greek nu looks
// like a v when small and like an N when large; lower case has already been
// applied, so it counts as n.
func letter(r rune) byte {
	switch r {
	case 'ʉ', 'ʊ', 'ʋ', 'ᴜ', 'ꞟ', 'ꭎ', 'ꭏ', 'ꭒ', 'υ', 'ц', 'џ', 'ս', 'ሀ', 'ᑌ', '∪', '⋃', 'ꓴ', 'ꞹ', 'ᶙ',
		'ⲩ', 0x104F6, 0x104CE, 0x118D8, 0x118B8, 0x16F42:
		return 'u'
	case 'ƞ', 'ŋ', 'ɲ', 'ɳ', 'ɴ', 'ȵ', 'ᵰ', 'ᶇ', 'η', 'ν', 'п', 'ո', 'ռ', 'ղ', 'ⲛ', 'ꓠ', 'ꞃ', '∩', '⋂', 'ᑎ', 0x10513:
		return 'n'
	case 'ŧ', 'ƫ', 'ƭ', 'ʈ', 'ȶ', 'ⱦ', 'ᴛ', 'ᵵ', 'τ', 'т', 'ⲧ', 'Ꭲ', 'ꭲ', 'ꓔ', '⊤', '⟙', '†', 'ե',
		0x10297, 0x102B1, 0x10315, 0x118BC, 0x16F0A, 0x1F768:
		return 't'
	case 'ɍ', 'ɼ', 'ɽ', 'ɾ', 'ɿ', 'ʀ', 'ʁ', 'ᴦ', 'ᵲ', 'ᵳ', 'ᶉ', 'ꭇ', 'ꭈ', 'г', 'ⲅ', 'Ꭱ', 'ꭱ', 'Ꮢ', 'ꮢ', 'ꮁ', 'Ꮁ', 'ᖇ', 'ꓣ',
		0x104B4, 0x104DC, 0x16F35:
		return 'r'
	case 'ƽ', 'ȿ', 'ʂ', 'ꜱ', 'ᵴ', 'ᶊ', 'ꞩ', 'ꟊ', 'ѕ', 'տ', 'Ꮥ', 'ꮥ', 'Ꮪ', 'ꮪ', 'ꓢ',
		0x10296, 0x10420, 0x10448, 0x118C1, 0x16F3A:
		return 's'
	case 'ɇ', 'ɛ', 'ə', 'ǝ', 'ᴇ', 'ⱸ', 'ᶒ', 'ꬲ', 'ꬳ', 'ꬴ', '℮', 'ε', 'е', 'є', 'э', 'ҽ', 'ҿ', 'ⲉ', 'ⴹ', 'Ꭼ', 'ꭼ', 'ꓰ', '⋿',
		0x10286, 0x118A6, 0x118AE, 0x118C6:
		return 'e'
	case 'đ', 'ð', 'ɖ', 'ɗ', 'ȡ', 'ƌ', 'ᴅ', 'ᵭ', 'ᶁ', 'ᶑ', 'ԁ', 'ժ', 'Ꭰ', 'ꭰ', 'Ꮷ', 'ꮷ', 'ᑯ', 'ᗞ', 'ᗪ', 'ꓒ', 'ꓓ':
		return 'd'
	}
	return boxed(r)
}

// boxed maps the letters in black circles and boxes and the regional
// indicators, which don't decompose.
func boxed(r rune) byte {
	for _, first := range [...]rune{0x1F150, 0x1F170, 0x1F1E6} {
		if r >= first && r < first+26 {
			return byte('a' + r - first)
		}
	}
	return other
}
