// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"time"

	"golang.org/x/sys/windows"
)

func uptime() time.Duration { return windows.DurationSinceBoot() }

// bootID has no name to give: a boot is told by the time since it began.
func bootID() string { return "" }
