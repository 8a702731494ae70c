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

// classes holds every range that is not kept, in order, but for the last two
// code points of each plane.
var classes = [...]struct {
	first, last rune
	class       class
}{
	{0x00, 0x08, control},
	{'\t', '\n', breaks},
	{0x0B, 0x0C, control},
	{'\r', '\r', breaks},
	{0x0E, 0x1F, control},
	{0x7F, 0x9F, control},
	{0xAD, 0xAD, remove},
	{0x61C, 0x61C, remove},
	{0x115F, 0x1160, blank}, // Hangul fillers
	{0x180B, 0x180D, variation},
	{0x180E, 0x180E, remove},
	{0x180F, 0x180F, variation},
	{0x200B, 0x200B, remove}, // ZWNJ and ZWJ come next and stay: Persian, emoji
	{0x200E, 0x200F, remove},
	{0x2028, 0x2029, blank},
	{0x202A, 0x202E, remove},
	{0x2060, 0x206F, remove},
	{0x3164, 0x3164, blank}, // another filler
	{0xFDD0, 0xFDEF, replace},
	{0xFE00, 0xFE0F, variation},
	{0xFEFF, 0xFEFF, remove},
	{0xFFA0, 0xFFA0, blank}, // and its narrow form
	{0xFFF9, 0xFFFB, remove},
	{0x1BCA0, 0x1BCA3, remove},
	{0x1D173, 0x1D17A, remove},
	{0xE0000, 0xE00FF, remove}, // tags
	{0xE0100, 0xE01EF, variation},
	{0xE01F0, 0xE0FFF, remove},
}

// classify returns the class of a code point. An invalid byte is U+FFFD
// before it gets here.
func classify(r rune) class {
	if r&0xFFFE == 0xFFFE {
		return replace
	}
	low, high := 0, len(classes)
	for low < high {
		if mid := (low + high) / 2; classes[mid].last < r {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(classes) && classes[low].first <= r {
		return classes[low].class
	}
	return keep
}
