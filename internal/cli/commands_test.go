// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
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
	intro, _, _ := strings.Cut(strings.Join(strings.Fields(string(page)), " "), " answer with `--json`")
	_, named, _ := strings.Cut(intro, "All verbs but ")
	var plain []string
	for _, part := range strings.Split(named, "`") {
		if strings.ContainsFunc(part, unicode.IsLetter) && part != " and " {
			plain = append(plain, part)
		}
	}
	root := newRoot(&env)
	root.InitDefaultHelpCmd()
	if want := withoutJSON(root); !slices.Equal(plain, want) {
		t.Errorf("docs/commands.md says that %q have no --json, and %q have none", plain, want)
	}
	for verb := range sections {
		if !verbs[verb] {
			t.Errorf("docs/commands.md tells of %s, and there is no such verb", verb)
		}
	}
}

// withoutJSON are the verbs beneath cmd that have no --json, sorted.
func withoutJSON(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.Runnable() && c.Flags().Lookup("json") == nil {
			names = append(names, strings.TrimPrefix(c.CommandPath(), "postern "))
		}
		names = append(names, withoutJSON(c)...)
	}
	slices.Sort(names)
	return names
}
