// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"testing"
	"time"
)

func TestParseUntil(t *testing.T) {
	now := time.Date(2026, 11, 30, 17, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "2h": 2 * time.Hour, "1.5d": 36 * time.Hour, "18:00": 30 * time.Minute, "17:30": 24 * time.Hour, "00:30": 7 * time.Hour,
		"2026-12-01 17:30": 24 * time.Hour, "2026-11-30T18:30:00Z": time.Hour, "2026-11-30 16:30": -time.Hour,
	} {
		if got, ok := ParseUntil(text, now); !ok || got != want {
			t.Errorf("%q: %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "d", "never", "25:00", "2h later", "18.00"} {
		if got, ok := ParseUntil(text, now); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
