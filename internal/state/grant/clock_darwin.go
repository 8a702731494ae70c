// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"time"

	"golang.org/x/sys/unix"
)

// clockMonotonic is CLOCK_MONOTONIC_RAW of <time.h>, which goes on in sleep.
const clockMonotonic = 4

func uptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clockMonotonic, &t) != nil {
		return -1
	}
	return time.Duration(t.Nano())
}

func bootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
