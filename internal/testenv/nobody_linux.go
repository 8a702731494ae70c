// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Nobody is the user and group id that AsNobody becomes.
const Nobody = 65534

// AsNobody runs f in a thread that has become another user, and is thrown away
// afterwards. The raw calls change this thread alone. It needs root.
func AsNobody(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		for _, call := range [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, Nobody, Nobody, Nobody}, {unix.SYS_SETRESUID, Nobody, Nobody, Nobody}} {
			if _, _, e := unix.RawSyscall(call[0], call[1], call[2], call[3]); e != 0 {
				t.Errorf("becoming nobody: %v", e)
				return
			}
		}
		f()
	}()
	<-done
}
