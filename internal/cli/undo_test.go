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
		"project://a ":                         `"project://a "`,
		"project://a\u2800":                    `"project://a\u{2800}"`,
		"project://a":                          "project://a",
		"project://y in ~/safe to project://z": `"project://y in ~/safe to project://z"`,
	} {
		var out strings.Builder
		plan := undoJSON{Steps: []undoStepJSON{{Verb: "move", Name: name, Root: "/r ", To: name, ToRoot: "/r "}}}
		plan.print(&out)
		if want := "would move " + drawn + ` in "/r " to ` + drawn + ` in "/r "` + "\n"; out.String() != want {
			t.Errorf("%q, not %q", out.String(), want)
		}
	}
}

// TestUndoDiffIsSeen: what a step changes stands beneath it as on a card: no line of
// it can pass for one of the plan, nothing in it acts or is unseen, and what is not
// shown is said.
func TestUndoDiffIsSeen(t *testing.T) {
	const hostile = "--- a\n+++ a\n@@ -1,1 +1,2 @@\n-would remove project://b\r\n+\x1b[2J\u202ea\n+<b>\n"
	plan := undoJSON{Steps: []undoStepJSON{
		{Verb: "restore", Name: "project://a", Root: "/r", Diff: hostile, Unshown: "the rest"}, {Verb: "rename back", Name: "project://b", Root: "/r"},
	}, NoDiff: 2}
	var out strings.Builder
	plan.print(&out)
	want := `would restore project://a in /r
  change
    | --- a
    | +++ a
    | @@ -1,1 +1,2 @@
    | -would remove project://b\u{d}
    | +\u{1b}[2J\u{202e}a
    | +<b>
  not shown   the rest
  hidden      2 invisible characters, spelled as \u{…} or \x…
would rename back project://b in /r
what it would change is not shown of 2 steps more
`
	if out.String() != want {
		t.Errorf("%s, not %s", out.String(), want)
	}
}
