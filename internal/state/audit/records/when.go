// SPDX-License-Identifier: Apache-2.0

package records

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// ParseTime reads a moment: RFC 3339, a date or date and time of this place
// ("2026-11-30", "2026-11-30 14:05", with seconds too), or how long before now
// ("90m", "2h", "3d").
func ParseTime(s string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return at, nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if at, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return at, nil
		}
	}
	if age, err := ParseAge(s); err == nil {
		return now.Add(-age), nil
	}
	return time.Time{}, errors.New("it is not a time: write 2026-11-30, 2026-11-30T14:05:00Z, or 2h, 3d for how long ago")
}

// ParseAge reads a length of time, as Go spells it or in days: "36h", "90d".
func ParseAge(s string) (time.Duration, error) {
	const day = 24 * time.Hour
	var age time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * day //nolint:gosec // 65535 days at most
	} else {
		age, err = time.ParseDuration(s)
	}
	if err != nil || age < 0 {
		return 0, errors.New("it is not a length of time: write 36h or 90d")
	}
	return age, nil
}
