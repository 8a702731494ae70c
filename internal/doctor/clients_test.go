// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOverridden: an entry that another file replaces or switches off is warned of
// with the file, the key and a step, and its line is not called good.
func TestOverridden(t *testing.T) {
	for _, tc := range []struct{ file, text, says, hint string }{
		{"settings.json", `{"permissions":{"deny":["mcp__other"]}}`, "", ""}, // the control
		{"settings.json", `{"permissions":{"deny":["mcp__postern"]}}`, "may be switched off by permissions.deny in FILE", "change permissions.deny in FILE"},
		{"settings.local.json", `{"disabledMcpjsonServers":["postern"]}`, "may be switched off by disabledMcpjsonServers in FILE", "change disabledMcpjsonServers in FILE"},
		{"settings.json", `{`, "may be switched off or replaced in FILE", "see that FILE is a plain file"},
	} {
		m := newMachine(t)
		m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project)
		at := filepath.Join(m.project, ".claude", tc.file)
		m.put(at, tc.text, 0o600)
		status, line, says, hint := Warn, Skipped, strings.ReplaceAll(tc.says, "FILE", at), strings.ReplaceAll(tc.hint, "FILE", at)
		if tc.says == "" {
			status, line, says = Pass, Fail, "runs this program" // which answers nothing
		}
		if found := m.of("clients"); len(found) != 1 || found[0].Status != status || !strings.Contains(found[0].Text, says) || !strings.HasPrefix(found[0].Hint, hint) {
			t.Errorf("%s: %+v", tc.text, found)
		}
		if found := m.of("client-line"); len(found) != 1 || found[0].Status != line {
			t.Errorf("%s: %+v", tc.text, found)
		}
	}
}
