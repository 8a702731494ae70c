// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func uptime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return -1
	}
	return time.Duration(t.Nano())
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
