// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reference are the parameters of the reference server's tools that are not
// required.
const reference = " head tail dryRun sortBy excludePatterns "

var docRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)`( \\*\\*\\+\\*\\*)? \\| ([^|]*)\\|$")

// TestDocumentedTools: docs/tools.md names every tool with every parameter, and
// marks what is required and what the reference server has not.
func TestDocumentedTools(t *testing.T) {
	page, err := os.ReadFile("../../docs/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "\n## ")
	got := map[string]string{}
	own := map[string]bool{}
	for _, row := range docRow.FindAllStringSubmatch(table, -1) {
		got[row[1]], own[row[1]] = strings.TrimSpace(row[3]), row[2] != ""
	}
	want := map[string]string{}
	ours := map[string]bool{}
	for _, tool := range ownTools() {
		ours[tool.name] = true
	}
	for _, tool := range registry() {
		var params []string
		for _, p := range tool.params {
			name := p.name
			switch {
			case p.required:
				name += `\*`
			case !ours[tool.name] && !strings.Contains(reference, " "+name+" "):
				name += "+"
			}
			params = append(params, name)
		}
		want[tool.name] = strings.Join(params, " ")
		if own[tool.name] != ours[tool.name] {
			t.Errorf("%s is marked as ours: %t", tool.name, own[tool.name])
		}
	}
	for tool, params := range want {
		if d := cmp.Diff(strings.Fields(params), strings.Fields(got[tool])); d != "" {
			t.Errorf("%s: -registry +page\n%s", tool, d)
		}
		delete(got, tool)
	}
	for tool := range got {
		t.Errorf("%s is on the page and no tool", tool)
	}
}
