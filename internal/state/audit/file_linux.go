// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataSync waits for the lines; the file's times may follow later.
func dataSync(file *os.File) error { return unix.Fdatasync(int(file.Fd())) }
