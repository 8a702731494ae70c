// SPDX-License-Identifier: Apache-2.0

package grep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
)

func compile(t testing.TB, query string) *Query {
	t.Helper()
	q, err := Compile(query, false, false)
	if err != nil {
		t.Fatal(query, err)
	}
	return q
}

func scan(t testing.TB, q *Query, text string, o Options) Result {
	t.Helper()
	if o.Matches == 0 {
		o.Matches = 1000
	}
	res, err := new(Scanner).Scan(t.Context(), strings.NewReader(text), int64(len(text)), q, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// shown draws a result as grep does.
func shown(r Result) string {
	var b strings.Builder
	for _, l := range r.Lines {
		fmt.Fprintf(&b, "%d%s%s\n", l.Number, map[bool]string{true: ":", false: "-"}[l.Match], l.Text)
	}
	return b.String()
}

func TestQuery(t *testing.T) {
	for _, tt := range []struct{ query, text, want string }{
		{"b", "a\nb\nc", "2:b\n"},
		{"^", "a\n\nb\n", "1:a\n2:\n3:b\n"},
		{"^$", "a\n\nb\n", "2:\n"},
		{"$", "a\nb", "1:a\n2:b\n"},
		{`\Aa\z`, "ba\na\n", "2:a\n"},
		{"a.b", "a\nb\naxb", "3:axb\n"},
		{"(?s)a.b", "a\nb", ""},
		{"a[^x]b", "a\nb\na-b", "3:a-b\n"},
		{`a\s*b`, "a\nb\na b", "3:a b\n"},
		{"a$", "a\r\nab\r\n", "1:a\n"},
		{"a\r", "a\r\n", "1:a\n"},
		{"(?i)B", "b\nc", "1:b\n"},
		{`\bfoo\(`, "foo(\nxfoo(\nfoo", "1:foo(\n"},
		{"(ab)+c{2,}", "abc\nababcc", "2:ababcc\n"},
		{"x|y", "x\nz\ny", "1:x\n3:y\n"},
		{"é", "\ufeffé\n", "1:é\n"},
		{"^é", "\ufeffé\n", "1:é\n"},
		{"a.c", "a\xffc\n", "1:a\xffc\n"},
		{"a\ufffdc", "a\xffc\n", "1:a\xffc\n"},
		{"x*", "a\n", "1:a\n"},
		{"x*", "", ""},
	} {
		if got := shown(scan(t, compile(t, tt.query), tt.text, Options{})); got != tt.want {
			t.Errorf("%q in %q: %q, want %q", tt.query, tt.text, got, tt.want)
		}
	}
	q, err := Compile("a.(", true, true)
	if err != nil || shown(scan(t, q, "axx(\nA.(\n", Options{})) != "2:A.(\n" {
		t.Error("a literal query", err)
	}
}

// TestRefusedQueries: what is no query is refused with the place.
func TestRefusedQueries(t *testing.T) {
	for query, says := range map[string]string{
		"": "empty", strings.Repeat("x", maxQuery+1): "longer than 1024 bytes", "é(b": "missing closing ): at character 1",
		"ab[z-a]": "invalid character class range at character 4", "é**": "invalid nested repetition operator at character 2",
		`a\`: "trailing backslash at end of expression at character 2", `a\nb`: "line feed", "a\nb": "line feed", `[\n]`: "line feed",
		"(?:x{100}y){10}z{2}": "1000 steps", `\8`: "invalid escape sequence at character 1",
	} {
		_, err := Compile(query, false, false)
		if fault.CodeOf(err) != fault.RequestInvalid || !strings.Contains(fault.As(err).Rule, strings.Replace(says, ": at", " at", 1)) {
			t.Errorf("%.40q: %v, want %q", query, err, says)
		}
	}
}

func TestContext(t *testing.T) {
	const text = "1\n2\nx3\n4\n5\n6\nx7\nx8\n9\n"
	for _, tt := range []struct {
		o    Options
		want string
		more bool
	}{
		{Options{Context: 1}, "2-2\n3:x3\n4-4\n6-6\n7:x7\n8:x8\n9-9\n", false},
		{Options{Context: 9}, "1-1\n2-2\n3:x3\n4-4\n5-5\n6-6\n7:x7\n8:x8\n9-9\n", false},
		{Options{Matches: 1}, "3:x3\n", true},
		{Options{Matches: 1, Context: 1}, "2-2\n3:x3\n4-4\n", true},
		{Options{After: 3, Matches: 1}, "7:x7\n", true},
		{Options{After: 7, Context: 1}, "7-x7\n8:x8\n9-9\n", false},
		{Options{After: 8}, "", false},
	} {
		r := scan(t, compile(t, "x"), text, tt.o)
		if got := shown(r); got != tt.want || r.More != tt.more {
			t.Errorf("%+v: %q more %t, want %q", tt.o, got, r.More, tt.want)
		}
	}
}

// TestAgainstLines holds a scan against each line by itself, in texts that are
// longer than a block.
func TestAgainstLines(t *testing.T) {
	queries := []string{"a", "aé", "^a", "b$", "^$", "a.b", "[^a]b", `a+\W`, "a|é", "^a*$", "(a)(b)?", "ba{2,3}", `\bb`, ".*"}
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(0, 12).Draw(t, "lines") {
			unit := rapid.StringOfN(rapid.RuneFrom([]rune("abé ")), 0, 6, -1).Draw(t, "unit")
			lines = append(lines, strings.Repeat(unit, rapid.SampledFrom([]int{1, 1, 2, 9000}).Draw(t, "times")))
		}
		text := strings.Join(lines, "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
		query := rapid.SampledFrom(queries).Draw(t, "query")
		near := rapid.IntRange(0, 3).Draw(t, "context")
		q, err := Compile(query, false, false)
		if err != nil {
			t.Fatal(err)
		}
		got, err := new(Scanner).Scan(context.Background(), strings.NewReader(text), int64(len(text)), q, Options{Matches: 1000, Context: near})
		if err != nil || got.Binary || got.Long > 0 {
			t.Fatal(got, err)
		}
		var have []string
		for _, l := range got.Lines {
			have = append(have, fmt.Sprint(l.Number, l.Match))
		}
		if d := cmp.Diff(naive(text, query, near), have); d != "" {
			t.Fatalf("%q, context %d: -lines +scan\n%s", query, near, d)
		}
	})
}

// naive is every line by itself.
func naive(text, query string, near int) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	re := regexp.MustCompile(query)
	matches := make([]bool, len(lines))
	for i, line := range lines {
		matches[i] = re.MatchString(strings.TrimSuffix(line, "\n"))
	}
	var want []string
	for i := range lines {
		for j := max(0, i-near); j <= min(len(lines)-1, i+near); j++ {
			if matches[j] {
				want = append(want, fmt.Sprint(i+1, matches[i]))
				break
			}
		}
	}
	return want
}

// reader is a file of one byte again and again, that counts what is asked.
type reader struct {
	c    byte
	most int
}

func (r *reader) ReadAt(p []byte, _ int64) (int, error) {
	r.most = max(r.most, len(p))
	for i := range p {
		p[i] = r.c
	}
	return len(p), nil
}

// TestBounds: neither a long line nor many matches take more than their bounds.
func TestBounds(t *testing.T) {
	var s Scanner
	r, err := s.Scan(t.Context(), &reader{c: 'a'}, 50<<20, compile(t, "a"), Options{Matches: 10})
	if err != nil || r.Long != 1 || r.Matches != 1 || len(s.buf) != MaxLine {
		t.Errorf("%d matches, %d long, %d bytes held, %v", r.Matches, r.Long, len(s.buf), err)
	}
	line := strings.Repeat("é", 5000)
	r = scan(t, compile(t, "match"), strings.Repeat(line+"match"+line+"\n", 2000), Options{Matches: 1 << 30})
	text := 0
	for _, l := range r.Lines {
		text += len(l.Text)
		if !utf8.ValidString(l.Text) || !strings.Contains(l.Text, "match") || !l.Cut || len(l.Text) > maxShown+2*len(Cut) {
			t.Fatalf("%+v", l)
		}
	}
	if !r.More || text > MaxText+2*maxShown {
		t.Errorf("more %t, %d bytes", r.More, text)
	}
	if r = scan(t, compile(t, "a"), strings.Repeat("a\n", 100)+strings.Repeat("\x00", block)+"a\n", Options{}); !r.Binary || r.Matches != 0 {
		t.Errorf("binary %t, %d matches", r.Binary, r.Matches)
	}
	if r = scan(t, compile(t, "a"), strings.Repeat("a\n", 100)+strings.Repeat("b\n", block)+"\x00\na\n", Options{}); !r.Binary || r.Matches != 100 {
		t.Errorf("binary %t, %d matches", r.Binary, r.Matches)
	}
	long := strings.Repeat("x", MaxLine+block) + "a\na\n"
	if r = scan(t, compile(t, "a"), long+strings.Repeat("y", 100), Options{}); r.Long != 1 || shown(r) != "2:a\n" {
		t.Errorf("%d long, %q", r.Long, shown(r))
	}
}

// TestExcerpt: the match is in what is shown, wherever it lies.
func TestExcerpt(t *testing.T) {
	for _, at := range []int{0, 1, 99, 100, 101, 398, 399, 400, 401, 1000, 1500} {
		line := strings.Repeat("é", at/2) + strings.Repeat("-", at%2) + "MATCH" + strings.Repeat("é", (2000-at)/2)
		l := excerpt([]byte(line), at, at+5, 1)
		if !strings.Contains(l.Text, "MATCH") || !utf8.ValidString(l.Text) {
			t.Errorf("at %d: %q", at, l.Text)
		}
	}
	if l := excerpt([]byte(strings.Repeat("\x80", 2000)), 700, 1900, 1); len(l.Text) > maxShown+2*len(Cut) {
		t.Errorf("%d bytes", len(l.Text))
	}
}

type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errors.New("no") }

type empty struct{}

func (empty) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func TestEnds(t *testing.T) {
	q := compile(t, "a")
	if _, err := new(Scanner).Scan(t.Context(), broken{}, 10, q, Options{}); err == nil {
		t.Error("an error of the reader is lost")
	}
	if r, err := new(Scanner).Scan(t.Context(), empty{}, 10, q, Options{}); err != nil || r.Matches != 0 {
		t.Error(r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(Scanner).Scan(ctx, &reader{c: 'b'}, 1<<40, q, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzCompile: any query is compiled or refused, and any text searched.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{"a", "(?i)[^\\n]+$", "\\pL{3}", "(", "[[:^alpha:]]*?", "\\Q.\\E", "(?U)a+(?-s).", "\xff", "x{2,}|^"} {
		f.Add(s, "a\nb\xff\r\nABC", false)
	}
	f.Fuzz(func(t *testing.T, query, text string, anyCase bool) {
		q, err := Compile(query, false, anyCase)
		if err != nil {
			return
		}
		r, err := new(Scanner).Scan(t.Context(), strings.NewReader(text), int64(len(text)), q, Options{Matches: 100, Context: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range r.Lines {
			if i > 0 && l.Number <= r.Lines[i-1].Number || strings.Contains(l.Text, "\n") {
				t.Fatalf("%+v", r.Lines)
			}
		}
	})
}
