// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// next is what leads on from an answer.
func (r result) next() (n struct {
	Cursor       string
	Offset, Line int
},
) {
	_ = json.Unmarshal(r.Meta["dev.postern/next"], &n)
	return n
}

// TestRanges is the meaning of offset, length, line and lines, case by case.
func TestRanges(t *testing.T) {
	tests := []struct {
		content string
		args    args
		want    string
		says    string
	}{
		{"abcdef", args{"offset": 0, "length": 2}, "ab", "bytes 0–1 of 6; next: offset 2"},
		{"abcdef", args{"offset": 4, "length": 2}, "ef", "bytes 4–5 of 6, the end"},
		{"abcdef", args{"offset": 4}, "ef", "bytes 4–5 of 6, the end"},
		{"abcdef", args{"length": 3}, "abc", "bytes 0–2 of 6; next: offset 3"},
		{"abcdef", args{"offset": 6}, "", "the file has 6 bytes"},
		{"abcdef", args{"offset": 99, "length": 1}, "", "the file has 6 bytes"},
		{"abcdef", args{"offset": 1, "length": 0}, "", ""},
		{"", args{"offset": 0}, "", "the file has 0 bytes"},
		{"aéb", args{"offset": 0, "length": 2}, "a", "bytes 0–0 of 4; next: offset 1"}, // no half of a character
		{"aéb", args{"offset": 2, "length": 2}, "b", "bytes 3–3 of 4, the end"},
		{"aéb", args{"offset": 1, "length": 1}, "é", "bytes 1–2 of 4; next: offset 3"}, // but one at least
		{"🙂🙂", args{"offset": 0, "length": 5}, "🙂", "bytes 0–3 of 8; next: offset 4"},
		{"1\n2\n3\n", args{"line": 2, "lines": 1}, "2\n", "lines 2–2, bytes 2–3 of 6; next: line 3, or offset 4"},
		{"1\n2\n3\n", args{"line": 2}, "2\n3\n", "lines 2–3, bytes 2–5 of 6, the end"},
		{"1\n2\n3", args{"line": 3, "lines": 5}, "3", "lines 3–3, bytes 4–4 of 5, the end"},
		{"1\n2\n3", args{"lines": 2}, "1\n2\n", "lines 1–2"},
		{"1\n2\n3", args{"line": 4}, "", "the file has 3 lines"},
		{"1\n2\n", args{"line": 3}, "", "the file has 2 lines"},
		{"", args{"line": 1}, "", "the file has 0 lines"},
		{"1\n2\n", args{"line": 1, "lines": 0}, "", ""},
		{"1\r\n2\r\n", args{"line": 2}, "2\r\n", "the end"},
		{"ab\ncd\n", args{"line": 1, "max_bytes": 4}, "ab\nc", "lines 1–2, bytes 0–3 of 6; next: offset 4"},
		{"abcdef", args{"max_bytes": 4}, "abcd", "bytes 0–3 of 6; next: offset 4"},
		{"abcdef", args{"offset": 1, "max_bytes": 2}, "bc", "bytes 1–2 of 6; next: offset 3"},
	}
	w := newWorld(t, nil)
	for _, tt := range tests {
		w.put(w.at("f"), tt.content)
		tt.args["path"] = w.at("f")
		r := w.call("read_text_file", tt.args).ok()
		if got := r.body(); got != tt.want || !strings.Contains(r.text(), tt.says) {
			t.Errorf("%q %v = %q and %q, want %q and %q", tt.content, tt.args, got, r.text(), tt.want, tt.says)
		}
		if leads := r.next().Offset+r.next().Line > 0; leads != strings.Contains(tt.says, "next: ") && tt.says != "lines 1–2" {
			t.Errorf("%q %v leads on to %+v", tt.content, tt.args, r.next())
		}
	}
	w.put(w.at("f"), "ab\x00\xff")
	w.call("read_text_file", args{"path": w.at("f"), "offset": 0, "length": 2}).ok()
	w.call("read_text_file", args{"path": w.at("f"), "offset": 3, "length": 1}).refused("text.unsafe").has("read_media_file")
}

// TestRangeInsideCharacter: a range that holds no beginning of a character holds
// the next one, and leads on.
func TestRangeInsideCharacter(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "ab\u00fc\U0001f642cd"})
	for _, tc := range []struct {
		offset, length int
		want           string
		next           int
	}{
		{3, 1, "\U0001f642", 8}, {5, 1, "c", 9}, {5, 2, "c", 9}, {5, 4, "c", 9}, {4, 2, "\U0001f642", 8}, {2, 1, "\u00fc", 4}, {9, 5, "d", 0},
	} {
		r := w.call("read_text_file", args{"path": w.at("f"), "offset": tc.offset, "length": tc.length}).ok()
		if got := r.body(); got != tc.want || r.next().Offset != tc.next {
			t.Errorf("offset %d, length %d: %q, next %d; want %q, %d", tc.offset, tc.length, got, r.next().Offset, tc.want, tc.next)
		}
	}
}

// TestRangesJoin: whatever the text and the lengths, the ranges that an answer
// leads on to join to the file, each of whole characters.
func TestRangesJoin(t *testing.T) {
	w := newWorld(t, nil)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aé€🙂\n\n")), 1, 60, -1).Draw(rt, "text")
		w.put(w.at("f"), text)
		bytes := rapid.Bool().Draw(rt, "bytes")
		n := rapid.IntRange(1, 9).Draw(rt, "n")
		var joined strings.Builder
		a := args{"path": w.at("f"), "line": 1, "lines": n}
		if bytes {
			a = args{"path": w.at("f"), "offset": 0, "length": n}
		}
		for range len(text) + 1 {
			r := w.call("read_text_file", a).ok()
			part := r.body()
			joined.WriteString(part)
			if !utf8.ValidString(part) || part == "" {
				rt.Fatalf("%q", part)
			}
			next := r.next()
			if next.Offset == 0 && next.Line == 0 {
				break
			}
			a["offset"], a["line"] = next.Offset, next.Line
			if bytes {
				delete(a, "line")
			} else {
				delete(a, "offset")
			}
		}
		if joined.String() != text {
			rt.Fatalf("%q, want %q", joined.String(), text)
		}
	})
}

func bigFileRead(t *testing.T) {
	w := newWorld(t, nil, later)
	const size, step = 100 << 20, 1 << 20
	f, err := os.Create(w.at("big.txt"))
	w.must(err)
	line := strings.Repeat("an ordinary line of ASCII text, sixty-three bytes and a feed..\n", 1<<15)
	if len(line) < step {
		t.Fatal(len(line))
	}
	line = line[:step-1] + "\n"
	for range size / step {
		_, err := f.WriteString(line)
		w.must(err)
	}
	w.must(f.Close())
	c := w.spawn(w.setup)
	c.call("read_text_file", args{"path": w.at("big.txt")}).refused("limit.exceeded").
		has(itoa(size), "offset and length", "line and lines", "max_bytes")
	a := args{"path": w.at("big.txt"), "offset": 0, "length": step}
	pieces := 0
	for ; ; pieces++ {
		r := c.call("read_text_file", a).ok()
		if got := r.body(); got != line || strings.Count(r.raw, line[:40]) != strings.Count(line, line[:40]) {
			t.Fatalf("at %v: %d bytes", a["offset"], len(got))
		}
		if a["offset"] = r.next().Offset; r.next().Offset == 0 {
			break
		}
	}
	if pieces+1 != size/step {
		t.Errorf("%d pieces", pieces+1)
	}
	c.call("read_text_file", args{"path": w.at("big.txt"), "line": 1_600_000, "lines": 2}).ok().has("lines 1600000–1600001")
	peak := w.peak(c.pid)
	if t.Logf("%d KiB at the peak", peak); peak > memory(30<<10) {
		t.Errorf("%d KiB at the peak", peak)
	}
}
