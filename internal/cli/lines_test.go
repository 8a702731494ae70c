// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestTurns: while a question has the terminal lines wait, in their order, and
// nobody who writes one does; what is too much is counted.
func TestTurns(t *testing.T) {
	var terminal strings.Builder
	turns := new(turns)
	out, err := &lines{&terminal, turns}, &lines{&terminal, turns}
	fmt.Fprintln(out, "1")
	release := turns.hold()
	fmt.Fprintln(out, "2")
	fmt.Fprintln(err, "3")
	if terminal.String() != "1\n" {
		t.Errorf("%q", &terminal)
	}
	if n, failed := out.Write(make([]byte, maxHeld)); n != maxHeld || failed != nil {
		t.Error(n, failed)
	}
	release()
	fmt.Fprintln(err, "4")
	if got, want := terminal.String(), fmt.Sprintf("1\n2\n3\n%d bytes are not shown; postern log has every record\n4\n", maxHeld); got != want {
		t.Errorf("%q", got)
	}
}
