// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/state/grant"
)

// TestApprovedNames: what a line of pending, grants or approve names shows all
// of it.
func TestApprovedNames(t *testing.T) {
	const unseen = "a\u200d\u2800\u00a0"
	const drawn = `a\u{200d}\u{2800}\u{a0}`
	g := grant.Grant{ID: "i", Kind: grant.Pattern, Pattern: "project://" + unseen, For: grant.Binding{
		Operations: []grant.Operation{{Action: "fs.write", Resource: "project://" + unseen}}, Roots: []grant.Root{{Name: "project", Path: "/" + unseen}},
	}}
	line := outcomeOf(&g)
	if strings.ContainsAny(line, unseen[1:]) || strings.Count(line, `"project://`+drawn+`"`) != 2 || !strings.Contains(line, `"/`+drawn+`"`) {
		t.Error(line)
	}
	if got := agentName(unseen); got != `"`+drawn+`"` {
		t.Error(got)
	}
}
