// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestParse: many names and a queue that ran over are a rescan.
func TestParse(t *testing.T) {
	b := append(event(1, unix.IN_CREATE, "a"), event(1, unix.IN_MODIFY, "a")...)
	b = append(b, event(2, unix.IN_DELETE_SELF, "")...)
	b = append(b, event(-1, unix.IN_Q_OVERFLOW, "")...)
	b = append(b, event(3, unix.IN_ATTRIB, "")...)
	for i := range maxNames + 1 {
		b = append(b, event(4, unix.IN_CREATE, strconv.Itoa(i))...)
	}
	all := parse(b)
	if diff := cmp.Diff([]string{"a"}, all[1].names); diff != "" || all[1].rescan || all[1].gone {
		t.Errorf("%+v", all[1])
	}
	if !all[2].gone || !all[-1].rescan || !all[3].rescan || len(all[4].names) != maxNames || !all[4].rescan {
		t.Errorf("%+v", all)
	}
	if got := parse(b[:20]); len(got) != 1 { // cut short: no panic
		t.Errorf("%+v", got)
	}
}

// TestJoin: batches put together are one with the names of all, each once, or
// with a rescan where these are too many.
func TestJoin(t *testing.T) {
	c, other := &batch{seen: map[string]bool{}}, &batch{names: []string{"a", "b"}}
	c.join(other)
	c.join(&batch{names: []string{"b", "c"}, gone: true})
	if diff := cmp.Diff([]string{"a", "b", "c"}, c.names); diff != "" || c.rescan || !c.gone || len(other.names) != 2 {
		t.Errorf("%+v %s", c, diff)
	}
	for i := range maxNames {
		c.join(&batch{names: []string{strconv.Itoa(i)}})
	}
	if len(c.names) != maxNames || !c.rescan {
		t.Errorf("%d names, %t", len(c.names), c.rescan)
	}
}

// FuzzParse: whatever bytes the kernel hands over, nothing is read beyond them,
// and what is held stays bounded.
func FuzzParse(f *testing.F) {
	f.Add(event(1, unix.IN_CREATE, "a"))
	f.Add(append(event(1, unix.IN_MODIFY, "name"), event(-1, unix.IN_Q_OVERFLOW, "")...))
	f.Add(event(2, unix.IN_IGNORED, "")[:9])
	f.Fuzz(func(t *testing.T, b []byte) {
		for wd, c := range parse(b) {
			if len(c.names) > maxNames || len(c.names) != len(c.seen) {
				t.Errorf("%d: %d names", wd, len(c.names))
			}
		}
	})
}
