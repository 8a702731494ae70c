// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPath(t *testing.T) {
	for n, want := range map[int]string{1: "000001.jsonl", 999999: "999999.jsonl", 1000000: "1000000.jsonl"} {
		if got := Path("d", n, Lines); got != filepath.Join("d", want) {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"000010.jsonl", "000002.hashes", "000003.jsonl", "000003.hashes", "999999.jsonl", "1000000.jsonl",
		// None of these is a segment.
		"00001.jsonl", "0000004.jsonl", "000005.json", "000006.jsonl.tmp", "x000007.jsonl", "torn-000008-12", "-00009.jsonl", "000011.JSONL",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{2, Path(dir, 2, Hashes), true},
		{3, Path(dir, 3, Lines), false},
		{10, Path(dir, 10, Lines), false},
		{999999, Path(dir, 999999, Lines), false},
		{1000000, Path(dir, 1000000, Lines), false},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := List(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	if got, err := List(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("an empty folder: %v, %v", got, err)
	}
}

// TestReader: whatever a file holds, its lines come back with their numbers
// and places, and the rest without an end as torn.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines []string
		for range rapid.IntRange(0, 6).Draw(t, "lines") {
			// Some are longer than the buffer.
			n := rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(65_530, 65_540), rapid.IntRange(131_060, 140_000)).Draw(t, "length")
			lines = append(lines, strings.Repeat(rapid.StringMatching(`[a-z\x00]`).Draw(t, "letter"), n))
		}
		torn := strings.Repeat("t", rapid.SampledFrom([]int{0, 1, 70_000}).Draw(t, "torn"))
		var src bytes.Buffer
		for _, l := range lines {
			src.WriteString(l + "\n")
		}
		src.WriteString(torn)
		r := NewReader(&src, 100, 5)
		offset := int64(100)
		for i, want := range lines {
			got, err := r.Next()
			offset += int64(len(want)) + 1
			if err != nil || string(got) != want || r.Line() != 6+i || r.Offset() != offset {
				t.Fatalf("line %d: %d bytes, %v, at %d:%d", i, len(got), err, r.Line(), r.Offset())
			}
		}
		rest, err := r.Next()
		if torn == "" && !errors.Is(err, io.EOF) || torn != "" && !errors.Is(err, ErrTorn) || string(rest) != torn {
			t.Fatalf("the end: %d bytes, %v", len(rest), err)
		}
		if r.Offset() != offset {
			t.Fatalf("the end is at %d, want %d", r.Offset(), offset)
		}
	})
}

func TestReaderFails(t *testing.T) {
	for _, before := range []string{"", "whole\n", "half", strings.Repeat("x", 70_000)} {
		r := NewReader(io.MultiReader(strings.NewReader(before), iotest.ErrReader(fs.ErrPermission)), 0, 0)
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("after %d bytes: %v", len(before), err)
		}
	}
}
