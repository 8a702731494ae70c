// SPDX-License-Identifier: Apache-2.0

package textsafe

// class is what happens to a code point.
type class uint8

const (
	keep      class = iota
	control         // one space; counted as hidden
	breaks          // tab, LF, CR: one space, but tab and LF stay in a Text
	blank           // one space: it looks like one already
	remove          // nothing; counted as hidden
	replace         // U+FFFD
	variation       // kept up to two in a row, three or more are removed
)

// classify returns the class of a code point. An invalid byte is U+FFFD
// before it gets here.
func classify(r rune) class {
	switch {
	case r < 0xA0:
		return classifyControl(r)
	case r < 0x1100:
		if r == 0xAD || r == 0x61C {
			return remove
		}
		return keep
	case r < 0x3000:
		return classifySymbols(r)
	case r < 0xFDD0:
		if r == 0x3164 {
			return blank
		}
		return keep
	case r < 0x10000:
		return classifyForms(r)
	default:
		return classifyAstral(r)
	}
}

func classifyControl(r rune) class {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return breaks
	case r < 0x20 || r >= 0x7F:
		return control
	}
	return keep
}

// classifySymbols covers U+1100 to U+2FFF: Mongolian selectors, general
// punctuation, two Hangul fillers.
func classifySymbols(r rune) class {
	switch {
	case r >= 0x200B && r <= 0x206F:
		switch {
		case r == 0x200C || r == 0x200D: // ZWNJ and ZWJ: Persian, emoji
			return keep
		case r == 0x2028 || r == 0x2029:
			return blank
		case r <= 0x200F, r >= 0x202A && r <= 0x202E, r >= 0x2060:
			return remove
		}
	case r == 0x115F || r == 0x1160:
		return blank
	case r == 0x180E:
		return remove
	case r >= 0x180B && r <= 0x180F: // Mongolian free variation selectors
		return variation
	}
	return keep
}

// classifyForms covers U+FDD0 to U+FFFF.
func classifyForms(r rune) class {
	switch {
	case r <= 0xFDEF || r >= 0xFFFE:
		return replace
	case r >= 0xFE00 && r <= 0xFE0F:
		return variation
	case r == 0xFEFF || r >= 0xFFF9 && r <= 0xFFFB:
		return remove
	case r == 0xFFA0:
		return blank
	}
	return keep
}

// classifyAstral covers what lies above the basic plane.
func classifyAstral(r rune) class {
	switch {
	case r&0xFFFE == 0xFFFE:
		return replace
	case r >= 0xE0100 && r <= 0xE01EF:
		return variation
	case r >= 0xE0000 && r <= 0xE0FFF: // tags and the ignorable rest
		return remove
	case r >= 0x1BCA0 && r <= 0x1BCA3, r >= 0x1D173 && r <= 0x1D17A:
		return remove
	}
	return keep
}
