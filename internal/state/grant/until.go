// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"strings"
	"time"
)

// ParseUntil reads how long, as 30m, 2h or 1d, or when: the next time that a
// clock shows 18:00, or a date. It is what is left from now until then.
func ParseUntil(s string, now time.Time) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if d, err := time.ParseDuration(days + "h"); err == nil {
			return 24 * d, true
		}
	}
	if d, err := time.ParseDuration(s); err == nil {
		return d, true
	}
	if at, err := time.ParseInLocation("15:04", s, now.Location()); err == nil {
		at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at.Sub(now), true
	}
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime, time.RFC3339} {
		if at, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return at.Sub(now), true
		}
	}
	return 0, false
}
