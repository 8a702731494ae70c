// SPDX-License-Identifier: Apache-2.0

// Package testenv says what happens when a test needs something that this
// machine lacks: a contributor sees a skip with the reason, CI sees a failure.
package testenv

import (
	"os"
	"testing"
)

// Missing skips the test with the reason, or fails it under POSTERN_CI=1, so
// that CI never passes because of something that was not there.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("POSTERN_CI") == "1" {
		t.Fatalf("POSTERN_CI=1 and not available: %s", reason)
	}
	t.Skipf("not available here: %s", reason)
}
