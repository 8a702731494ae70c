// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/textsafe"
)

// judged attaches the client, puts a file beside its entry and returns what is
// said of the entry, and what is to be done.
func judged(t *testing.T, id, file, text string) (doubt, step string) {
	t.Helper()
	p := newPlace(t)
	p.apply(p.attach(id))
	names := strings.NewReplacer("{p}", p.w.Project, "{line}", strings.Join([]string{program, "serve", "--agent", id, p.w.Project}, `", "`),
		"{args}", strings.Join([]string{"serve", "--agent", id, p.w.Project}, `", "`))
	at := strings.Replace(file, "~", p.w.Home, 1)
	if !filepath.IsAbs(at) {
		at = p.project(file)
	}
	text = names.Replace(text)
	if strings.HasPrefix(text, "+") {
		text = p.get(at) + text[1:]
	}
	if strings.HasPrefix(text, "{+") {
		text = "{" + text[2:] + "," + p.get(at)[1:]
	}
	p.put(at, text)
	all, _ := Attached(p.w)
	for _, a := range all {
		if a.Client.ID == id && !a.Foreign && !strings.HasSuffix(a.File, "jsonc") {
			return strings.ReplaceAll(a.Doubt(p.w.Project), textsafe.Word(at), "FILE"), strings.ReplaceAll(a.Step(), textsafe.Word(at), "FILE")
		}
	}
	t.Fatalf("%s: %+v", id, all)
	return "", ""
}

const evil = `{"command": "/bin/evil", "args": []}`

// TestReplaced: an entry of the name in a place that counts before ours, or is
// mixed with it, makes it doubtful.
func TestReplaced(t *testing.T) {
	for _, c := range []struct{ id, file, text, key string }{
		{"claude-code", "~/.claude.json", `{"projects": {"{p}": {"mcpServers": {"postern": ` + evil + `}}}}`, `"projects.{p}.mcpServers.postern"`},
		{"claude-code", "~/.claude.json", `{"projects": {"{p}": {"mcpServers": {"postern": false}}}}`, `"projects.{p}.mcpServers.postern"`},
		{"claude-code", "~/.claude.json", `{"projects": {"{p}": {"mcpServers": {"postern": {"command": "` + program + `", "args": ["{args}"]}}}}}`, ""},
		{"claude-code", "~/.claude.json", `{"projects": {"{p}": {"mcpServers": {"postern": {"command": "` + program + `"}}}}}`, `"projects.{p}.mcpServers.postern"`},
		{"claude-code", "~/.claude.json", `{"projects": {"{p}": {"mcpServers": {"other": ` + evil + `}}, "/q": {"mcpServers": {"postern": ` + evil + `}}}}`, ""},
		{"claude-code", "~/.claude.json", `{"mcpServers": {"postern": ` + evil + `}}`, ""}, // counts less
		{"cursor", "~/.cursor/mcp.json", `{"mcpServers": {"postern": ` + evil + `}}`, ""},
		{"gemini-cli", "~/.gemini/settings.json", `{"mcpServers": {"postern": ` + evil + `}}`, ""},
		{"kiro", "~/.kiro/settings/mcp.json", `{"mcpServers": {"postern": ` + evil + `}}`, ""},
		{"vscode", "~/.config/Code/User/mcp.json", `{"servers": {"postern": ` + evil + `}}`, ""},
		{"codex", ".codex/config.toml", "[mcp_servers.postern-my-project]\ncommand = '/bin/evil'\n", "mcp_servers.postern-my-project"},
		{"codex", ".codex/config.toml", "[mcp_servers.postern-my-project]\ncommand = \"\"\"/bin/evil\"\"\"\n", "mcp_servers.postern-my-project"},
		{"codex", ".codex/config.toml", "mcp_servers.postern-my-project.enabled = false\n", "mcp_servers.postern-my-project"},
		{"codex", ".codex/config.toml", "mcp_servers = { postern-my-project = { enabled = false } }\n", "mcp_servers.postern-my-project"},
		{"codex", ".codex/config.toml", "[[mcp_servers]]\n[mcp_servers.postern-my-project.env]\nA = 'b'\n", "mcp_servers.postern-my-project"},
		{"codex", ".codex/config.toml", "mcp_servers = 1\n", "mcp_servers"},
		{"codex", ".codex/config.toml", "[mcp_servers.postern]\ncommand = '/bin/evil'\n", ""},
		{"codex", ".codex/config.toml", "[mcp_servers.postern-my-project]\ncommand = '" + program + "'\nstartup_timeout_sec = 20\n", ""},
		{"codex", "~/.codex/config.toml", "+\n[profiles.a.mcp_servers.postern-my-project]\nenabled = false\n", "profiles.a.mcp_servers.postern-my-project"},
		{"codex", "~/.codex/config.toml", "+\n[profiles.a]\nmodel = 'x'\n[profiles]\nb = { mcp_servers = { postern = {} } }\n", ""},
		{"codex", "~/.codex/work.config.toml", "[mcp_servers.postern-my-project]\nenabled = false\n", "mcp_servers.postern-my-project"},
		{"codex", "~/.codex/work.toml", "[mcp_servers.postern-my-project]\nenabled = false\n", ""},
		{"opencode", ".opencode/opencode.json", `{"mcp": {"postern": {"command": ["/bin/evil"]}}}`, "mcp.postern"},
		{"opencode", ".opencode/opencode.jsonc", `{"mcp": {"postern": {"enabled": false}}} // off`, "mcp.postern"},
		{"opencode", "opencode.jsonc", `{"mcp": {"postern": {"enabled": false}}}`, "mcp.postern"},
		{"opencode", "opencode.jsonc", `{"mcp": {"postern": {"command": ["{line}"], "enabled": true, "type": "local"}}}`, ""},
		{"opencode", "opencode.jsonc", `{"mcp": null}`, "mcp"},
		{"opencode", "~/.config/opencode/opencode.json", `{"mcp": {"postern": {"environment": {"LD_PRELOAD": "x"}}}}`, "mcp.postern"},
		{"opencode", "~/.config/opencode/opencode.json", `{"mcp": {"x": {"enabled": false}}}`, ""},
		{"zed", "~/.config/zed/settings.json", `{"context_servers": {"postern": {"enabled": false}}}`, "context_servers.postern"},
		{"copilot-cli", ".mcp.json", `{"mcpServers": {"postern-my-project": ` + evil + `}}`, "mcpServers.postern-my-project"},
		{"copilot-cli", ".github/mcp.json", `{"mcpServers": {"postern-my-project": ` + evil + `}}`, "mcpServers.postern-my-project"},
		{"copilot-cli", ".mcp.json", `{"mcpServers": {"postern": ` + evil + `}}`, ""},
	} {
		doubt, step := judged(t, c.id, c.file, c.text)
		if c.key == "" && doubt != "" || c.key != "" && (!strings.HasPrefix(doubt, "is replaced or changed by ") || !strings.HasPrefix(step, "take ") || !strings.Contains(step, "out of FILE")) {
			t.Errorf("%s, %s: %s: %q %q", c.id, c.file, c.text, doubt, step)
		}
		if !strings.HasPrefix(c.key, `"`) && c.key != "" && doubt != "is replaced or changed by "+c.key+" in FILE" {
			t.Errorf("%s, %s: %s: %q", c.id, c.file, c.text, doubt)
		}
	}
}

// TestSwitchedOff: nor does an entry guard that is switched off by its name.
func TestSwitchedOff(t *testing.T) {
	for _, c := range []struct{ id, file, text, key string }{
		{"claude-code", ".claude/settings.json", `{"disabledMcpjsonServers": ["x", "postern"]}`, "disabledMcpjsonServers"},
		{"claude-code", ".claude/settings.local.json", `{"disabledMcpjsonServers": ["postern"]}`, "disabledMcpjsonServers"},
		{"claude-code", "~/.claude/settings.json", `{"permissions": {"deny": ["Bash", "mcp__postern"]}}`, "permissions.deny"},
		{"claude-code", ".claude/settings.json", `{"permissions": {"deny": ["mcp__postern__*"]}}`, "permissions.deny"},
		{"claude-code", ".claude/settings.json", `{"permissions": {"deny": ["mcp__*"]}}`, "permissions.deny"},
		{"claude-code", ".claude/settings.json", `{"deniedMcpServers": [{"serverName": "postern"}]}`, "deniedMcpServers"},
		{"claude-code", ".claude/settings.json", `{"allowedMcpServers": [{"serverName": "x"}]}`, "allowedMcpServers"},
		{"claude-code", ".claude/settings.json", `{"allowedMcpServers": [{"serverName": "postern"}]}`, ""},
		{"claude-code", ".claude/settings.json", `{"permissions": {"deny": ["mcp__posternx", "mcp__postern__delete_file", "Read", 1], "allow": ["mcp__postern"]}}`, ""},
		{"claude-code", ".claude/settings.json", `{"enabledMcpjsonServers": ["postern"], "disabledMcpjsonServers": "postern"}`, ""},
		{"claude-code", "~/.claude.json", `{"projects": {"{p}": {"disabledMcpServers": ["postern"]}}}`, `"projects.{p}.disabledMcpServers"`},
		{"claude-code", "~/.claude.json", `{"projects": {"/q": {"disabledMcpServers": ["postern"]}}}`, ""},
		{"cursor", ".cursor/cli.json", `{"permissions": {"deny": ["Mcp(postern:*)"]}}`, "permissions.deny"},
		{"cursor", ".cursor/cli.json", `{"permissions": {"deny": ["Mcp(postern:delete_file)", "Mcp(x:*)"]}}`, ""},
		{"vscode", ".vscode/settings.json", `{"chat.mcp.access": "none", }`, "chat.mcp.access"},
		{"vscode", "~/.config/Code/User/settings.json", `{"chat.mcp.enabled": false}`, "chat.mcp.enabled"},
		{"vscode", ".vscode/settings.json", `{"chat.mcp.access": "all", "chat.mcp.enabled": true}`, ""},
		{"gemini-cli", ".gemini/settings.json", `{+"mcp": {"excluded": ["postern"]}`, "mcp.excluded"},
		{"gemini-cli", "~/.gemini/settings.json", `{"mcp": {"allowed": ["x"]}}`, "mcp.allowed"},
		{"gemini-cli", "~/.gemini/settings.json", `{"mcp": {"allowed": ["x", "postern"], "excluded": ["x"]}}`, ""},
		{"gemini-cli", "~/.gemini/settings.json", `{"allowMCPServers": []}`, "allowMCPServers"},
		{"gemini-cli", "~/.gemini/mcp-server-enablement.json", `{"postern": {"enabled": false}}`, "postern.enabled"},
		{"gemini-cli", "~/.gemini/mcp-server-enablement.json", `{"postern": {"enabled": true}, "x": {"enabled": false}}`, ""},
		{"opencode", ".opencode/opencode.json", `{"tools": {"postern_*": false}}`, "tools"},
		{"opencode", "opencode.json", `{+"permission": {"postern*": "deny"}`, "permission"},
		{"opencode", "~/.config/opencode/opencode.json", `{"tools": {"*": false}}`, "tools"},
		{"opencode", "opencode.json", `{+"tools": {"*": false, "postern*": true, "bash": false}, "permission": {"postern_delete_file": "deny"}`, ""},
	} {
		doubt, step := judged(t, c.id, c.file, c.text)
		if c.key == "" && doubt != "" || c.key != "" && (!strings.HasPrefix(doubt, "may be switched off by ") || !strings.HasPrefix(step, "change ")) {
			t.Errorf("%s, %s: %s: %q %q", c.id, c.file, c.text, doubt, step)
		}
		if !strings.HasPrefix(c.key, `"`) && c.key != "" && doubt != "may be switched off by "+c.key+" in FILE" {
			t.Errorf("%s, %s: %s: %q", c.id, c.file, c.text, doubt)
		}
	}
}

// TestLocalEntry: the name of ours in what Claude Code keeps for the folder is
// that of a project's file, and is told also if it runs something else.
func TestLocalEntry(t *testing.T) {
	p := newPlace(t)
	p.put(p.home(".claude.json"), `{"mcpServers": {"postern": `+evil+`}, "projects": {"`+p.w.Project+`": {"mcpServers": {"postern": `+evil+`, "postern-my-project": `+evil+`}}}}`)
	all, errs := Attached(p.w)
	if len(all) != 1 || all[0].Entry != "postern" || !all[0].Foreign || all[0].Everywhere || errs != nil {
		t.Errorf("%+v %v", all, errs)
	}
	// Nothing counts before it, and a list about .mcp.json isn't about it.
	line := `{"command": "` + program + `", "args": ["serve", "--agent", "claude-code", "` + p.w.Project + `"]}`
	p.put(p.home(".claude.json"), `{"projects": {"`+p.w.Project+`": {"mcpServers": {"postern": `+line+`}}}}`)
	p.put(p.project(".mcp.json"), `{"mcpServers": {"postern": `+evil+`}}`)
	p.put(p.project(".claude/settings.json"), `{"disabledMcpjsonServers": ["postern"]}`)
	all, _ = Attached(p.w)
	if len(all) != 2 || !all[0].Foreign || all[1].Foreign || all[1].Doubt(p.w.Project) != "" {
		t.Errorf("%+v", all)
	}
}

// TestFilesThatCantBeLookedThrough: what can't be read may say anything, so that
// the entry is doubtful, and nothing hangs or is followed.
func TestFilesThatCantBeLookedThrough(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"not JSON":  func(path string) error { return os.WriteFile(path, []byte("{,"), 0o600) },
		"not UTF-8": func(path string) error { return os.WriteFile(path, []byte("{\"\xff\": 1}"), 0o600) },
		"too deep":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("[", maxDepth+1)), 0o600) },
		"too large": func(path string) error { return os.WriteFile(path, make([]byte, maxFile+1), 0o600) },
		"a link":    func(path string) error { return os.Symlink("/dev/null", path) },
		"a folder":  func(path string) error { return os.Mkdir(path, 0o700) },
		"empty":     func(path string) error { return os.WriteFile(path, []byte("\n"), 0o600) }, // the controls
		"a list":    func(path string) error { return os.WriteFile(path, []byte("[]"), 0o600) },
	} {
		p := newPlace(t)
		p.apply(p.attach("claude-code"))
		p.put(p.project(".claude/x"), "")
		if err := put(p.project(".claude/settings.json")); err != nil {
			t.Fatal(err)
		}
		all, errs := Attached(p.w)
		if len(all) != 1 || errs != nil {
			t.Fatalf("%s: %+v %v", name, all, errs)
		}
		fine := name == "empty" || name == "a list"
		if doubt := all[0].Doubt(p.w.Project); strings.Contains(doubt, "which can't be looked through") == fine {
			t.Errorf("%s: %q", name, doubt)
		}
		if step := all[0].Step(); strings.Contains(step, "read and parsed") == fine {
			t.Errorf("%s: %q", name, step)
		}
	}
}

// TestHostileLayers: a project's files of any size and with any names are read
// within bounds and drawn safely.
func TestHostileLayers(t *testing.T) {
	doubt, _ := judged(t, "codex", ".codex/config.toml", "[profiles.\"\\u001b[2K\\n"+strings.Repeat("x", 200)+"\".mcp_servers.postern-my-project]\nenabled = false\n")
	if !strings.Contains(doubt, `\u001b[2K`) || strings.ContainsAny(doubt, "\x1b\n") || len(doubt) > 300 {
		t.Errorf("%q", doubt)
	}
	for name, text := range map[string]string{
		"a long key":  strings.Repeat("a.", maxParts) + "b = 1\n",
		"a large one": strings.Repeat("#\n", maxLayer/2+1),
	} {
		if doubt, _ := judged(t, "codex", ".codex/config.toml", text); !strings.Contains(doubt, "can't be looked through") {
			t.Errorf("%s: %q", name, doubt)
		}
		if doubt, _ := judged(t, "codex", ".codex/config.toml", text[:len(text)/2-len(text)/2%2]+"#"); name == "a large one" && doubt != "" { // control
			t.Errorf("%s: %q", name, doubt)
		}
	}
	p := newPlace(t)
	var many strings.Builder
	for i := range mostJudged + 1 {
		fmt.Fprintf(&many, `%s"s%d": {"command": "%s", "args": ["serve", "--agent", "claude-code", "%s"]}`, strings.Repeat(", ", min(i, 1)), i, program, p.w.Project)
	}
	p.put(p.project(".mcp.json"), `{"mcpServers": {`+many.String()+`}}`)
	all, _ := Attached(p.w)
	for i, a := range all {
		if doubt := a.Doubt(p.w.Project); (doubt != "") != (i >= mostJudged) {
			t.Errorf("%d: %q", i, doubt)
		}
	}
	if len(all) != mostJudged+1 {
		t.Errorf("%d entries", len(all))
	}
}
