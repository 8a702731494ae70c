// SPDX-License-Identifier: Apache-2.0

package lock

import "golang.org/x/sys/unix"

const ofdSetLock = unix.F_OFD_SETLK
