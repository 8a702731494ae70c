// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

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
		item T
		key  collationKey
	}
	all := make([]keyed, len(items))
	for i, item := range items {
		all[i] = keyed{item, newCollationKey(name(item))}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return a.key.compare(b.key) })
	for i := range all {
		items[i] = all[i].item
	}
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

// primary is the weight of a character: signs, other signs, digits, letters.
func primary(r rune) rune {
	const other, digits, letters = 1 << 8, 1 << 22, 1 << 23
	switch i := strings.IndexRune(signs, r); {
	case i >= 0:
		return rune(i)
	case unicode.IsDigit(r):
		return digits + r
	case unicode.IsLetter(r):
		return letters + r
	default:
		return other + r
	}
}
