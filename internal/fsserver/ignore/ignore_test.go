// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		list, path string
		dir        bool
		want       Verdict
	}{
		{"a", "a", false, Ignored},
		{"a", "x/a", false, Ignored},
		{"a", "ab", false, Silent},
		{"/a", "a", false, Ignored},
		{"/a", "x/a", false, Silent},
		{"x/a", "x/a", false, Ignored},
		{"x/a", "y/x/a", false, Silent},
		{"a/", "a", false, Silent},
		{"a/", "a", true, Ignored},
		{"a/", "x/a", true, Ignored},
		{"*.o", "x/y.o", false, Ignored},
		{"*.o\n!y.o", "x/y.o", false, Kept},
		{"!y.o\n*.o", "y.o", false, Ignored},
		{"x/*.o", "x/y.o", false, Ignored},
		{"x/*.o", "x/y/z.o", false, Silent},
		{"**/a", "a", false, Ignored},
		{"**/a", "x/y/a", false, Ignored},
		{"x/**/a", "x/a", false, Ignored},
		{"x/**/a", "x/y/z/a", false, Ignored},
		{"x/**", "x/y/z", false, Ignored},
		{"x/**", "x", true, Silent},
		{"x**a/", "xya", true, Ignored},
		{"# a", "# a", false, Silent},
		{`\#a`, "#a", false, Ignored},
		{`\!a`, "!a", false, Ignored},
		{"a  ", "a", false, Ignored},
		{`a\ `, "a ", false, Ignored},
		{"a\t", "a", false, Silent},
		{"a\r\n", "a", false, Ignored},
		{"\ufeffa", "a", false, Ignored},
		{"[a-c]x", "bx", false, Ignored},
		{"[!a]", "a", false, Silent},
		{"[^a]", "b", false, Ignored},
		{"[]]", "]", false, Ignored},
		{"[[:digit:]]x", "5x", false, Ignored},
		{"[[:nope:]]", "n", false, Silent},
		{"[a", "[a", false, Silent},
		{`[\]]`, "]", false, Ignored},
		{`[a-\c]`, "b", false, Ignored},
		{"[a-]", "-", false, Ignored},
		{"a[/]b", "a/b", false, Silent},
		{"?", "é", false, Silent},
		{"??", "é", false, Ignored},
		{`a\`, "a", false, Silent},
		{"", "", false, Silent},
		{"/", "a", true, Silent},
		{strings.Repeat("x", MaxPattern+1), strings.Repeat("x", MaxPattern+1), false, Silent},
	}
	for _, tt := range tests {
		if got := Parse([]byte(tt.list)).Match(tt.path, tt.dir); got != tt.want {
			t.Errorf("%q on %q (dir %t) is %d, want %d", tt.list, tt.path, tt.dir, got, tt.want)
		}
	}
	if !Parse([]byte("\n# x\n")).Empty() {
		t.Error("a list of comments is not empty")
	}
}

// TestHostile: a list that was made to take time takes none.
func TestHostile(t *testing.T) {
	l := Parse([]byte(strings.Repeat("*a", 2000) + "b\n" + strings.Repeat("**/*a/", 600) + "b"))
	if l.Match(strings.Repeat("a", 255), false) != Silent || l.Match(strings.Repeat("aaaa/", 800)+"a", false) != Silent {
		t.Error("it matches")
	}
}

// FuzzParse: any bytes are a list, and any name can be held against it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a\n!b/\n", `[[:alpha:]-\]]`, "**/x/**", "\xff[\x00-\xff]", "a**b/*", `\`} {
		f.Add([]byte(s), "x/y")
	}
	f.Fuzz(func(t *testing.T, list []byte, path string) {
		l := Parse(list)
		if l.Match(path, true) == Silent && l.Match(path, false) != Silent {
			t.Error("a file is named by a pattern that doesn't name a directory")
		}
	})
}
