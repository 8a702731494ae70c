// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package grant

// renameNew renames, never over anything.
func renameNew(from, to string) error { return linkNew(from, to) }
