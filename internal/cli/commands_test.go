// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

// TestCommandsPage: docs/commands.md has a section for each verb, in it a link
// or what the verb answers, and none for a verb that doesn't exist.
func TestCommandsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(page), "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		for verb := range strings.SplitSeq(heading, ", ") {
			sections[verb] = strings.TrimSpace(text)
		}
	}
	env := System()
	verbs := map[string]bool{}
	for _, c := range newRoot(&env).Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		verbs[c.Name()] = true
		if len(sections[c.Name()]) < 40 {
			t.Errorf("docs/commands.md has no section for %s", c.Name())
		}
	}
	for verb := range sections {
		if !verbs[verb] {
			t.Errorf("docs/commands.md tells of %s, and there is no such verb", verb)
		}
	}
}
