// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"os"
	"testing"
)

// makeFIFO makes another thing that is no file: a FIFO has no name here.
func makeFIFO(t *testing.T, path string) {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
}
