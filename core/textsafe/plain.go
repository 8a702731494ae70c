// SPDX-License-Identifier: Apache-2.0

package textsafe

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// skipPlain returns the first index from i on whose byte is not printable
// ASCII, eight bytes at a time; with lines, tab and newline count as printable.
func skipPlain(s string, i int, lines bool) int {
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
