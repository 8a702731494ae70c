// SPDX-License-Identifier: Apache-2.0

package glob_test

import (
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/glob"
	"pgregory.net/rapid"
)

func above(p glob.Pattern, name string) bool {
	path := glob.Prepare(name)
	return p.Above(&path)
}

func TestAbove(t *testing.T) {
	tests := []struct {
		pattern string
		yes, no string // separated by blanks
	}{
		{"**/.claude/settings*.json", ".claude x/.claude x/.CLAUDE a/b/.claude .claude/.claude", "a x/a .claude/settings.json .claude/x x.claude"},
		{"**/.claude/hooks/**", ".claude", ".claude/hooks .claude/hooks/x a"},
		{"**/.git/modules/**/hooks/**", ".git .git/modules .git/modules/a/b .git/modules/hooks", "a .git/x modules"},
		{".config/autostart/**", ".config .Config", "x/.config .config/autostart .config/x"},
		{"home/*/.bashrc", "home home/a", "a home/a/b home/a/.bashrc"},
		{".config/*/User/**", ".config .config/Code", ".config/a/b x"},
		{"cfg/postern/policy.yaml", "cfg cfg/postern", "cfg/postern/policy.yaml cfg/x postern"},
		{"release-*/deploy.sh", "release-1", "release x/release-1"},
		{"**/.*/**/.claude/**", "", ".a .a/b a .a/.claude .claude"}, // .* says too little
		{"*/x", "", "a x"},
		{"v*/deploy.sh", "", "v v1"},
		{"ve*/deploy.sh", "ve ve1", "v"},
		{"v/deploy.sh", "v", "ve"},
		{"**/x", "", "a x"},
		{"**", "", "a a/b"},
		{"a/**", "", "a a/b"},
		{"**/a/**/b", "a a/x x/a/y a/b", "x b"},
		{"a", "", "a a/b"},
	}
	for _, tc := range tests {
		p := folded(t, tc.pattern)
		for want, names := range map[bool]string{true: tc.yes, false: tc.no} {
			for name := range strings.FieldsSeq(names) {
				if got := above(p, name); got != want {
					t.Errorf("%q.Above(%q) = %v", tc.pattern, name, got)
				}
			}
		}
		if above(p, "") {
			t.Errorf("%q is beneath the root by its name", tc.pattern)
		}
	}
	if exact := compile(t, "A/b"); above(exact, "a") || !above(exact, "A") {
		t.Error("an exact pattern folds")
	}
	if (&glob.Pattern{}).Above(&glob.Path{}) {
		t.Error("the zero pattern is beneath something")
	}
}

// meant returns how a segment may read: any text that it matches.
func meant(seg string) []string {
	switch seg {
	case "**":
		return []string{"", "v", "v/ab"}
	case "*":
		return []string{"w", "ab"}
	}
	return []string{strings.NewReplacer("*", "q", "?", "b", "[a-c]", "b").Replace(seg)}
}

// names are the names that the segments can make.
func names(segs []string) []string {
	all := []string{""}
	for _, seg := range segs {
		var longer []string
		for _, start := range all {
			for _, text := range meant(seg) {
				longer = append(longer, strings.Trim(start+"/"+text, "/"))
			}
		}
		all = longer
	}
	return all
}

// says reports whether a segment of the pattern has two letters or is all letters.
func says(segs []string) bool {
	for _, seg := range segs {
		if n := len(strings.NewReplacer("**", "", "*", "", "?", "", "[a-c]", "").Replace(seg)); n > 1 || n == len(seg) {
			return true
		}
	}
	return false
}

// aboveByNames is the oracle: some start of the pattern names path, and the rest of it
// something beneath, found by trying what each may mean.
func aboveByNames(t testing.TB, pattern, path string) bool {
	segs := strings.Split(pattern, "/")
	for i := 1; i < len(segs); i++ {
		start, rest := segs[:i], segs[i:]
		if strings.Trim(strings.Join(rest, ""), "*") == "" && !strings.Contains("/"+strings.Join(rest, "/")+"/", "/*/") || !says(start) {
			continue
		}
		open := append(append([]string{}, start...), "**") // a ** may end on either side
		if segs[i] != "**" && segs[i-1] != "**" {
			open = start
		}
		if p := folded(t, strings.Join(open, "/")); !p.Match(path) {
			continue
		}
		for _, below := range names(rest) {
			if p := folded(t, pattern); below != "" && p.Match(path+"/"+below) {
				return true
			}
		}
	}
	return false
}

var (
	genSegment = rapid.SampledFrom([]string{"**", "*", "?", "a", "ab", "a*", "ab*", "*ab", "[a-c]", ".x", "B"})
	genAbove   = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(genSegment, 1, 5).Draw(t, "segments"), "/")
	})
	genPath = rapid.StringMatching(`(a|b|ab|AB|abq|qab|\.x|v|w)(/(a|b|ab|AB|abq|qab|\.x|v|w)){0,4}`)
)

// TestAboveOracle: the one walk over the pattern finds what trying every split of it
// and every name that is meant by the rest does.
func TestAboveOracle(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		pattern := genAbove.Draw(rt, "pattern")
		if strings.Contains(pattern, "**/**") {
			return
		}
		path := genPath.Draw(rt, "path")
		if all := names(strings.Split(pattern, "/")); rapid.Bool().Draw(rt, "of the pattern") {
			parts := strings.Split(all[rapid.IntRange(0, len(all)-1).Draw(rt, "which")], "/")
			path = strings.Join(parts[:rapid.IntRange(0, len(parts)).Draw(rt, "how much")], "/")
		}
		got, want := above(folded(t, pattern), path), path != "" && aboveByNames(t, pattern, path)
		if got != want {
			rt.Fatalf("%q.Above(%q) = %v, trying says %v", pattern, path, got, want)
		}
		if got {
			found++
		}
	})
	if found == 0 {
		t.Error("no pattern was above: this run proves nothing")
	}
}

// FuzzAbove: what a pattern says of a name that it is above holds for other
// spellings of the name, and for all that starts with the same segments of it.
func FuzzAbove(f *testing.F) {
	for _, s := range [][2]string{{"**/.claude/hooks/**", "x/.claude"}, {"a/*/b", "a/x"}, {"*a*a*/b", "aaaa"}, {"[!a]b/c", "Bb"}, {"ß/x", "SS"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := glob.CompileFolded(pattern)
		if err != nil || len(name) > 1<<10 {
			return
		}
		if exact, _ := glob.Compile(pattern); above(exact, name) && !above(p, name) {
			t.Fatalf("%q is above %q byte for byte, and not folded", pattern, name)
		}
		if !above(p, name) {
			return
		}
		if longer, err := glob.CompileFolded(pattern + "/zz"); err == nil && !above(longer, name) {
			t.Fatalf("%q is above %q, and %q is not", pattern, name, longer)
		}
		if deeper, err := glob.CompileFolded("**/" + pattern); err == nil && !above(deeper, "q/"+name) && !strings.HasPrefix(pattern, "/") {
			t.Fatalf("%q is above %q, and %q not above it in a folder", pattern, name, deeper)
		}
	})
}

// TestBelow: what a name is below a folder, which other spellings of it don't hide.
func TestBelow(t *testing.T) {
	for _, tc := range []struct{ name, dir, rest string }{
		{"a/b/c", "a", "b/c"},
		{"a/b", "a/b", ""},
		{"A/B/C", "a/b", "C"},
		{"a./B /x", "a/b", "x"},
		{"\uff21/\u00df/Y", "a/ss", "Y"},
		{"a/b", "", "a/b"},
		{"", "", ""},
		{"ab/c", "a", "no"},
		{"a", "a/b", "no"},
		{"b/a", "a", "no"},
		{"", "a", "no"},
		{"\u00df", "s", "no"},
	} {
		p := glob.Prepare(tc.name)
		rest, ok := p.Below(tc.dir)
		if ok != (tc.rest != "no") || ok && rest != tc.rest {
			t.Errorf("%q below %q: %q, %v", tc.name, tc.dir, rest, ok)
		}
	}
}
