// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package grant

import "time"

func uptime() time.Duration { return -1 }

func bootID() string { return "" }
