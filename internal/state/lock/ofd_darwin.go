// SPDX-License-Identifier: Apache-2.0

package lock

// F_OFD_SETLK of <sys/fcntl.h>, which golang.org/x/sys does not name.
const ofdSetLock = 90
