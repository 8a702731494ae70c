// SPDX-License-Identifier: Apache-2.0

package undo

// syncDir has nothing to do here: a directory can't be synced.
func syncDir(string) error { return nil }
