// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package prompt

// The terminal of the session that the program belongs to.
const (
	readPath  = "/dev/tty"
	writePath = "/dev/tty"
)
