// SPDX-License-Identifier: Apache-2.0

package pathguard

// Lend hands the open directory to f as the kernel's number for it, for calls
// that take no name. f must neither close nor keep it.
func (d *Dir) Lend(f func(fd int) error) error { return f(d.fd) }
