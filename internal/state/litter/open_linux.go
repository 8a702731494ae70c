// SPDX-License-Identifier: Apache-2.0

package litter

import (
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/live"
)

// proven says that the system tells who has a file open.
const proven = true

func unopened(d *pathguard.Dir, entry string) (free bool) {
	_ = d.Lend(func(fd int) error { // it returns what the function does
		free = live.Unopened(fd, entry)
		return nil
	})
	return free
}
