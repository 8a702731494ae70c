// SPDX-License-Identifier: Apache-2.0

package prompt

// The console.
const (
	readPath  = "CONIN$"
	writePath = "CONOUT$"
)
