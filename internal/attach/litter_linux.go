// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"syscall"

	"github.com/postern-gate/postern/core/pathguard"
)

// ours reports whether a file is this user's.
func ours(name pathguard.Name) bool {
	info, err := os.Lstat(name.Abs())
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
