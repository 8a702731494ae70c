// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"os"

	"golang.org/x/sys/unix"
)

// posix says that permission bits mean what they say.
const posix = true

// isRoot reports whether this user may do everything.
func isRoot() bool { return os.Geteuid() == 0 }

// writable is why this user can't make something in a folder.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
