// SPDX-License-Identifier: Apache-2.0

package safety

import (
	"testing"

	"github.com/postern-gate/postern/core"
)

// TestOfCall: what the server is asked beside its tools has a class, is no tool, and
// any other name stays destructive.
func TestOfCall(t *testing.T) {
	for name, want := range map[string]struct {
		class             core.Class
		rated, ofTheTools bool
	}{
		"resources/read": {core.ReadOnly, true, false}, "resources/subscribe": {core.ReadOnly, true, false},
		"read_file": {core.ReadOnly, true, true}, "write_file": {core.Mutating, true, true}, "delete_file": {core.Destructive, true, true},
		"resources/write": {core.Destructive, false, false}, "": {core.Destructive, false, false},
	} {
		r, rated := OfCall(name)
		_, tool := OfTool(name)
		if r.Class != want.class || rated != want.rated || tool != want.ofTheTools || r.WritesDisk != (want.class != core.ReadOnly) {
			t.Errorf("%q: %+v, rated %t, a tool %t", name, r, rated, tool)
		}
	}
}
