// SPDX-License-Identifier: Apache-2.0

package glob_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/postern-gate/postern/core/glob"
	"pgregory.net/rapid"
)

// agree compares with doublestar on what both languages hold to mean the same.
// Meant differences, none of them reachable here: braces, ** inside a segment,
// absolute and unclean patterns (we refuse them); [^x] and [!x] are the same
// to both; a range that runs backwards (they: matches nothing, we refuse);
// invalid UTF-8 (they compare U+FFFD, we a byte); and, of theirs, a/**/** does
// not match a, while a/** does.
func agree(t interface{ Fatalf(string, ...any) }, pattern, name string) {
	if strings.Count(pattern, "*") > 8 || len(name) > 100 { // theirs goes back at each star, without a bound
		return
	}
	p, err := glob.Compile(pattern)
	if err != nil || !utf8.ValidString(name) || strings.HasPrefix(pattern, "/") || strings.Contains(pattern, "**/**") {
		return
	}
	for seg := range strings.SplitSeq(name, "/") {
		if seg == "" { // not a canonical name
			return
		}
	}
	want, err := doublestar.Match(pattern, name)
	if err != nil { // theirs is the narrower class syntax: no literal - at an end
		return
	}
	if top, below := strings.CutSuffix(pattern, "/**"); below && !want {
		// Of theirs a*/** does not match a, while a/** does; to us both do.
		want, err = doublestar.Match(top, name)
		if err != nil {
			return
		}
	}
	if got := p.Match(name); got != want {
		t.Fatalf("%q.Match(%q) = %v, doublestar says %v", pattern, name, got, want)
	}
	if again, _ := glob.CompileFolded(pattern); want && !again.Match(name) {
		t.Fatalf("folded %q misses %q, which matches byte for byte", pattern, name)
	}
	if byKey, _ := glob.CompileFolded(pattern); byKey.Match(name) && !byKey.MatchBeneath(name+"/x") {
		t.Fatalf("%q covers %q but not what is beneath", pattern, name)
	}
}

func TestDoublestarAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agree(t, genPattern.Draw(t, "pattern"), genName.Draw(t, "name"))
	})
}

func FuzzDoublestar(f *testing.F) {
	for _, s := range [][2]string{
		{"a/**", "a"},
		{"**/x", "x"},
		{"a*b?[c-e]", "axbyd"},
		{`\[a\]`, "[a]"},
		{"**/a/**/b", "a/a/b"},
		{"[!a]", "é"},
		{"*a*a*a*b", "aaaaaaaaaaaa"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) { agree(t, pattern, name) })
}

// FuzzKey: the key is idempotent, keeps the segments, and a folded literal
// meets exactly the names of the same key, or of the same bytes.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"", `a*?[{}\\b`, "A/b", "İ", "ß. ", "\u200b", "x:$y", "℀", "e\u0301\u00ad\u0323", "\xff", "i\u00ad\u0307"} {
		f.Add(s, "A")
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		key := glob.Key(name)
		if again := glob.Key(key); again != key {
			t.Fatalf("Key(%q) = %q, and its key is %q", name, key, again)
		}
		if a, b := strings.Count(name, "/"), strings.Count(key, "/"); a != b {
			t.Fatalf("Key(%q) = %q has %d slashes, want %d", name, key, b, a)
		}
		literal := glob.Literal(name)
		p, err := glob.CompileFolded(literal)
		if err != nil {
			return
		}
		if !p.Match(name) || !p.Match(key) {
			t.Fatalf("folded %q misses its own name or key %q", literal, key)
		}
		if got, want := p.Match(other), glob.Key(other) == key; got != want && other != "" && !strings.HasPrefix(other, "/") {
			t.Fatalf("folded %q.Match(%q) = %v, keys equal: %v", literal, other, got, want)
		}
	})
}
