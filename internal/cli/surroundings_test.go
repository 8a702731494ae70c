// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/attach"
)

// TestManyEntries: a project's file with thousands of entries fills no screen,
// and hides none of another file.
func TestManyEntries(t *testing.T) {
	s := surroundings{}
	var attached []attach.Attachment
	for i := range 15_000 {
		name := fmt.Sprint("postern-", i)
		s.Agents = append(s.Agents, agentJSON{Client: "cursor", Name: "Cursor", File: "/p/.cursor/mcp.json", Entry: name, Command: "/bin/postern"})
		attached = append(attached, attach.Attachment{Client: attach.Client{Name: "Codex"}, Entry: name, Everywhere: true})
	}
	s.Agents = append(s.Agents, agentJSON{Client: "cursor", Name: "Cursor", File: "/home/me/.cursor/mcp.json", Entry: "mine", Command: "/bin/postern"})
	var shown []string
	s.Weaker = shared(attached)
	s.print(func(what, text string) { shown = append(shown, what+" "+text) })
	text := strings.Join(shown, "\n")
	if len(text) > 8<<10 || !strings.Contains(text, ".cursor/mcp.json: it has more entries: postern status --json") || !strings.Contains(text, "15000 servers") {
		t.Errorf("%d bytes: %.2000s", len(text), text)
	}
	if !slices.ContainsFunc(shown, func(l string) bool { return strings.Contains(l, "mine in /home/me/.cursor/mcp.json") }) {
		t.Error("the entry of another file is hidden")
	}
}
