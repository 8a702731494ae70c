// SPDX-License-Identifier: Apache-2.0

package textsafe

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipPlain returns the first index from i on where the text is neither
// printable ASCII nor one of the letters that skipLetters knows; with lines,
// tab and newline count as printable.
func skipPlain(s string, i int, lines bool) int {
	for i < len(s) {
		if i = skipASCII(s, i, lines); i == len(s) {
			break
		}
		next := skipLetters(s, i)
		if next == i {
			break
		}
		i = next
	}
	return i
}

// skipLetters skips what needs no look at the tables: well-formed code points
// of two bytes but U+0080 to U+00BF and Arabic's first block (with U+061C), and
// those from U+3000 to U+CFFF but the filler U+3164.
func skipLetters(s string, i int) int {
	for i+2 < len(s) {
		switch c := s[i]; {
		case c >= 0xC3 && c <= 0xDF && c != 0xD8 && continues(s[i+1]):
			i += 2
		case c >= 0xE3 && c <= 0xEC && continues(s[i+1]) && continues(s[i+2]) &&
			(c != 0xE3 || s[i+1] != 0x85 || s[i+2] != 0xA4):
			i += 3
		default:
			return i
		}
	}
	return i
}

func continues(c byte) bool { return c&0xC0 == 0x80 }

// skipASCII skips printable ASCII, eight bytes at a time.
func skipASCII(s string, i int, lines bool) int {
	for ; i+8 <= len(s); i += 8 {
		x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		odd := odd(x)
		if lines {
			odd &^= equal(x, '\t') | equal(x, '\n')
		}
		if odd != 0 {
			break
		}
	}
	for i < len(s) && (s[i] >= ' ' && s[i] < 0x7F || lines && (s[i] == '\t' || s[i] == '\n')) {
		i++
	}
	return i
}

// odd sets the high bit of each byte of x that is below 0x20 or above 0x7E.
// The sums stay below 0x100 a byte, so no carry crosses into the next one.
func odd(x uint64) uint64 {
	low := x &^ highs
	printable := (low + (0x80-0x20)*ones) &^ (low + ones)
	return ^(printable &^ x) & highs
}

// equal sets the high bit of each byte of x that is b, an ASCII character.
func equal(x uint64, b uint64) uint64 {
	x ^= b * ones
	low := x &^ highs
	return ^(low + 0x7F*ones | x) & highs
}
