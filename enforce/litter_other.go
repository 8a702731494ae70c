// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package enforce

// sweep leaves what killed writes left: nothing here proves that no process
// has such a file open.
func sweep([]casualty) {}
