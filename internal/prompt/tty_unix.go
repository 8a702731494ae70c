// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package prompt

// ttyPath is the terminal of the session that the program belongs to.
const ttyPath = "/dev/tty"
