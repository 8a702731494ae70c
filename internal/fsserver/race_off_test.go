// SPDX-License-Identifier: Apache-2.0

//go:build !race

package fsserver

// memory is the bound of what a server may take, in KiB.
func memory(kib int) int { return kib }
