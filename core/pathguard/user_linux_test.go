// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody runs f in a thread that has become uid 65534, and is thrown away
// afterwards. The raw calls change this thread alone.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, nobody, nobody, nobody}, {unix.SYS_SETRESUID, nobody, nobody, nobody}} {
			if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
				t.Errorf("becoming nobody: %v", e)
				return
			}
		}
		f()
	}()
	<-done
}
