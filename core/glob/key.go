// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// spelling is how far a name is from its key.
type spelling uint8

const (
	keyed   spelling = iota // the name is its own key
	capital                 // only ASCII capitals differ
	foreign                 // the long way
)

// Key returns the spelling under which tightening rules compare a name. Two
// names that any file system takes for one have the same key: it is NFKC with
// full case folding and without default-ignorable code points (ext4 and f2fs
// casefold, APFS, HFS+), with the two Turkish i as i (upcase tables of NTFS),
// and with what Win32 drops from a segment: dots and blanks at its end, and a
// `:…:$TYPE` that means the file itself. Being coarser than one file system
// is right here: keys are for rules that deny or ask, never for those that
// allow.
//
// Key is idempotent, keeps the number of segments, and returns a lower-case
// ASCII name without allocating.
func Key(name string) string {
	switch scan(name) {
	case keyed:
		return name
	case capital:
		return strings.ToLower(name)
	case foreign:
	}
	segs := strings.Split(name, "/")
	for i, s := range segs {
		if segs[i] = segmentKey(s); segs[i] == "" && s != "" {
			segs[i] = noSlash // nothing but ignorable code points, and still a segment
		}
	}
	return strings.Join(segs, "/")
}

// noSlash stands in for a slash that NFKC makes out of U+FF0F or U+2100, which
// no file system takes for a separator; it is its own key.
const noSlash = "\u2044"

func scan(name string) spelling {
	form := keyed
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c >= utf8.RuneSelf || c == ':':
			return foreign
		case 'A' <= c && c <= 'Z':
			form = capital
		case (c == '.' || c == ' ') && (i+1 == len(name) || name[i+1] == '/'):
			return foreign
		}
	}
	return form
}

// segmentKey folds until nothing changes: dropping a code point can bring
// together two that compose, and composing can make one that folds.
func segmentKey(s string) string {
	return settle(s, func(s string) string { return trimWin32(foldText(s)) })
}

// rounds bounds the folding of hostile text; a test holds that every single
// character settles in three, and a fuzz target that texts do.
const rounds = 8

func settle(s string, fold func(string) string) string {
	for range rounds {
		next := fold(s)
		if next == s {
			break
		}
		s = next
	}
	return s
}

// foldText is the part of the key that also applies to the literal pieces of
// a wildcard segment.
func foldText(s string) string {
	s = strings.ReplaceAll(norm.NFKC.String(s), "/", noSlash)
	s = cases.Fold().String(s)
	var b strings.Builder
	prev := rune(0)
	for _, r := range s {
		switch {
		case ignorable(r), r == 0x0307 && prev == 'i':
			continue
		case r == 0x0131:
			r = 'i'
		case 0xAB70 <= r && r <= 0xABBF: // Cherokee folds to its capitals, and package
			r += 0x13A0 - 0xAB70 // cases maps them back and forth
		case 0x13F8 <= r && r <= 0x13FD:
			r -= 8
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

// trimWin32 drops what Win32 drops when it opens a name. A segment of nothing
// but dots and blanks stays, since it would have no name left.
func trimWin32(s string) string {
	if i := strings.IndexByte(s, ':'); i > 0 && strings.Contains(s[i:], ":$") {
		s = s[:i]
	}
	if t := strings.TrimRight(s, ". "); t != "" {
		return t
	}
	return s
}

// ignorable reports Default_Ignorable_Code_Point (Unicode 17,
// DerivedCoreProperties), which file systems that fold also skip.
func ignorable(r rune) bool {
	switch {
	case r == 0x00AD, r == 0x034F, r == 0x061C, r == 0x3164, r == 0xFEFF, r == 0xFFA0,
		0x115F <= r && r <= 0x1160, 0x17B4 <= r && r <= 0x17B5, 0x180B <= r && r <= 0x180F,
		0x200B <= r && r <= 0x200F, 0x202A <= r && r <= 0x202E, 0x2060 <= r && r <= 0x206F,
		0xFE00 <= r && r <= 0xFE0F, 0xFFF0 <= r && r <= 0xFFF8, 0x1BCA0 <= r && r <= 0x1BCA3,
		0x1D173 <= r && r <= 0x1D17A, 0xE0000 <= r && r <= 0xE0FFF:
		return true
	}
	return false
}

// fold returns the segment as it compares with a segment of a key.
func (s segment) fold() segment {
	if s.double {
		return s
	}
	if s.tokens == nil {
		return segment{lit: Key(s.lit)}
	}
	tokens := make([]token, 0, len(s.tokens))
	for _, t := range s.tokens {
		switch t.kind {
		case tokenLiteral:
			if t.lit = settle(t.lit, foldText); t.lit == "" {
				continue // nothing but ignorable code points
			}
		case tokenClass:
			t.class = t.class.fold()
		case tokenOne, tokenStar:
		}
		tokens = append(tokens, t)
	}
	return newSegment(tokens)
}
