// SPDX-License-Identifier: Apache-2.0

package glob_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
	"pgregory.net/rapid"
)

func must(t testing.TB, p glob.Pattern, err error) glob.Pattern {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compile(t testing.TB, s string) glob.Pattern {
	t.Helper()
	p, err := glob.Compile(s)
	return must(t, p, err)
}

func folded(t testing.TB, s string) glob.Pattern {
	t.Helper()
	p, err := glob.CompileFolded(s)
	return must(t, p, err)
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no string // separated by blanks; "." stands for the root
	}{
		{"a", "a", ". b a/b A aa"},
		{"a/b", "a/b", "a b a/b/c"},
		{"?", "a é 日 \xff", ". aa a/b"},
		{"*", "a .env ab.c", ". a/b"},
		{"*.go", "x.go .go", "x.gox a/x.go"},
		{"a*b*c", "abc axbyc abcbc", "ab acb abcd"},
		{"**", ". a a/b/c", ""},
		{"a/**", "a a/b a/b/c", ". b ab a-b"},
		{"**/x", "x a/x a/b/x", ". xa a/x/b"},
		{"**/x/**", "x x/y a/x a/x/b/c", "a ax"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a b a/x"},
		{"**/a/**/b/**/c", "a/b/c x/a/y/b/z/c a/a/b/b/c", "a/c b/a/c"},
		{"**/a*/**/b", "a1/b x/a/y/b a/a/b", "b/a"},
		{"[a-c]x", "ax cx", "dx x [x"},
		{"[!a-c]x", "dx éx", "ax x"},
		{"[^a]", "b", "a"},
		{"[a-]", "a -", "b"},
		{"[-a]", "a -", "b"},
		{`[\]\\-]`, `] \ -`, "a"},
		{"[é-ü]", "é ö", "e"},
		{"[!a]b", "\xffb", "ab"},
		{"[\ufffd]", "\ufffd", "\xff"},
		{`\*\?\[\{`, `*?[{`, "a"},
		{`a\bc`, "abc", `a\bc`},
		{"/usr/bin/*", "/usr/bin/x", "usr/bin/x /usr/bin"},
		{"**/fw", "/usr/sbin/fw fw", "/usr/sbin/fwx"},
		{"*/fw", "a/fw", "/fw"},
		{"a]b", "a]b", "ab"},
	}
	for _, tc := range tests {
		p := compile(t, tc.pattern)
		if p.String() != tc.pattern {
			t.Errorf("String() = %q, want %q", p, tc.pattern)
		}
		for want, names := range map[bool]string{true: tc.yes, false: tc.no} {
			for name := range strings.FieldsSeq(names) {
				if name == "." {
					name = ""
				}
				if got := p.Match(name); got != want {
					t.Errorf("%q.Match(%q) = %v", tc.pattern, name, got)
				}
				if f := folded(t, tc.pattern); want && !f.Match(name) {
					t.Errorf("folded %q does not match %q, which it matches byte for byte", tc.pattern, name)
				}
			}
		}
	}
}

func TestMatchBeneath(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{"a", "a", true},
		{"a", "a/b/c", true},
		{"a", "ab", false},
		{"a", "", false},
		{"**/x", "a/x/b", true},
		{"*", "a/b", true},
		{"a/*", "a", false},
		{"a/**", "a/b", true},
	}
	for _, tc := range tests {
		if got := compile(t, tc.pattern).MatchBeneath(tc.path); got != tc.want {
			t.Errorf("%q.MatchBeneath(%q) = %v", tc.pattern, tc.path, got)
		}
	}
}

func TestZeroPatternMatchesNothing(t *testing.T) {
	var p glob.Pattern
	for _, name := range []string{"", "a", "a/b"} {
		if p.Match(name) || p.MatchBeneath(name) {
			t.Errorf("the zero pattern matches %q", name)
		}
	}
}

func TestFoldedMatch(t *testing.T) {
	tests := []struct {
		pattern, path string
		want          bool
	}{
		{".env", ".ENV", true},
		{"README*", "readme.md", true},
		{"a?c", "aBc", true},
		{"[a-c]", "B", true},
		{"[A-C]x", "bx", true},
		{"[!a-c]", "B", true},   // byte for byte B is not one of a to c
		{"[!a-c]", "b", false},  // and b is
		{"[K]", "\u212a", true}, // Kelvin sign
		{"stra?e", "straße", true},
		{"straße", "STRASSE", true},
		{"ﬁle", "FILE", true},
		{"ıİ", "Ii", true},
		{".e\u200bnv", ".env", true},
		{".env", ".e\u00adnv\ufe0f", true},
		{".env", ".env. .", true},
		{".env", ".env::$DATA", true},
		{"a/.git/config", "a/.git:$I30:$INDEX_ALLOCATION/config", true},
		{".env", ".env:other", false},
		{"café*", "CAFE\u0301.txt", true},
		{"*", "\u200b", true},
		{"\u200b", "\u200c", true},
		{"\u200b?", "x", true},
		{"a／b", "a／b", true},
		{"a/b", "a／b", false}, // a full-width solidus separates nothing
		{"a", "b", false},
		{"é[x]", "e\u0301X", true},
		{"[Å]", "\u212b", true},
	}
	for _, tc := range tests {
		if got := folded(t, tc.pattern).Match(tc.path); got != tc.want {
			t.Errorf("folded %q.Match(%q) = %v", tc.pattern, tc.path, got)
		}
	}
}

func TestInvalidPatterns(t *testing.T) {
	tests := map[string]string{
		"":                           "empty",
		"a/":                         "ends in a slash",
		"/":                          "ends in a slash",
		"a//b":                       "empty segment",
		"//a":                        "empty segment",
		"./a":                        "canonical",
		"a/../b":                     "canonical",
		`a/\.`:                       "canonical",
		"{a,b}":                      "braces",
		"a}":                         "braces",
		"**.js":                      "whole segment",
		"a***":                       "whole segment",
		"[":                          "without its ]",
		"[a":                         "without its ]",
		"[a-":                        "without its ]",
		`[a\`:                        "without its ]",
		`[\`:                         "without its ]",
		"a[b/c]":                     "without its ]",
		"[]":                         "empty class",
		"[!]":                        "empty class",
		"[z-a]":                      "backwards",
		"[[:alpha:]]":                "named classes",
		`a\`:                         "takes nothing",
		`a\/b`:                       "takes nothing",
		"a\x00b":                     "NUL",
		"\xff":                       "UTF-8",
		strings.Repeat("a", 1<<12+1): "4096",
	}
	for pattern, want := range tests {
		for _, f := range []func(string) (glob.Pattern, error){glob.Compile, glob.CompileFolded} {
			_, err := f(pattern)
			var e *fault.Error
			if !errors.As(err, &e) || e.Code != fault.ConfigInvalid || !strings.Contains(e.Rule, want) {
				t.Errorf("%q: error %v, want config.invalid with %q", pattern, err, want)
			}
		}
	}
}

func TestKey(t *testing.T) {
	tests := map[string]string{
		"":                "",
		"a/b.c":           "a/b.c",
		"README.md":       "readme.md",
		"Straße":          "strasse",
		"ẞ":               "ss",
		"ﬀ":               "ff",
		"\u212a":          "k",
		"\u212b":          "å",
		"ſ":               "s",
		"İI ıi":           "ii ii",
		"e\u0301":         "é",
		"ΣΑΣς":            "σασσ",
		"．env":            ".env",
		"a\u200d\ufeffb":  "ab",
		"a．":              "a",
		"a. ./b ":         "a/b",
		"...":             "...",
		". .":             ". .",
		"A:$x":            "a:$x"[:1],
		"x:y":             "x:y",
		":x:$DATA":        ":x:$data",
		"2001:db8::1":     "2001:db8::1",
		"℀/x":             "a\u2044c/x",
		"\u200b/\u00ad":   "\u2044/\u2044",
		"/usr/BIN":        "/usr/bin",
		"\u1100\u1161":    "가",
		"１２":              "12",
		"a\u0301\u00adB.": "áb",
	}
	for name, want := range tests {
		if got := glob.Key(name); got != want {
			t.Errorf("Key(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestKeyOfEveryCharacter holds the key against each simple case mapping, the
// unit of comparison of NTFS, HFS+ and FAT.
func TestKeyOfEveryCharacter(t *testing.T) {
	for r := rune(1); r <= unicode.MaxRune; r++ {
		if r == '/' || r >= 0xD800 && r < 0xE000 {
			continue
		}
		key := glob.Key(string(r))
		if again := glob.Key(key); again != key {
			t.Fatalf("Key(%U) = %q, and its key is %q", r, key, again)
		}
		for _, v := range []rune{unicode.ToUpper(r), unicode.ToLower(r), unicode.ToTitle(r), unicode.SimpleFold(r)} {
			if v == r {
				continue
			}
			if got := glob.Key(string(v)); got != key {
				t.Errorf("Key(%U) = %q, Key(%U) = %q", r, key, v, got)
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	long := strings.Repeat("Folder/", 40) + "File.TXT"
	exact, fold := compile(t, "**/f*e.t?t"), folded(t, "**/F*E.[s-u]xt")
	for name, f := range map[string]func(){
		"key":   func() { glob.Key("src/main.go") },
		"exact": func() { exact.Match(long) },
		"fold":  func() { fold.MatchBeneath(long) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

var (
	genPattern = rapid.StringMatching(`(\*\*/)?([a-cA-C?*.]{1,4}|\[!?[a-c]\]|\*\*|[éßk])(/([ab*?]{1,3}|\*\*|\.[ab]|b\*\*)){0,3}`)
	genName    = rapid.StringMatching(`([a-cA-C.:é\x{212a}\x{200b}ß]{1,4}(/[a-cA-C. ]{1,3}){0,4})?`)
)

// TestSieve: what is spared would not have matched.
func TestSieve(t *testing.T) {
	agree := func(t interface{ Fatalf(string, ...any) }, p glob.Pattern, name string) bool {
		q := p.WithoutSieve()
		if p.Match(name) != q.Match(name) || p.MatchBeneath(name) != q.MatchBeneath(name) {
			t.Fatalf("%q and %q: the sieve changes the answer", p, name)
		}
		return q.MatchBeneath(name)
	}
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		pattern, name := genPattern.Draw(t, "pattern"), genName.Draw(t, "name")
		for _, f := range []func(string) (glob.Pattern, error){glob.Compile, glob.CompileFolded} {
			if p, err := f(pattern); err == nil && agree(t, p, name) {
				matched++
			}
		}
	})
	if matched == 0 {
		t.Error("no pattern matched: this run proves nothing")
	}
	for _, text := range strings.Fields("**/lit/** pre* *suf [x]* /a/b a?c *m*") {
		for _, name := range strings.Fields("a/lit/b PREfix aSUF xyz /a/b /A/b abc M . /") {
			agree(t, compile(t, text), name)
			agree(t, folded(t, text), name)
		}
	}
}
