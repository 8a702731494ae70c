// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/safety"
)

// expectOff judges a client's entry beside a file, and wants it to be called
// switched off by the key, or to be believed where there is none.
func expectOff(t *testing.T, id, file, text, key string) {
	t.Helper()
	doubt, step := judged(t, id, file, text)
	wantDoubt, wantStep := "", ""
	if key != "" {
		wantDoubt, wantStep = "may be switched off by "+key+" in FILE", "change "+key+" in FILE"
	}
	if doubt != wantDoubt || step != wantStep {
		t.Errorf("%s, %s: %.200s: %q %q", id, file, text, doubt, step)
	}
}

// TestRulesOfOpenCode: a rule that may take the tools away does, wherever its
// wildcards are, unless a later and narrower one gives them back.
func TestRulesOfOpenCode(t *testing.T) {
	const file = "~/.config/opencode/opencode.json"
	for rules, off := range map[string]bool{
		`{"*": "allow", "postern_*": "deny"}`:                         true,
		`{"postern_*": "deny", "*": "allow"}`:                         true, // the last one counts; the longest did
		`{"*": "deny", "postern_*": "deny", "p*": "allow"}`:           true,
		`{"*": "deny", "postern_*": "allow", "*_*": "deny"}`:          true,
		`{"postern_*": "allow", "*": "deny"}`:                         true,
		`{"postern_*": "allow", "*": "deny", "postern_*": "allow"}`:   true, // a name stays where it was first
		`{"*": "deny", "postern_read*": "allow"}`:                     true,
		`{"*": "deny", "postern_*": {"*": "allow"}}`:                  true, // by what a tool is called with
		`{"*": "deny", "*": "deny", "postern_*": 1}`:                  true,
		`{"*postern*": "deny"}`:                                       true,
		`{"postern?*": "deny"}`:                                       true,
		`{"p?st*n_*": "deny"}`:                                        true,
		`{"**_file": "deny"}`:                                         true,
		`{"POSTERN_*": "deny"}`:                                       true, // some systems tell no case
		`{"postern_* *": "deny"}`:                                     true,
		`{"postern_*": {"*": "deny"}}`:                                true,
		`{"postern": "deny"}`:                                         true,
		`"deny"`:                                                      true,
		`{"*": "deny", "postern_*": "allow"}`:                         false, // the controls
		`{"*": "deny", "post*": "ask"}`:                               false,
		`{"*postern*": "deny", "bash": "allow", "postern_*": "ask"}`:  false,
		`{"other_*": "deny", "*github*": "deny", "postern?": "deny"}`: false,
		`{"poster_*": "deny", "postern_x_*": "deny", "?": "deny"}`:    false,
		`{"[p]ostern_*": "deny", "*[": "deny", "{*": "deny"}`:         false,
		`{"postern_*": {"*": "ask"}, "other_*": {"*": "deny"}}`:       false,
		`{"postern_delete_file": "deny", "postern_*": "allow"}`:       false,
		`["postern_*"]`:                                               false,
	} {
		key := map[bool]string{true: "permission"}[off]
		expectOff(t, "opencode", file, `{"permission": `+rules+`}`, key)
	}
}

// TestToolsOfOpenCode: the older list of tools is read the same way.
func TestToolsOfOpenCode(t *testing.T) {
	for tools, key := range map[string]string{
		`{"*": true, "postern_*": false}`: "tools",
		`{"*postern*": false}`:            "tools",
		`{"*": false, "postern_*": true}`: "", // the controls
		`{"*": true, "other_*": false}`:   "",
	} {
		expectOff(t, "opencode", ".opencode/opencode.json", `{"tools": `+tools+`}`, key)
	}
}

// TestRulesByServer: an entry that may be about any server, and a pattern that
// may have ours, count as those that name it.
func TestRulesByServer(t *testing.T) {
	const claude, cursor, code = ".claude/settings.json", ".cursor/cli.json", "~/.config/Code/User/settings.json"
	for _, c := range []struct{ id, file, text, key string }{
		{"claude-code", claude, `{"deniedMcpServers": [{"serverCommand": ["{line}"]}]}`, "deniedMcpServers"},
		{"claude-code", claude, `{"deniedMcpServers": [{"serverUrl": "*"}]}`, "deniedMcpServers"},
		{"claude-code", claude, `{"deniedMcpServers": [{"serverName": "x"}, {"serverName": "x", "serverCommand": ["y"]}]}`, "deniedMcpServers"},
		{"claude-code", claude, `{"deniedMcpServers": [1]}`, "deniedMcpServers"},
		{"claude-code", claude, `{"deniedMcpServers": [{"serverName": "x"}]}`, ""},
		{"claude-code", claude, `{"deniedMcpServers": []}`, ""},
		{"claude-code", claude, `{"allowedMcpServers": [{"serverName": "postern"}, {"serverCommand": ["x"]}]}`, "allowedMcpServers"},
		{"claude-code", claude, `{"allowedMcpServers": []}`, "allowedMcpServers"},
		{"claude-code", claude, `{"allowedMcpServers": [{"serverName": "postern"}, {"serverName": "x"}]}`, ""},
		{"claude-code", claude, `{"permissions": {"deny": ["mcp__post*"]}}`, "permissions.deny"},
		{"claude-code", claude, `{"permissions": {"deny": ["*ostern__*"]}}`, "permissions.deny"},
		{"claude-code", claude, `{"permissions": {"deny": ["mcp__*n"]}}`, "permissions.deny"},
		{"claude-code", claude, `{"permissions": {"deny": ["mcp__*__x*", "mcp__other__*", "Read(*)", "Bash(* mcp__postern__*)"]}}`, ""},
		{"vscode", code, `{"chat.mcp.access": "registry"}`, "chat.mcp.access"},
		{"vscode", code, `{"chat.mcp.access": "none"}`, "chat.mcp.access"},
		{"vscode", code, `{"chat.mcp.access": "all"}`, ""},
		{"cursor", cursor, `{"permissions": {"deny": ["Mcp(post*:*)"]}}`, "permissions.deny"},
		{"cursor", cursor, `{"permissions": {"deny": ["Mcp(postern)"]}}`, "permissions.deny"},
		{"cursor", cursor, `{"permissions": {"deny": ["Mcp(Postern:**)"]}}`, "permissions.deny"},
		{"cursor", cursor, `{"permissions": {"deny": ["Mcp(p?stern:?*)"]}}`, "permissions.deny"},
		{"cursor", cursor, `{"permissions": {"deny": ["Mcp(*)"]}}`, "permissions.deny"},
		{"cursor", cursor, `{"permissions": {"deny": ["Mcp(other*:*)", "Mcp(other)", "Mcp(post:*)", "Mcp(*:x)", "Shell(*)"]}}`, ""},
	} {
		expectOff(t, c.id, c.file, c.text, c.key)
	}
}

// TestManyRules: all tools denied one by one are the server; and what is too much
// to be compared counts as if it took the tools away.
func TestManyRules(t *testing.T) {
	quoted := func(front string, names []string) string {
		return `"` + front + strings.Join(names, `", "`+front) + `"`
	}
	deny := `{"permissions": {"deny": [%s]}}`
	all, many := safety.Tools(), make([]string, mostRules+1)
	for i := range many {
		many[i] = fmt.Sprintf("*%dx", i)
	}
	for text, key := range map[string]string{
		quoted("mcp__postern__", all):                       "permissions.deny",
		quoted("mcp__postern__", all[1:]):                   "",
		quoted("", many):                                    "permissions.deny",
		quoted("", many[1:]):                                "",
		quoted("Bash(", many):                               "", // begins otherwise
		`"mcp__` + strings.Repeat("*", 5000) + `x"`:         "",
		`"mcp__*` + strings.Repeat("x?", 5000) + `"`:        "permissions.deny",
		`"` + strings.Repeat("*a*?", 900) + `_delete_file"`: "",
	} {
		expectOff(t, "claude-code", ".claude/settings.json", fmt.Sprintf(deny, text), key)
	}
	rules := strings.ReplaceAll(quoted("", many), `",`, `": "ask",`) + `: "ask"`
	expectOff(t, "opencode", "~/.config/opencode/opencode.json", `{"permission": {`+rules+`}}`, "permission")
	long := strings.Repeat("a", longestName)
	if !takes([]string{"*x"}, long+"a", "_") || takes([]string{"*x"}, long, "_") || takes([]string{"x"}, long+"a", "_") {
		t.Error("a long name is not judged as it should")
	}
}
