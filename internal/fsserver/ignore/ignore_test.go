// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"math"
	"strings"
	"testing"
)

// parse and verdict are without bounds.
func parse(content string) List {
	l, _ := (&Budget{math.MaxInt, math.MaxInt}).Parse(content)
	return l
}

func verdict(l List, path string, dir bool) Verdict {
	steps := math.MaxInt
	return l.Match(path, dir, &steps)
}

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
		if got := verdict(parse(tt.list), tt.path, tt.dir); got != tt.want {
			t.Errorf("%q on %q (dir %t) is %d, want %d", tt.list, tt.path, tt.dir, got, tt.want)
		}
	}
	if !parse("\n# x\n").Empty() {
		t.Error("a list of comments is not empty")
	}
}

// TestHostile: a list that was made to take time ends with its steps, and with
// enough of them says what git says.
func TestHostile(t *testing.T) {
	deep := strings.Repeat("aaaa/", 800) + "a"
	l := parse(strings.Repeat("*a", 2000) + "b\n" + strings.Repeat("**/*a/", 600) + "b")
	if verdict(l, strings.Repeat("a", 255), false) != Silent || verdict(l, deep, false) != Silent {
		t.Error("it matches")
	}
	steps := 1000
	if v := l.Match(deep, false, &steps); v != Silent || steps >= 0 {
		t.Errorf("it is %d with %d steps left", v, steps)
	}
	const most = 2000
	for _, list := range []string{"a", "*a", "**/a"} {
		steps := most
		if v := parse(list).Match(deep, false, &steps); v != Ignored || steps < 0 || steps == most {
			t.Errorf("%s is %d with %d steps left", list, v, steps)
		}
	}
}

// TestBudget: a list that holds too much is refused whole, and takes nothing.
func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		list string
		room Budget
		ok   bool
		left Budget
	}{
		{"a\nb", Budget{3, 2}, true, Budget{0, 0}},
		{"a\nb", Budget{2, 2}, false, Budget{2, 2}},
		{"a\nb", Budget{3, 1}, false, Budget{3, 1}},
		{"# a\nb", Budget{9, 1}, true, Budget{4, 0}},
		{"[a]", Budget{3 + setSize, 1}, true, Budget{0, 0}},
		{"[a]", Budget{2 + setSize, 1}, false, Budget{2 + setSize, 1}},
	} {
		b := tt.room
		if _, ok := b.Parse(tt.list); ok != tt.ok || b != tt.left {
			t.Errorf("%q in %v: %t, %v left", tt.list, tt.room, ok, b)
		}
	}
}

// FuzzParse: any bytes are a list, and any name can be held against it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a\n!b/\n", `[[:alpha:]-\]]`, "**/x/**", "\xff[\x00-\xff]", "a**b/*", `\`} {
		f.Add([]byte(s), "x/y")
	}
	f.Fuzz(func(t *testing.T, list []byte, path string) {
		l := parse(string(list))
		if verdict(l, path, true) == Silent && verdict(l, path, false) != Silent {
			t.Error("a file is named by a pattern that doesn't name a directory")
		}
	})
}
