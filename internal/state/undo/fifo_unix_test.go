// SPDX-License-Identifier: Apache-2.0

//go:build unix

package undo

import (
	"syscall"
	"testing"
)

func makeFIFO(t *testing.T, path string) {
	t.Helper()
	must(t, syscall.Mkfifo(path, 0o600))
}
