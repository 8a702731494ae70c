// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTextLen holds the lengths against what is encoded.
func TestTextLen(t *testing.T) {
	encoded := func(s string) int { return len(AppendString(nil, s)) - 2 }
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("aaaaaaaaé🙂\x00\x01\n\t\r\b\f\"\\\x7f"))).Draw(t, "s")
		most := rapid.IntRange(0, 40).Draw(t, "most")
		if got, want := TextLen(s), encoded(s); got != want {
			t.Fatalf("TextLen(%q) = %d, want %d", s, got, want)
		}
		first, last := Fit(s, most), FitEnd(s, most)
		if n := TextLen(s[:first]); n > most || first < len(s) && TextLen(s[:first+1]) <= most {
			t.Fatalf("Fit(%q, %d) = %d, which takes %d", s, most, first, n)
		}
		if n := TextLen(s[last:]); n > most || last > 0 && TextLen(s[last-1:]) <= most {
			t.Fatalf("FitEnd(%q, %d) = %d, which takes %d", s, most, last, n)
		}
	})
}
