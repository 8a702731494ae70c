// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"os"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// TestLogCount: how many records are shown, to a person and to a program.
func TestLogCount(t *testing.T) {
	tty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	for name, c := range map[string]struct {
		o          logOptions
		out        io.Writer
		unfiltered bool
		want       int
	}{
		"person":              {logOptions{}, tty, true, lastOnTerminal},
		"person, all":         {logOptions{all: true}, tty, true, -1},
		"person, filtered":    {logOptions{}, tty, false, -1},
		"person, follow":      {logOptions{follow: true}, tty, true, lastBefore},
		"person, last":        {logOptions{last: "3"}, tty, true, 3},
		"program":             {logOptions{}, io.Discard, true, -1},
		"program, follow":     {logOptions{follow: true}, io.Discard, false, lastBefore},
		"program, follow all": {logOptions{follow: true, all: true}, io.Discard, false, -1},
		"program, last":       {logOptions{last: "0"}, io.Discard, true, 0},
	} {
		if got, err := c.o.count(&Env{Out: c.out}, c.unfiltered); err != nil || got != c.want {
			t.Errorf("%s: %d, %v; want %d", name, got, err, c.want)
		}
	}
	for _, o := range []logOptions{{last: "-1"}, {last: "all"}, {last: "100001"}, {last: "1", all: true}} {
		if _, err := o.count(&Env{Out: io.Discard}, true); fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
