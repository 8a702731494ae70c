// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when the file's content or what is known of it changed last,
// which no program can set.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctimespec.Unix())
	}
	return time.Time{}
}
