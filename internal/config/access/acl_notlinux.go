// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package access

// named reads no access list here.
func named(string) (users, groups []uint32, listed, ok bool) { return nil, nil, false, true }
