// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCloseMemory(t *testing.T) {
	dumpable := func() int {
		n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := dumpable()
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0) })
	if err := CloseMemory(); err != nil || dumpable() != 0 {
		t.Error(err, dumpable())
	}
}
