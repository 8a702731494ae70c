// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package lock

import (
	"errors"
	"os"
)

// try refuses: this system has no locks of an open file description, and a
// lock of a process would be dropped by any other handle of the file.
func try(*os.File, int64, bool) error { return errors.ErrUnsupported }

func unlock(*os.File, int64) error { return errors.ErrUnsupported }
