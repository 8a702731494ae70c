// SPDX-License-Identifier: Apache-2.0

package spell

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/textsafe"
)

func TestOut(t *testing.T) {
	for _, tc := range []struct {
		in    string
		block bool
		want  string
		n     int
	}{
		{"plain é 世 \\u{200b}", false, "plain é 世 \\u{200b}", 0},
		{"a\u200bb", false, "a\\u{200b}b", 1},
		{"\u202ea\u2066\u200e\ufeff", true, "\\u{202e}a\\u{2066}\\u{200e}\\u{feff}", 4},
		{"\U000e0041\U000e0100", true, "\\u{e0041}\\u{e0100}", 2},
		{"a\u200cb\u200dc\ufe0f\u034f", true, "a\\u{200c}b\\u{200d}c\\u{fe0f}\\u{34f}", 4},
		{"\u3164\u2800\u00a0\u2028", true, "\\u{3164}\\u{2800}\\u{a0}\\u{2028}", 4},
		{"\xff\xc2", true, "\\xff\\xc2", 2},
		{"a\n\tb", true, "a\n\tb", 0},
		{"a\n\tb\x1b", false, "a\\u{a}\\u{9}b\\u{1b}", 3},
		{"a\r", false, "a\\u{d}", 1},
		{"a\r\nb\rc", true, "a\\u{d}\nb\\u{d}c", 1},
		{"deploy.sh\ufffc\U00013441\U00013442\U0001bc9d", false, "deploy.sh\\u{fffc}\\u{13441}\\u{13442}\\u{1bc9d}", 4},
		{"e\u0301\u0323 \u05e9\u05c1\u05bc\u05b8\u05bd\u0591", false, "e\u0301\u0323 \u05e9\u05c1\u05bc\u05b8\u05bd\u0591", 0},
		{"e\u0301\u0301\u0323e\u0301", false, "e\u0301\\u{301}\\u{323}e\u0301", 2},
		{"e\u0301\u0302\u0303\u0304\u0305\u0306\u0307", false, "e\u0301\u0302\u0303\u0304\u0305\u0306\\u{307}", 1},
		{"\u0301a \u0301\n\u0301", true, "\\u{301}a \\u{301}\n\\u{301}", 3},
		{"+\u20d2x\n-\u0335\u030d\n_\u0332", true, "+\\u{20d2}x\n-\\u{335}\\u{30d}\n_\\u{332}", 4},
		{"mai\u0307n.go \u0307 j\u0323\u0307 z\u0307", false, "mai\\u{307}n.go \\u{307} j\u0323\\u{307} z\u0307", 3},
		{"1\u0301\u0e01\u0e48\u0e33", false, "1\u0301\u0e01\u0e48\u0e33", 0},
		{"a\u200b\u0301", false, "a\\u{200b}\\u{301}", 2},
	} {
		if got, n := Out(tc.in, tc.block); got != tc.want || n != tc.n {
			t.Errorf("%q: %q, %d, want %q, %d", tc.in, got, n, tc.want, tc.n)
		}
	}
}

// TestStackers: what joins letters of its script is left in their text, so that
// it stays to be read, and is spelled wherever it would show as nothing.
func TestStackers(t *testing.T) {
	for _, s := range []string{"\u1780\u17d2\u1781", "\u1000\u1039\u1000", "\U00011003\u0020"} {
		if got, n := Out(s, false); got != s || n != 0 {
			t.Errorf("%q: %q", s, got)
		}
	}
	for _, r := range "\U0001d159\U00016fe4\u17d2\u1039\u1a60\u1bab\u2d7f\uaaf6\U00010a3f\U0001107f\U00011133\U00011a47\U00011a99\U00011d97\U00011d45\U0001193e\U00011f42" {
		for _, around := range [][2]string{{"a", "b"}, {"", ""}, {"\u1780", ""}, {"\u1780", "a"}, {"a", "\u1780"}, {"\u1780\u17b4", "\u1780"}, {"\u1780" + string(r), "\u1780"}} {
			s := around[0] + string(r) + around[1]
			if got, n := Out(s, true); n == 0 || strings.ContainsRune(got, r) {
				t.Errorf("%q: %q", s, got)
			}
		}
	}
}

// TestName: different names are drawn differently, with nothing unseen, and one
// that is plain as it is.
func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"project://src/a b.go": "project://src/a b.go", "café 世.txt": "café 世.txt", `a\b`: `a\b`, "": "",
		"a ": `"a "`, " a": `" a"`, `"a"`: `"\"a\""`, "a\u200d": `"a\u{200d}"`, "a\u00a0\\": `"a\u{a0}\\"`, "a\xff": `"a\xff"`, "a\n": `"a\u{a}"`, "a\r": `"a\u{d}"`,
	} {
		if got := Name(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{"a b": `"a b"`, "a": "a", "a ": `"a "`, "é\u200d": `"é\u{200d}"`} {
		if got := Word(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	part := rapid.StringOf(rapid.RuneFrom([]rune("a \"\\{}u20d\u200d\u2800")))
	rapid.Check(t, func(rt *rapid.T) {
		a, b := part.Draw(rt, "a"), part.Draw(rt, "b")
		if _, hidden := Out(Name(a), false); hidden != 0 || a != b && Name(a) == Name(b) {
			rt.Fatalf("%q and %q: %s and %s", a, b, Name(a), Name(b))
		}
	})
}

func clean(s string, block bool) string {
	if block {
		return textsafe.Block(s).String()
	}
	return textsafe.Clean(s).String()
}

// TestProperties: the result needs no cleaning, hides nothing, and is
// spelled already; everything that Clean would take away is counted.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), rapid.StringOf(rapid.RuneFrom([]rune("a\u200b\ufe0f\u202e\U000e0100\n\r\ufffe\u1780\u17d2\u17b4\u0301\u0302")))).Draw(rt, "s")
		block := rapid.Bool().Draw(rt, "block")
		got, n := Out(s, block)
		if !utf8.ValidString(got) || clean(got, block) != got || textsafe.Hidden(got) != 0 {
			rt.Fatalf("%q of %q", got, s)
		}
		if again, m := Out(got, block); again != got || m != 0 {
			rt.Fatalf("%q again is %q, %d", got, again, m)
		}
		if n < textsafe.Hidden(s) || n == 0 && block && got != s && clean(s, block) == s {
			rt.Fatalf("%q hides %d, counted %d", s, textsafe.Hidden(s), n)
		}
	})
}
