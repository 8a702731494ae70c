// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package regular

// Nothing to wait for has a name in a folder.
const (
	noWait = 0
	folder = 0
)
