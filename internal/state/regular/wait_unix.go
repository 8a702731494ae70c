// SPDX-License-Identifier: Apache-2.0

//go:build unix

package regular

import "syscall"

const (
	// noWait opens a pipe without somebody at its other end, and no terminal as
	// that of the process.
	noWait = syscall.O_NONBLOCK | syscall.O_NOCTTY
	folder = syscall.O_DIRECTORY
)
