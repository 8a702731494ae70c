// SPDX-License-Identifier: Apache-2.0

package grant

import "time"

// Clock tells the time in two ways: by the wall, which a person can set, and
// since the boot, which nobody can. A nil field is the system's.
type Clock struct {
	Wall func() time.Time
	// Up is the time since the boot, or negative where it can't be told.
	Up func() time.Duration
	// Boot names the boot; "" where it can't be told.
	Boot func() string
}

func (c Clock) orSystem() Clock {
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.Up == nil {
		c.Up = uptime
	}
	if c.Boot == nil {
		boot := bootID()
		c.Boot = func() string { return boot }
	}
	return c
}

// Moment is an instant by both clocks.
type Moment struct {
	Wall time.Time     `json:"wall"`
	Up   time.Duration `json:"up"` // negative where it can't be told
	Boot string        `json:"boot"`
}

func (c Clock) now() Moment { return Moment{c.Wall().Round(0), c.Up(), c.Boot()} }

// sameBoot reports whether both are of one boot, as far as that can be told.
func (m Moment) sameBoot(now Moment) bool {
	return m.Boot == now.Boot && (m.Up < 0) == (now.Up < 0) && m.Up <= now.Up
}

// over reports whether more than the time given has passed since m, by
// whichever clock says so. A clock that stands before m was set back: it is
// over then too, unless the time since the boot says that it isn't.
func (m Moment) over(now Moment, after time.Duration) bool {
	if m.sameBoot(now) && now.Up >= 0 {
		return now.Up-m.Up >= after || now.Wall.Sub(m.Wall) >= after
	}
	return now.Wall.Before(m.Wall) || now.Wall.Sub(m.Wall) >= after
}
