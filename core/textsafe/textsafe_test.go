// SPDX-License-Identifier: Apache-2.0

package textsafe

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// vector is one line of vectors/text/text.jsonl.
type vector struct {
	ID        string   `json:"id"`
	Mode      string   `json:"mode"`
	Input     *string  `json:"input"`
	InputHex  string   `json:"input_hex"`
	InputJSON string   `json:"input_json"`
	PartsHex  []string `json:"parts_hex"`
	Right     string   `json:"right"`
}

func (v vector) parts(t *testing.T) []string {
	t.Helper()
	if v.Input != nil {
		return []string{*v.Input}
	}
	if v.InputJSON != "" {
		var s string
		if err := json.Unmarshal([]byte(v.InputJSON), &s); err != nil {
			t.Fatal(err)
		}
		return []string{s}
	}
	parts := v.PartsHex
	if v.InputHex != "" {
		parts = []string{v.InputHex}
	}
	var out []string
	for _, p := range parts {
		b, err := hex.DecodeString(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func draw(mode, s string) string {
	switch mode {
	case "line":
		return Clean(s).String()
	case "block":
		return Block(s).String()
	default:
		return Clean(s).HTML()
	}
}

func TestVectors(t *testing.T) {
	f, err := os.Open("../../vectors/text/text.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for sc := bufio.NewScanner(f); sc.Scan(); n++ {
		var v vector
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		t.Run(v.ID, func(t *testing.T) {
			parts := v.parts(t)
			if got := draw(v.Mode, strings.Join(parts, "")); got != v.Right {
				t.Errorf("%s = %q, want %q", v.Mode, got, v.Right)
			}
			if v.Mode == "html" {
				return
			}
			if got := stream(t, v.Mode == "block", parts...); got != v.Right {
				t.Errorf("streamed %s = %q, want %q", v.Mode, got, v.Right)
			}
		})
	}
	if n < 50 {
		t.Fatalf("only %d vectors", n)
	}
}

func stream(t interface{ Fatal(...any) }, block bool, parts ...string) string {
	var b bytes.Buffer
	w := NewLineWriter(&b)
	if block {
		w = NewBlockWriter(&b)
	}
	for _, p := range parts {
		if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestClean(t *testing.T) {
	tests := map[string]struct {
		in, line string
		hidden   int
	}{
		"empty":                      {"", "", 0},
		"selectors, two":             {"a\ufe0f\ufe0fb", "a\ufe0f\ufe0fb", 0},
		"selectors, three":           {"a\ufe0f\ufe0f\ufe0fb", "ab", 3},
		"selectors, three at end":    {"a\ufe0f\ufe0f\ufe0f", "a", 3},
		"selectors, planes mixed":    {"a\ufe0f\U000e0101\u180bb", "ab", 3},
		"selectors around a removed": {"a\ufe0f\u200b\ufe0f\u00ad\ufe0fb", "ab", 5},
		"two around a removed":       {"a\ufe0f\u200b\ufe0fb", "a\ufe0f\ufe0fb", 1},
		"one, then a control":        {"\ufe0f\x1b", "\ufe0f ", 1},
		"three, then a control":      {"\ufe0f\ufe0f\ufe0f\x1b", " ", 4},
		"runs apart":                 {"\ufe0f\ufe0fé\ufe0f\ufe0f", "\ufe0f\ufe0fé\ufe0f\ufe0f", 0},
		"breaks aren't hidden":       {"a\tb\nc\rd", "a b c d", 0},
		"separators aren't hidden":   {"a\u2028b\u2029c", "a b c", 0},
		"joiners":                    {"a\u200c\u200db", "a\u200c\u200db", 0},
		"hyphens and quotes":         {"\u2010\u2019\u2026\u202f", "\u2010\u2019\u2026\u202f", 0},
		"fillers":                    {"\u115f\u1160\u3164\uffa0", "    ", 0},
		"noncharacters":              {"\ufdd0\ufdef\uffff\U0001fffe\U0010ffff", "\ufffd\ufffd\ufffd\ufffd\ufffd", 0},
		"forms kept":                 {"\ufe20\uff21\ufffc\ufffd", "\ufe20\uff21\ufffc\ufffd", 0},
		"format beyond the BMP":      {"\U0001bca0\U0001d17a\U000e0001\U000e0fff", "", 4},
		"emoji":                      {"\U0001f44d\U0001f3fd", "\U0001f44d\U0001f3fd", 0},
		"mongolian":                  {"\u180b\u180e\u1820", "\u180b\u1820", 1},
		"soft hyphen, arabic mark":   {"\u00ad\u061cé", "é", 2},
		"late in a long text":        {strings.Repeat("x", 40) + "\x7f", strings.Repeat("x", 40) + " ", 1},
		"invalid":                    {"\xff\xed\xa0\x80", "\ufffd\ufffd\ufffd\ufffd", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Clean(tt.in).String(); got != tt.line {
				t.Errorf("Clean = %+q, want %+q", got, tt.line)
			}
			if got := Hidden(tt.in); got != tt.hidden {
				t.Errorf("Hidden = %d, want %d", got, tt.hidden)
			}
		})
	}
}

// class by the letter of the contract, code point by code point.
func contractClass(r rune) class {
	in := func(ranges ...[2]rune) bool {
		for _, x := range ranges {
			if r >= x[0] && r <= x[1] {
				return true
			}
		}
		return false
	}
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return breaks
	case in([2]rune{0, 0x1F}, [2]rune{0x7F, 0x9F}):
		return control
	case in([2]rune{0x2028, 0x2029}, [2]rune{0x115F, 0x1160}, [2]rune{0x3164, 0x3164}, [2]rune{0xFFA0, 0xFFA0}):
		return blank
	case in([2]rune{0xFDD0, 0xFDEF}) || r&0xFFFE == 0xFFFE:
		return replace
	case in([2]rune{0x180B, 0x180D}, [2]rune{0x180F, 0x180F}, [2]rune{0xFE00, 0xFE0F}, [2]rune{0xE0100, 0xE01EF}):
		return variation
	case in([2]rune{0xAD, 0xAD}, [2]rune{0x61C, 0x61C}, [2]rune{0x180E, 0x180E}, [2]rune{0x200B, 0x200B},
		[2]rune{0x200E, 0x200F}, [2]rune{0x202A, 0x202E}, [2]rune{0x2060, 0x206F}, [2]rune{0xFEFF, 0xFEFF},
		[2]rune{0xFFF9, 0xFFFB}, [2]rune{0x1BCA0, 0x1BCA3}, [2]rune{0x1D173, 0x1D17A}, [2]rune{0xE0000, 0xE0FFF}):
		return remove
	}
	return keep
}

func TestEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if got, want := classify(r), contractClass(r); utf8.ValidRune(r) && got != want {
			t.Errorf("classify(%U) = %d, want %d", r, got, want)
		}
	}
}

func TestSkipPlainAgreesWithBytes(t *testing.T) {
	for _, lines := range []bool{false, true} {
		for b := range 256 {
			for at := range 17 {
				s := []byte(strings.Repeat("m", 20))
				s[at] = byte(b)
				want := at
				if b >= ' ' && b < 0x7F || lines && (b == '\t' || b == '\n') {
					want = len(s)
				}
				if got := skipPlain(string(s), 0, lines); got != want {
					t.Fatalf("byte %#x at %d: %d, want %d", b, at, got, want)
				}
			}
		}
	}
}

// What is skipped unseen must be what the tables keep, and well formed.
func TestSkipLettersAgreesWithTables(t *testing.T) {
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		s := string(r) + "xx"
		if skipLetters(s, 0) > 0 && (classify(r) != keep || !utf8.ValidRune(r)) {
			t.Errorf("%U is skipped", r)
		}
	}
	for a := range 256 {
		for b := range 256 {
			for _, c := range []byte{0x00, 0x7F, 0x80, 0xA4, 0xBF, 0xC0, 0xFF} {
				s := string([]byte{byte(a), byte(b), c, 'x'})
				if n := skipLetters(s, 0); !utf8.ValidString(s[:n]) {
					t.Errorf("%x is skipped", s[:n])
				}
			}
		}
	}
}

func TestNoAllocationWithoutChange(t *testing.T) {
	for _, s := range []string{"plain ascii text", "日本語とemoji 👍🏽", "שלום"} {
		if n := testing.AllocsPerRun(100, func() {
			if Clean(s).String() != s || Block(s).String() != s || Hidden(s) != 0 || Name(s) != s {
				t.Fatal(s)
			}
		}); n != 0 {
			t.Errorf("%q: %v allocations", s, n)
		}
	}
}

// A filter that restarts or rebuilds the text at each hit is quadratic; ten
// times the text may take at most twenty times the memory.
func TestLinearMemory(t *testing.T) {
	for name, unit := range map[string]string{
		"controls": "\x1b[0m", "selectors": "\ufe0f\u200b", "invalid": "\xff", "mixed": "a\ufe0f\ufe0f\ufe0f\x07",
	} {
		t.Run(name, func(t *testing.T) {
			small, large := allocated(strings.Repeat(unit, 5000)), allocated(strings.Repeat(unit, 50000))
			if large > 20*small {
				t.Errorf("%d bytes for 5,000, %d for 50,000", small, large)
			}
		})
	}
}

func allocated(s string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := Block(s)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(text)
	return after.TotalAlloc - before.TotalAlloc
}

func TestName(t *testing.T) {
	tests := map[string]string{
		"":                   "",
		"a b.txt":            "a b.txt",
		`C:\x`:               `C:\x`,
		`"quoted"`:           `"\"quoted\""`,
		"a\nb":               `"a\u000ab"`,
		"a\u202eb":           `"a\u202eb"`,
		"tag\U000e0041é":     `"tag\udb40\udc41é"`,
		"\x1b back\\slash":   `"\u001b back\\slash"`,
		"n\x01\u2800":        `"n\u0001\u2800"`,
		"n\x01\u00a0e\u0301": `"n\u0001\u00a0e\u0301"`,
		"bad\xff\xfe.txt":    `"bad\xff\xfe.txt"`,
	}
	for in, want := range tests {
		if got := Name(in); got != want {
			t.Errorf("Name(%+q) = %s, want %s", in, got, want)
		}
	}
}

// pieces are the code points that make the filter change its mind.
var pieces = []string{
	"a", "é", " ", "\n", "\t", "\r", "\x1b", "\x9b", "\u009b", "\ufe0f", "\U000e0101", "\u200b", "\u00ad",
	"\u202e", "\U000e0041", "\u3164", "\ufffe", "\xff", "\xc2", "\xe2\x80", "👍", "\u2028", "<", "\u200d",
}

func genText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 40).Draw(t, "pieces"), "")
	})
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkProperties(t, genText().Draw(t, "text"), rapid.IntRange(1, 7).Draw(t, "step"))
	})
}

type failer interface {
	Errorf(string, ...any)
	Fatal(...any)
}

func checkProperties(t failer, s string, step int) {
	for _, block := range []bool{false, true} {
		got := clean(s, block)
		if again := clean(got, block); again != got {
			t.Errorf("not idempotent: %+q -> %+q -> %+q", s, got, again)
		}
		if !utf8.ValidString(got) {
			t.Errorf("invalid UTF-8 from %+q", s)
		}
		for _, r := range got {
			kept := contractClass(r) == keep || contractClass(r) == variation
			if !kept && (!block || r != '\n' && r != '\t') {
				t.Errorf("%U left of %+q", r, s)
			}
		}
		if Hidden(got) != 0 {
			t.Errorf("hidden in %+q", got)
		}
		var parts []string
		for i := 0; i < len(s); i += step {
			parts = append(parts, s[i:min(i+step, len(s))])
		}
		if streamed := stream(t, block, parts...); streamed != got {
			t.Errorf("streamed %+q = %+q, want %+q", s, streamed, got)
		}
	}
	if html.UnescapeString(Clean(s).HTML()) != Clean(s).String() {
		t.Errorf("HTML of %+q is not reversible", s)
	}
	checkName(t, s)
}

// A drawn name is one line, and where it is a literal it decodes to the name.
func checkName(t failer, s string) {
	name := Name(s)
	if Clean(name).String() != name {
		t.Errorf("Name(%+q) = %+q is not a line", s, name)
	}
	if name == s || !utf8.ValidString(s) {
		return
	}
	var back string
	if err := json.Unmarshal([]byte(name), &back); err != nil || back != s {
		t.Errorf("Name(%+q) = %s decodes to %+q (%v)", s, name, back, err)
	}
}

func FuzzClean(f *testing.F) {
	for _, p := range pieces {
		f.Add("x"+p+p+p+"y", 1)
	}
	f.Add("\x1b]52;c;QQ==\x07", 3)
	f.Fuzz(func(t *testing.T, s string, step int) {
		checkProperties(t, s, max(1, step%16))
	})
}

type failingWriter struct{}

var errWrite = errors.New("write failed")

func (failingWriter) Write([]byte) (int, error) { return 0, errWrite }

func TestWriterReportsErrors(t *testing.T) {
	w := NewLineWriter(failingWriter{})
	if n, err := w.Write([]byte("a")); n != 0 || !errors.Is(err, errWrite) {
		t.Errorf("Write = %d, %v", n, err)
	}
	w = NewLineWriter(failingWriter{})
	if n, err := w.Write([]byte("\xc2")); n != 1 || err != nil {
		t.Errorf("Write of half a code point = %d, %v", n, err)
	}
	if err := w.Close(); !errors.Is(err, errWrite) {
		t.Errorf("Close = %v", err)
	}
}

func BenchmarkClean(b *testing.B) {
	for name, s := range map[string]string{
		"ascii":   strings.Repeat("The quick brown fox jumps over it.\n\t", 30000),
		"cjk":     strings.Repeat("機械学習とデータ", 40000),
		"hostile": strings.Repeat("\x1b[31mx\u200b", 100000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				_ = Block(s)
			}
		})
		b.Run("hidden-"+name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				_ = Hidden(s)
			}
		})
	}
}
