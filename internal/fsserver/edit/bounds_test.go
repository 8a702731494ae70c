// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestChangedAgainstLines holds where texts differ against a comparison of
// their lines.
func TestChangedAgainstLines(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("ab\n\n")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if a == b {
			return // Diff has nothing to show
		}
		linesA, linesB := cutLines(a), cutLines(b)
		top := common(len(linesA), len(linesB), func(i int) bool { return linesA[i] == linesB[i] })
		bottom := common(len(linesA)-top, len(linesB)-top, func(i int) bool { return linesA[len(linesA)-1-i] == linesB[len(linesB)-1-i] })
		lo, hiA, hiB := changed([]byte(a), []byte(b))
		start := len(strings.Join(linesA[:top], ""))
		endA, endB := len(strings.Join(linesA[:len(linesA)-bottom], "")), len(strings.Join(linesB[:len(linesB)-bottom], ""))
		if lo != start || hiA != endA || hiB != endB {
			t.Fatalf("changed(%q, %q) = %d, %d, %d; want %d, %d, %d", a, b, lo, hiA, hiB, start, endA, endB)
		}
	})
}

// TestMemoryOfManyLines: an edit and its diff take some times the text, however
// many lines that has.
func TestMemoryOfManyLines(t *testing.T) {
	const size = 16 << 20
	for name, fill := range map[string]string{"LF": "\n", "CR LF": "\r\n"} {
		src := bytes.Repeat([]byte(fill), size/len(fill))
		copy(src[size/2:], "x")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := Apply(src, []Edit{{OldText: "x\n", NewText: "y\nz\n"}})
		if err != nil {
			t.Fatal(err)
		}
		if diff, ok := Diff("f", src, out); !ok || !strings.Contains(diff, "\n-x") {
			t.Errorf("%s: %t %.300q", name, ok, diff)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 5*size {
			t.Errorf("%s: %d bytes for a text of %d", name, took, size)
		}
	}
}

// TestDiffBoundsItsContext: the lines around a change count too.
func TestDiffBoundsItsContext(t *testing.T) {
	long := strings.Repeat("w", maxDiffBytes)
	text, ok := Diff("f", []byte(long+"\na\n"), []byte(long+"\nb\n"))
	if ok || len(text) > 200 {
		t.Errorf("%t, %d bytes", ok, len(text))
	}
	if _, ok = Diff("f", []byte(long[:maxDiffBytes/2]+"\na\n"), []byte(long[:maxDiffBytes/2]+"\nb\n")); !ok {
		t.Error("half of it is not shown")
	}
}
