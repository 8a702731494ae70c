// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
)

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "0 B", 0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.00 KB", 1152: "1.13 KB", 1536: "1.50 KB",
		4321: "4.22 KB", 1048575: "1024.00 KB", 1 << 20: "1.00 MB", 1<<30 - 1: "1024.00 MB", 1 << 30: "1.00 GB",
		1 << 40: "1.00 TB", 1 << 50: "1024.00 TB", 1<<63 - 1: "8388608.00 TB",
	} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPad(t *testing.T) {
	for s, want := range map[string]int{"": 5, "abc": 2, "é": 4, "🙂": 3, "abcdefg": 0} {
		if got := len(pad(s, 5)); got != want {
			t.Errorf("pad(%q) = %d blanks, want %d", s, got, want)
		}
	}
}

func TestJSTime(t *testing.T) {
	at := time.Date(2023, 11, 4, 22, 13, 20, 123e6, time.UTC)
	if got := jsTime(at); got != "Sat Nov 04 2023 22:13:20 GMT+0000 (Coordinated Universal Time)" {
		t.Error(got)
	}
	if got := jsTime(at.In(time.FixedZone("CET", 3600))); got != "Sat Nov 04 2023 23:13:20 GMT+0100 (CET)" {
		t.Error(got)
	}
	if got := jsTime(time.Time{}); got != "unknown" {
		t.Error(got)
	}
}

// The order is what JavaScript's localeCompare gives for these names.
func TestByName(t *testing.T) {
	want := []string{
		"a b1", "_x", "-y", ".env", ".git", ".z", "~x", "$y", "10", "9", "a", "A", "a b", "a_b", "a-1", "a-b", "a.1", "a.txt", "a1",
		"ab.txt", "b", "B", "co-op", "CO-OP", "coop", "e", "E", "é", "f", "file10", "file9", "readme.md", "README.md", "Z", "日本",
	}
	want = want[1:]
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	byName(got, func(s string) string { return s })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A name in a tree is a JSON string that decodes to the name and that the
// block contract leaves as it is.
func TestJSONName(t *testing.T) {
	for _, name := range []string{"a", `a"b`, `"a"`, "a\nb", "a\u202eb", "tag\U000e0041", `back\slash`, "\x1b[0m", "é🙂", "a\ufe0f\ufe0f\ufe0f"} {
		got := string(jsonName(nil, pathguard.Entry{Name: name, Reachable: true}))
		var back string
		if err := json.Unmarshal([]byte(got), &back); err != nil || back != name {
			t.Errorf("%+q is drawn as %s: %v", name, got, err)
		}
		if textsafe.Block(got).String() != got {
			t.Errorf("%s is not block-safe", got)
		}
	}
	if got := string(jsonName(nil, pathguard.Entry{Name: "bad\xff.txt"})); got != `"\"bad\\xff.txt\""` {
		t.Error(got)
	}
}
