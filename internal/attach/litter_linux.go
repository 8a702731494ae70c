// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"syscall"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/live"
)

// abandoned reports whether a file is this user's and no process has it open.
func abandoned(d *pathguard.Dir, name pathguard.Name) (free bool) {
	info, err := os.Lstat(name.Abs())
	if err != nil {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false
	}
	_ = d.Lend(func(fd int) error { // it returns what the function does
		free = live.Unopened(fd, name.Base())
		return nil
	})
	return free
}
