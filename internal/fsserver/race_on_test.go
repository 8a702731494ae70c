// SPDX-License-Identifier: Apache-2.0

//go:build race

package fsserver

// memory is the bound for a program with the race detector, which takes some
// times the memory of the program itself. "make bounds" runs without it.
func memory(kib int) int { return 4 * kib }
