// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package doctor

// posix says that permission bits mean what they say.
const posix = false

// isRoot is not known here.
func isRoot() bool { return false }

// writable can't be told without the attempt.
func writable(string) error { return nil }
