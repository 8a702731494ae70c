// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postern-gate/postern/core/fault"
)

// TestReadmeUse holds the README's list of verbs and exit codes against those
// that there are, both ways.
func TestReadmeUse(t *testing.T) {
	use := section(t, "README.md", "Use")
	env := System()
	var verbs []string
	for _, c := range newRoot(&env).Commands() {
		if c.IsAvailableCommand() {
			verbs = append(verbs, c.Name())
		}
	}
	same(t, "verbs", submatches("`postern ([a-z]+)", use), verbs)
	var exits []string
	for _, e := range []int{
		fault.ExitOK, fault.ExitFailed, fault.ExitUsage, fault.ExitDenied, fault.ExitAsk, fault.ExitConfig,
		fault.ExitEnforcement, fault.ExitLocked, fault.ExitAudit, fault.ExitInterrupted,
	} {
		exits = append(exits, strconv.Itoa(e))
	}
	_, listed, _ := strings.Cut(use, "\nExit: ")
	listed, _, _ = strings.Cut(listed, ". ")
	same(t, "exit codes", submatches("([0-9]+)", listed), exits)
}

// section is what stands under a heading of a page.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, found, ok := strings.Cut(string(text), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %s", page, heading)
	}
	found, _, _ = strings.Cut(found, "\n## ")
	return found
}

func submatches(pattern, text string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	sorted := func(s []string) []string { slices.Sort(s); return slices.Compact(s) }
	if g, w := sorted(got), sorted(want); !slices.Equal(g, w) {
		t.Errorf("%s: README.md has %v, there are %v", what, g, w)
	}
}

// TestHelpIsPlain: what a person reads of a verb is lower case and has an
// example of that verb first.
func TestHelpIsPlain(t *testing.T) {
	env := System()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		if c.Example == "" || !strings.HasPrefix(strings.TrimSpace(c.Example), "postern ") && !strings.Contains(c.Example, "postern "+c.Name()) {
			t.Errorf("%s has no example of itself", c.CommandPath())
		}
		texts := []string{c.Short, c.Long}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { texts = append(texts, f.Usage) })
		for _, text := range texts {
			if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "\n") {
				t.Errorf("%s: ends in a full stop or a line: %q", c.CommandPath(), text)
			}
		}
		if c.Short != strings.ToLower(c.Short[:1])+c.Short[1:] {
			t.Errorf("%s: %q", c.CommandPath(), c.Short)
		}
		var out strings.Builder
		c.SetOut(&out)
		c.InitDefaultHelpFlag()
		help(c)
		for _, line := range strings.Split(out.String(), "\n") {
			if len([]rune(line)) > helpWidth {
				t.Errorf("%s: a line of %d: %q", c.CommandPath(), len(line), line)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(&env))
}
