// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/policies"
)

// TestReady: each policy is valid where it is meant for, shows what it allows
// and what it denies, and its examples are held: with another decision in one
// of them the file is refused.
func TestReady(t *testing.T) {
	all := map[string][]byte{"user": policies.User(), "project": policies.Project()}
	for _, name := range policies.Ready() {
		all[name], _ = policies.Named(name)
	}
	example := regexp.MustCompile(`(?m)^  - \{ .*decision: (allow|ask|deny) \}$`)
	for name, text := range all {
		project := name == "project"
		if _, err := config.Parse(name, text, project); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var decisions []string
		for _, at := range example.FindAllSubmatchIndex(text, -1) {
			decision := string(text[at[2]:at[3]])
			decisions = append(decisions, decision)
			other := map[string]string{"allow": "deny", "ask": "allow", "deny": "ask"}[decision]
			changed := string(text[:at[2]]) + other + string(text[at[3]:])
			if _, err := config.Parse(name, []byte(changed), project); err == nil {
				t.Errorf("%s: an example with another decision is accepted: %s", name, text[at[0]:at[1]])
			}
		}
		if !slices.Contains(decisions, "deny") || !project && !slices.Contains(decisions, "allow") {
			t.Errorf("%s: its examples show only %v", name, decisions)
		}
	}
}
