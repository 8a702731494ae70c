// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cli

// walks says why names are opened a component at a time here.
func walks() string {
	return "this system has no openat2: names are opened a component at a time"
}
