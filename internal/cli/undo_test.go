// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// TestUndoPlanIsSeen: a plan is read to be agreed to, so no name in it ends where
// a reader can't see it, or holds what is not seen.
func TestUndoPlanIsSeen(t *testing.T) {
	for name, drawn := range map[string]string{
		"project://a ":      `"project://a "`,
		"project://a\u2800": `"project://a\u{2800}"`,
		"project://a":       "project://a",
	} {
		var out strings.Builder
		plan := undoJSON{Steps: []undoStepJSON{{Verb: "move", Name: name, Root: "/r ", To: name, ToRoot: "/r "}}}
		plan.print(&out)
		if want := "would move " + drawn + ` in "/r " to ` + drawn + ` in "/r "` + "\n"; out.String() != want {
			t.Errorf("%q, not %q", out.String(), want)
		}
	}
}
