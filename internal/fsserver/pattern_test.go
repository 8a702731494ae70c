// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

func TestPatterns(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no []string
	}{
		{"**", []string{"a", "a/b"}, nil},
		{"*", []string{"a", ".x", "é"}, []string{"a/b"}},
		{"**/a", []string{"a", "x/y/a"}, []string{"x/a/b", "xa"}},
		{"a/**", []string{"a/b", "a/b/c"}, []string{"a", "b/a"}},
		{"a/**/b", []string{"a/b", "a/x/b", "a/x/y/b"}, []string{"a/x", "b"}},
		{"**/*.ts", []string{"a.ts", "x/.h/a.ts"}, []string{"a.tsx"}},
		{"**/a/**/b", []string{"a/b", "x/a/y/a/b", "a/a/b"}, []string{"a/y", "b/a"}},
		{"**/**/a", []string{"a", "x/a"}, nil},
		{"a**b", []string{"axxb", "ab"}, []string{"ax/b"}},
		{"***", []string{"a"}, []string{"a/b"}},
		{"./a", nil, []string{"a"}},
		{"a/", nil, []string{"a"}},
		{"/a", nil, []string{"a"}},
		{"a//b", []string{"a/b"}, nil},
		{"a/../b", []string{"b"}, []string{"a/b"}},
		{"..", nil, []string{"a"}},
		{"a?c", []string{"abc", "aéc"}, []string{"a/c", "ac"}},
		{"a.b", []string{"a.b"}, []string{"axb"}},
		{"?*", []string{"a", "ab"}, nil},
		{"[ab]c", []string{"ac", "bc"}, []string{"cc", "abc"}},
		{"[!ab]c", []string{"xc"}, []string{"ac"}},
		{"[^ab]c", []string{"xc"}, []string{"bc"}},
		{"[!a]*", []string{"b", ".b"}, []string{"ab"}},
		{"[a-c]", []string{"a", "b"}, []string{"d", "-"}},
		{"[a-]", []string{"a", "-"}, nil},
		{"[]a]", []string{"]", "a"}, []string{"b"}},
		{`[\]]`, []string{"]"}, []string{`\`}},
		{"[z-a]", nil, []string{"b", "z"}},
		{"[[:alpha:]]", []string{"q", "é"}, []string{"1"}},
		{"[[:digit:]x]", []string{"1", "x"}, []string{"y"}},
		{"[", []string{"["}, nil},
		{"[a", []string{"[a"}, []string{"a"}},
		{"[a/b]", []string{"[a/b]"}, []string{"a"}},
		{"{a,b}.ts", []string{"a.ts", "b.ts"}, []string{"c.ts"}},
		{"{a}.ts", []string{"{a}.ts"}, []string{"a.ts"}},
		{"{a,{b,c}}", []string{"a", "b", "c"}, nil},
		{"a{b,c{d,e}}f", []string{"abf", "acdf", "acef"}, []string{"acf"}},
		{"{a{b,c}}", []string{"{ab}", "{ac}"}, nil},
		{"a{,b}", []string{"a", "ab"}, nil},
		{"{1..3}", []string{"1", "2", "3"}, []string{"4"}},
		{"{01..03}", []string{"02"}, []string{"2"}},
		{"{3..1..2}", []string{"3", "1"}, []string{"2"}},
		{"{a..c}", []string{"b"}, []string{"d"}},
		{"{a,b", []string{"{a,b"}, nil},
		{"a,b}", []string{"a,b}"}, nil},
		{"{}", []string{"{}"}, nil},
		{`{a\,b,c}`, []string{"a,b", "c"}, []string{"a"}},
		{"{a,b}{c,d}", []string{"ac", "bd"}, []string{"ab"}},
		{"*.{ts,js}", []string{"x.js"}, []string{"x.go"}},
		{"{a,b}/**", []string{"a/x", "b/y/z"}, []string{"a", "c/x"}},
		{"?(a|b)c", []string{"c", "ac", "bc"}, []string{"abc"}},
		{"*(a|b)c", []string{"ababc", "c"}, []string{"xc"}},
		{"+(a)", []string{"aaa"}, []string{"b"}},
		{"@(a|b)*", []string{"bx"}, []string{"cx"}},
		{"*@(a|b)", []string{"xb"}, []string{"xc"}},
		{"@(a|*(b|c)d)", []string{"a", "bcd", "d"}, []string{"b"}},
		{"*(a", []string{"(a", "x(a"}, []string{"a"}},
		{"(a)", []string{"(a)"}, []string{"a"}},
		{"!*.ts", []string{"a.js"}, []string{"a.ts"}},
		{"!!*.ts", []string{"a.ts"}, []string{"a.js"}},
		{`\*`, []string{"*"}, []string{"a"}},
		{"^a$", []string{"^a$"}, []string{"a"}},
		{"*\xff", []string{"a\xff"}, []string{"a"}},
	}
	for _, tt := range tests {
		p, err := newCompiler().pattern(tt.pattern, maxExpanded)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		for _, s := range tt.yes {
			if !p.match(s) {
				t.Errorf("%q does not match %q", tt.pattern, s)
			}
		}
		for _, s := range tt.no {
			if p.match(s) {
				t.Errorf("%q matches %q", tt.pattern, s)
			}
		}
	}
}

func TestPlainPatterns(t *testing.T) {
	p, err := newCompiler().search("deep.txt")
	if err != nil || !p.match("deep.txt") || !p.match("sub/deep.txt") || p.match("deep.txt/x") {
		t.Error("a plain word names an entry at any depth", err)
	}
	p, err = newCompiler().search("sub/deep.txt")
	if err != nil || !p.match("sub/deep.txt") || p.match("x/sub/deep.txt") {
		t.Error("a path is anchored", err)
	}
	tests := map[string]struct{ yes, no []string }{
		"node_modules": {[]string{"node_modules", "p/node_modules"}, []string{"node_modules2"}},
		"a/b":          {[]string{"a/b", "x/a/b"}, []string{"a", "b"}},
		"*.log":        {[]string{"x.log"}, []string{"p/x.log"}},
		"**/*.log":     {[]string{"x.log", "p/x.log"}, nil},
		"{a,b}":        {[]string{"a", "p/b"}, nil},
	}
	for exclude, tt := range tests {
		p, err := newCompiler().exclude([]string{exclude})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tt.yes {
			if !matchesAny(p, s) {
				t.Errorf("%q does not exclude %q", exclude, s)
			}
		}
		for _, s := range tt.no {
			if matchesAny(p, s) {
				t.Errorf("%q excludes %q", exclude, s)
			}
		}
	}
}

func TestPatternsRefused(t *testing.T) {
	for _, s := range []string{
		"{1..1001}", strings.Repeat("{a,b}", 10), strings.Repeat("{a,b}", 4000), "{" + strings.Repeat("a,", 1001) + "}",
		"x!(a)", strings.Repeat("a", 1025), "{1..999999999}", strings.Repeat("+(x", 2000) + strings.Repeat(")", 2000),
	} {
		if _, err := newCompiler().pattern(s, maxExpanded); fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%.40q… is not refused: %v", s, err)
		}
	}
}

func TestExcludesShareALimit(t *testing.T) {
	if _, err := newCompiler().exclude([]string{"{1..500}", "{1..500}"}); err != nil {
		t.Error(err)
	}
	for _, list := range [][]string{{"{1..500}", "{1..501}"}, {"{1..1000}", "a"}} {
		if _, err := newCompiler().exclude(list); fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{"**/*.{ts,js}", "[[:alpha:]-z]", "@(a|*(b))", "!a", `\`, "{1..3}", "[^", "a/**/b"} {
		f.Add(s, "a/b.ts")
	}
	f.Fuzz(func(t *testing.T, s, path string) {
		p, err := newCompiler().pattern(s, maxExpanded)
		if err != nil {
			if fault.CodeOf(err) != fault.RequestInvalid {
				t.Fatal(err)
			}
			return
		}
		for _, segments := range p.alternatives {
			if len(segments) > len(s)+1 {
				t.Fatal("more segments than bytes")
			}
		}
		// A name that needs no glob is matched by itself.
		if !magic(s) && s != "" && !strings.Contains("/"+s+"/", "/./") && !strings.Contains("/"+s+"/", "/../") &&
			!strings.Contains("/"+s+"/", "//") && !p.match(s) {
			t.Errorf("%q does not match itself", s)
		}
		p.match(path)
	})
}
