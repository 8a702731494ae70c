// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package disk

// Of fails with ErrUnknown.
func Of(string) (Kind, error) { return Kind{}, ErrUnknown }

// Free fails with ErrUnknown.
func Free(string) (int64, error) { return 0, ErrUnknown }

// OpensBeneath is false: no other system has such a call.
func OpensBeneath(string) bool { return false }
