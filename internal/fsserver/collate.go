// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// byName sorts a listing as the reference server does: by the order of words
// in a dictionary, not of bytes. It is exact for ASCII, after the root
// collation of CLDR (Unicode UTS #10): punctuation and symbols, digits,
// letters; marks count only between equal letters, and case only after that,
// small letters first. Elsewhere letters are compared without their marks, by
// code point, which is right within most scripts.
func byName[T any](items []T, name func(T) string) {
	type keyed struct {
		item    T
		letters string
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		// The rest of the key counts only between equal letters and is made
		// then: the keys of many names take less memory than the names.
		all[i] = keyed{item, packed(newCollationKey(name(item)).letters)}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if order := strings.Compare(a.letters, b.letters); order != 0 {
			return order
		}
		return newCollationKey(name(a.item)).compare(newCollationKey(name(b.item)))
	})
	for i := range all {
		items[i] = all[i].item
	}
}

// compareNames is the order of two names.
func compareNames(a, b string) int {
	x, y := newCollationKey(a), newCollationKey(b)
	return cmp.Or(strings.Compare(packed(x.letters), packed(y.letters)), x.compare(y))
}

// collationKey has one level of comparison after the other.
type collationKey struct{ letters, marks, cases []rune }

func (k collationKey) compare(other collationKey) int {
	return cmp.Or(
		slices.Compare(k.letters, other.letters),
		slices.Compare(k.marks, other.marks),
		slices.Compare(k.cases, other.cases),
	)
}

// signs are the ASCII characters that come before digits, in their order.
const signs = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"

func newCollationKey(s string) collationKey {
	var k collationKey
	for _, r := range norm.NFKD.String(s) {
		switch {
		case unicode.Is(unicode.Mn, r):
			k.marks = append(k.marks, rune(len(k.letters)), r)
			continue
		case unicode.Is(unicode.Cc, r) && !strings.ContainsRune(signs, r):
			continue // ignored altogether
		}
		lower := unicode.ToLower(r)
		k.letters = append(k.letters, primary(lower))
		if lower != r {
			k.cases = append(k.cases, 1)
		} else {
			k.cases = append(k.cases, 0)
		}
	}
	return k
}

// The weights of what isn't among the signs begin at these.
const otherSigns, digits, letters = 1 << 8, 1 << 22, 1 << 23

// primary is the weight of a character: signs, other signs, digits, letters.
func primary(r rune) rune {
	switch i := strings.IndexRune(signs, r); {
	case i >= 0:
		return rune(i)
	case unicode.IsDigit(r):
		return digits + r
	case unicode.IsLetter(r):
		return letters + r
	default:
		return otherSigns + r
	}
}

// packed is weights as bytes in the same order: one for what is ASCII.
func packed(weights []rune) string {
	b := make([]byte, 0, len(weights))
	for _, w := range weights {
		switch {
		case w < otherSigns:
			b = append(b, byte(w))
		case w < digits:
			b = append(b, 0x40, byte(w>>16), byte(w>>8), byte(w))
		case w < digits+utf8.RuneSelf:
			b = append(b, 0x50+byte(w-digits-'0'))
		case w < letters:
			b = append(b, 0x5f, byte(w>>16), byte(w>>8), byte(w))
		case w < letters+utf8.RuneSelf:
			b = append(b, 0x60+byte(w-letters-'a'))
		default:
			b = append(b, 0x7f, byte(w>>16), byte(w>>8), byte(w))
		}
	}
	return string(b)
}
