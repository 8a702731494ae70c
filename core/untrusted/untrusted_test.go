// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"bufio"
	"encoding/json"
	"html"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/textsafe"
)

type vector struct {
	ID    string `json:"id"`
	Input struct {
		Kind, Source, Nonce, Text string
		Calls                     int
		Repeat                    *repeat
	} `json:"input"`
	Right struct {
		Open, Close      *int
		BodyScrubbed     bool `json:"body_scrubbed"`
		Exact            string
		Contains         []string
		AttrKind         string `json:"attr_kind"`
		AttrSource       string `json:"attr_source"`
		SourceSingleLine bool   `json:"source_single_line"`
		DistinctNonces   bool   `json:"distinct_nonces"`
		NonceRE          string `json:"nonce_re"`
		AllocRatioMax    uint64 `json:"alloc_ratio_max"`
		ExactParts       *struct {
			Before, After string
			Repeat        repeat
		} `json:"exact_parts"`
	} `json:"right"`
}

type repeat struct {
	Text  string
	Times int
}

func (r repeat) String() string { return strings.Repeat(r.Text, r.Times) }

func parseKind(s string) Kind {
	for k := File; k < kindCount; k++ {
		if k.String() == s {
			return k
		}
	}
	return Unknown
}

// live is the contract's own reading of a tag, on a folded copy.
var live = regexp.MustCompile(`<[ /]*untrusted`)

// foldedCopy is the slow reference: decompose, drop, map, in that order.
func foldedCopy(s string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(s) {
		if c := fold(r); c != ignored {
			b.WriteByte(c)
		}
	}
	return b.String()
}

var framed = regexp.MustCompile(`(?s)^<untrusted-([0-9a-f]{8}) kind="([a-z_]+)" source="([^"\n]*)"(?: etag="([^"\n]*)")?(?: hidden="[0-9]+")?>\n(.*)\n</untrusted-([0-9a-f]{8})>$`)

func TestVectors(t *testing.T) {
	f, err := os.Open("../../vectors/envelope/envelope.jsonl")
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
		t.Run(v.ID, func(t *testing.T) { checkVector(t, v) })
	}
	if n < 30 {
		t.Fatalf("only %d vectors", n)
	}
}

func checkVector(t *testing.T, v vector) {
	kind, text := parseKind(v.Input.Kind), v.Input.Text
	if v.Right.DistinctNonces {
		a, b := Wrap(kind, v.Input.Source, "", text).String(), Wrap(kind, v.Input.Source, "", text).String()
		na, nb := framed.FindStringSubmatch(a)[1], framed.FindStringSubmatch(b)[1]
		if na == nb || !regexp.MustCompile(v.Right.NonceRE).MatchString(na) {
			t.Errorf("nonces %q and %q", na, nb)
		}
		return
	}
	want := v.Right.Exact
	if v.Input.Repeat != nil {
		text = v.Input.Repeat.String()
		p := v.Right.ExactParts
		want = p.Before + p.Repeat.String() + p.After
		small := strings.Repeat(v.Input.Repeat.Text, v.Input.Repeat.Times/10)
		if s, l := allocated(kind, small), allocated(kind, text); l > v.Right.AllocRatioMax*s {
			t.Errorf("%d bytes allocated for a tenth, %d for all", s, l)
		}
	}
	got := envelope(v.Input.Nonce, kind, v.Input.Source, "", text).String()
	if want == "" || got != want {
		t.Fatalf("got\n%.400q\nwant\n%.400q", got, want)
	}
	m := framed.FindStringSubmatch(got)
	if m == nil {
		t.Fatal("not one envelope")
	}
	if strings.Count(got, "<untrusted-") != *v.Right.Open || strings.Count(got, "</untrusted-") != *v.Right.Close {
		t.Error("tags")
	}
	if v.Right.BodyScrubbed && live.MatchString(foldedCopy(m[5])) {
		t.Error("a look-alike is left")
	}
	for _, c := range v.Right.Contains {
		if !strings.Contains(m[5], c) {
			t.Errorf("%q is gone", c)
		}
	}
	if v.Right.AttrKind != "" && m[2] != v.Right.AttrKind || v.Right.AttrSource != "" && m[3] != v.Right.AttrSource {
		t.Errorf("attributes %q", m[1:4])
	}
	if bare := Bare(kind, text).String(); bare != m[5] {
		t.Errorf("Bare = %.200q", bare)
	}
}

func allocated(kind Kind, s string) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := envelope("1a2b3c4d", kind, "s", "", s)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(w)
	return after.TotalAlloc - before.TotalAlloc
}

func TestZeroValues(t *testing.T) {
	if s := (Wrapped{}).String(); s != "" {
		t.Errorf("zero Wrapped = %q", s)
	}
	if Kind(0) != Unknown || Kind(200).String() != "unknown" {
		t.Error("zero and foreign kinds must be unknown")
	}
	if got := BareAll(File); len(got) != 0 {
		t.Errorf("BareAll of nothing = %v", got)
	}
}

func TestFreshNonce(t *testing.T) {
	draws := [][4]byte{{0xde, 0xad, 0xbe, 0xef}, {0x1a, 0x2b, 0x3c, 0x4d}}
	i := 0
	draw := func() [4]byte { i++; return draws[i-1] }
	if got := freshNonce(draw, "it says deadbeef here"); got != "1a2b3c4d" || i != 2 {
		t.Errorf("nonce %s after %d draws", got, i)
	}
}

func TestAttributes(t *testing.T) {
	long := strings.Repeat("x", 198)
	tests := map[string]struct{ in, want string }{
		"short":                 {"project://a b", "project://a b"},
		"exactly the limit":     {long + "ab", long + "ab"},
		"cut in a code point":   {long + "aé", long + "a"},
		"cut in an entity":      {long + "&b", long},
		"cut after an entity":   {strings.Repeat("x", 195) + "&bc", strings.Repeat("x", 195) + "&amp;"},
		"entity long before":    {"&" + long + "abcd", "&amp;" + strings.Repeat("x", 195)},
		"only entities":         {strings.Repeat(`"`, 300), strings.Repeat("&#34;", 40)},
		"wide look-alike":       {"a＜/untrusted-1a2b3c4d>", "a&lt;/untrusted-1a2b3c4d&gt;"},
		"hidden, then the text": {strings.Repeat("\u200b", 2000) + "a", "a"},
		"line breaks":           {"a\nb\u2028c", "a b c"},
		"invalid":               {"a\xffb", "a\ufffdb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := value(tt.in)
			if got != tt.want || len(got) > maxAttribute {
				t.Errorf("%d bytes %q, want %q", len(got), got, tt.want)
			}
		})
	}
	got := envelope("00000000", File, "s", `v1"x`, "a\x00\u200b").String()
	want := "<untrusted-00000000 kind=\"file\" source=\"s\" etag=\"v1&#34;x\" hidden=\"2\">\na\x00\u200b\n</untrusted-00000000>"
	if got != want {
		t.Errorf("%q", got)
	}
}

// Each of these is read as a tag by somebody, so its bracket must go.
func TestLookAlikes(t *testing.T) {
	for name, tag := range map[string]string{
		"ligature":            "</untru\ufb06ed-1>",
		"long s":              "</untru\u017fted-1>",
		"not less-than":       "\u226e/untrusted-1>",
		"small caps":          "</\u1d1c\u0274\u1d1b\u0280\u1d1c\ua731\u1d1b\u1d07\u1d05>",
		"squared":             "<\U0001f184\U0001f17d\U0001f183\U0001f181\U0001f184\U0001f182\U0001f183\U0001f174\U0001f173>",
		"regional indicators": "<\U0001f1fa\U0001f1f3\U0001f1f9\U0001f1f7\U0001f1fa\U0001f1f8\U0001f1f9\U0001f1ea\U0001f1e9>",
		"mathematical":        "</\U0001d42e\U0001d427\U0001d42d\U0001d42b\U0001d42e\U0001d42c\U0001d42d\U0001d41e\U0001d41d>",
		"greek capitals":      "</\u03c5\u039d\u03a4\u1d26\u03c5s\u03a4\u0395d>",
		"armenian":            "<\u057d\u0578trusted>",
		"zero width joiners":  "<\u200d/\u200cun\u200dtrusted>",
		"selectors":           "<\ufe0funtr\U000e0101usted>",
		"default-ignorable":   "<un\u034ftru\ufff0sted>",
		"accents":             "<\u00fcn\u0165rust\u00ebd>",
		"blank letters":       "<\u3164/\u2800untrusted>",
		"wide blanks":         "<\u3000/\u00a0\u2003untrusted>",
		"JSON escape":         `<\/untrusted>`,
		"slashes":             "<//\u2215untrusted>",
		"full width, spaced":  "\uff1c \uff0f untrusted",
	} {
		t.Run(name, func(t *testing.T) {
			for k := range kindCount {
				got := Bare(k, "a"+tag+"b").String()
				if !strings.HasPrefix(got, "a&lt;") || live.MatchString(foldedCopy(got)) {
					t.Errorf("%s: %+q", k, got)
				}
			}
			if n := Escapes(Bare(File, tag+"x"+tag).String()); n != 2 {
				t.Errorf("Escapes = %d", n)
			}
		})
	}
}

// In a file a control or direction character doesn't separate either.
func TestHiddenInFiles(t *testing.T) {
	for _, tag := range []string{"<\x1b/untrusted", "</un\x00trusted", "<\u202e/untr\u200busted", "</un\u00adtrusted", "<\U000e0041untrusted"} {
		if got := Bare(File, tag).String(); got != "&lt;"+tag[1:] {
			t.Errorf("%+q became %+q", tag, got)
		}
	}
}

func TestNotLookAlikes(t *testing.T) {
	for _, s := range []string{
		"a < b", "<div>untrusted input</div>", "untrusted-1a2b3c4d", "x</re/.test(y)", "« untrusted »",
		"<untruste", "<un trusted>", "&lt;untrusted", "<-untrusted", "<u><n>", "< u n t r u s t e d", "<", "‹", "日本語 ノ 丿", "<untrust\xffed",
	} {
		if got := Bare(File, s).String(); got != s {
			t.Errorf("%q became %q", s, got)
		}
		if n := Escapes(s); n != 0 && s != "&lt;untrusted" {
			t.Errorf("Escapes(%q) = %d", s, n)
		}
	}
}

func TestEscapes(t *testing.T) {
	for s, want := range map[string]int{
		"":                             0,
		"&lt;untrusted":                1,
		"&lt; / UNTRUSTED-1>":          1,
		"&lt;/untrusted &lt;untrusted": 2,
		"&lt;&lt;/untrusted":           1,
		"&lt;unt&lt;untrusted":         1,
		"&lt;<untrusted":               0,
		"&lt;div> untrusted":           0,
		"&LT;untrusted":                0,
		"&lt;un\u200btrus":             0,
		"&lt;\u200b\uff0f\uff55ntrusted&lt;/untrus": 1,
	} {
		if got := Escapes(s); got != want {
			t.Errorf("Escapes(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestCutOverBlocks(t *testing.T) {
	tests := map[string]struct{ in, want []string }{
		"bracket alone":   {[]string{"a<", "/untrusted-1>"}, []string{"a&lt;", "/untrusted-1>"}},
		"in the word":     {[]string{"<unt", "", "rus", "ted"}, []string{"&lt;unt", "", "rus", "ted"}},
		"second of three": {[]string{"<x", "y‹ ", "/untrusted"}, []string{"<x", "y&lt; ", "/untrusted"}},
		"each its own":    {[]string{"<untrusted", "<untrusted"}, []string{"&lt;untrusted", "&lt;untrusted"}},
		"none":            {[]string{"<", "div>"}, []string{"<", "div>"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for i, w := range BareAll(File, tt.in...) {
				if w.String() != tt.want[i] {
					t.Errorf("block %d = %q, want %q", i, w, tt.want[i])
				}
			}
		})
	}
}

// nextBracket skips by first byte, advance by code point: both must agree with
// the fold, for every code point there is.
func TestEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := string(r)
		opens := strings.HasPrefix(foldedCopy(s), "<")
		if found := nextBracket(s, 0) < len(s); found != opens {
			t.Errorf("%U: nextBracket %v, folds to a bracket %v", r, found, opens)
		}
		escapedNow := strings.HasPrefix(Bare(File, s+"/untrusted").String(), "&lt;/")
		if escapedNow != opens {
			t.Errorf("%U: scrubbed %v, folds to a bracket %v", r, escapedNow, opens)
		}
		inside := "<untr" + s + "usted"
		if got, want := Bare(File, inside).String() != inside, live.MatchString(foldedCopy(inside)); got != want && r != '<' {
			t.Errorf("%U in the word: scrubbed %v, reference %v", r, got, want)
		}
		if unicode.IsLetter(r) && r < utf8.RuneSelf && fold(r) != byte(unicode.ToLower(r)) {
			t.Errorf("%U folds to %q", r, fold(r))
		}
	}
}

var pieces = []string{
	"<", "＜", "‹", "≮", "/", "\\", "\uff0f", " ", "\n", "\t", "\r", "\x1b", "\u200b", "\u0301", "\ufe0f", "\u202e", "-", ">",
	"u", "n", "t", "r", "s", "e", "d", "un", "trusted", "untrusted", "UNTRUSTED", "\ufb06", "е", "ѕ", "\u3164", "&lt;", "&",
	"deadbeef", "\xff", "\xe2\x80", "日", "a", "</untrusted-1a2b3c4d>", "<untrusted-1a2b3c4d kind=\"file\">",
}

func genBody() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 30).Draw(t, "pieces"), "")
	})
}

type failer interface{ Errorf(string, ...any) }

// checkBody holds for every body, kind and source.
func checkBody(t failer, kind Kind, source, body string) {
	m := framed.FindStringSubmatch(Wrap(kind, source, "", body).String())
	if m == nil || m[1] != m[6] {
		t.Errorf("not one envelope: %+q", body)
		return
	}
	if strings.Contains(body, m[1]) {
		t.Errorf("the body holds its nonce: %+q", body)
	}
	if f := foldedCopy(m[5]); live.MatchString(f) {
		t.Errorf("a look-alike is left in %+q: %q", m[5], f)
	}
	if live.MatchString(foldedCopy(m[3])) || len(m[3]) > maxAttribute || textsafe.Clean(m[3]).String() != m[3] {
		t.Errorf("source %+q became %+q", source, m[3])
	}
	if again := Bare(kind, m[5]).String(); again != m[5] {
		t.Errorf("not idempotent: %+q -> %+q", m[5], again)
	}
	if kind != File {
		if textsafe.Block(m[5]).String() != m[5] {
			t.Errorf("not block-safe: %+q", m[5])
		}
		return
	}
	if !restores(m[5], body) {
		t.Errorf("altered more than brackets: %+q -> %+q", body, m[5])
	}
}

// restores reports whether body is out with some "&lt;" turned back into one
// bracket each.
func restores(out, body string) bool {
	for body != "" {
		r, size := utf8.DecodeRuneInString(body)
		switch {
		case bracket(r) && strings.HasPrefix(out, escaped):
			out = out[len(escaped):]
		case strings.HasPrefix(out, body[:size]):
			out = out[size:]
		default:
			return false
		}
		body = body[size:]
	}
	return out == ""
}

func checkJoin(t failer, kind Kind, bodies []string) {
	for _, sep := range []string{"", "\n"} {
		var parts []string
		for _, w := range BareAll(kind, bodies...) {
			// Each block travels as valid UTF-8, so half a code point stays half.
			parts = append(parts, string([]rune(w.String())))
		}
		if joined := foldedCopy(strings.Join(parts, sep)); live.MatchString(joined) {
			t.Errorf("joined by %q: %+q gives %q", sep, bodies, joined)
		}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := Kind(rapid.IntRange(0, int(kindCount)).Draw(t, "kind"))
		checkBody(t, kind, genBody().Draw(t, "source"), genBody().Draw(t, "body"))
		checkJoin(t, kind, rapid.SliceOfN(genBody(), 0, 4).Draw(t, "bodies"))
		if body := genBody().Draw(t, "plain"); !strings.Contains(body, "&") {
			n := Escapes(Bare(File, body).String())
			if hits := strings.Count(Bare(File, body).String(), escaped); n != hits {
				t.Errorf("Escapes counts %d of %d in %+q", n, hits, body)
			}
		}
	})
}

func FuzzWrap(f *testing.F) {
	for i, p := range pieces {
		f.Add(uint8(i), p, "x<"+p+"/untr"+p+"usted-1a2b3c4d"+p)
	}
	f.Fuzz(func(t *testing.T, kind uint8, source, body string) {
		checkBody(t, Kind(kind)%kindCount, source, body)
		half := len(body) / 2
		checkJoin(t, Kind(kind)%kindCount, []string{body[:half], body[half:], source})
		if html.UnescapeString(value(source)) == "" && textsafe.Clean(source).String() != "" {
			t.Errorf("source %+q vanished", source)
		}
	})
}

func BenchmarkWrap(b *testing.B) {
	for name, s := range map[string]string{
		"prose":   strings.Repeat("The quick brown fox jumps over the lazy dog, twice.\n", 20000),
		"code":    strings.Repeat("\tif a < b { return x<div>y</div> }\n", 30000),
		"cjk":     strings.Repeat("機械学習とデータ", 40000),
		"hostile": strings.Repeat("</untrusted-1a2b3c4d>", 50000),
	} {
		for _, kind := range []Kind{File, ToolResult} {
			b.Run(name+"-"+kind.String(), func(b *testing.B) {
				b.SetBytes(int64(len(s)))
				b.ReportAllocs()
				for b.Loop() {
					Wrap(kind, "project://a.txt", "", s)
				}
			})
		}
	}
}
