// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"slices"
	"strings"
)

// layer is one place that a client takes servers from: a file, beneath the project
// where it begins with "./", and the object in it, nil for the client's own. In
// keys {folder} stands for the project's path and * for any. The last part of a
// place may begin with *: then it is all files of the folder that end so.
type layer struct {
	place string
	keys  []string
}

// layers are the places of a client's servers, what counts most first, as it
// documents them; none for a client whose places don't touch each other. Mixed
// says that an entry of one place fills in what that of another leaves out.
func layers(id string) (all []layer, mixed bool) {
	switch id {
	case "claude-code":
		local := []string{"projects", "{folder}", "mcpServers"}
		return []layer{{"{claude}/.config.json", local}, {"{claude.json}/.claude.json", local}, {"./.mcp.json", nil}, {"{claude.json}/.claude.json", nil}}, false
	case "cursor":
		return []layer{{"./.cursor/mcp.json", nil}, {"~/.cursor/mcp.json", nil}}, false
	case "codex":
		profiles := []string{"profiles", "*", "mcp_servers"}
		return []layer{
			{"{codex}/*.config.toml", nil},
			{"./.codex/config.toml", profiles},
			{"./.codex/config.toml", nil},
			{"{codex}/config.toml", profiles},
			{"{codex}/config.toml", nil},
		}, true
	case "gemini-cli":
		return []layer{{"./.gemini/settings.json", nil}, {"{gemini}/.gemini/settings.json", nil}}, false
	case "opencode":
		for _, front := range []string{"./.opencode/", "~/.opencode/", "./", "{config}/opencode/"} {
			all = append(all, layer{front + "opencode.json", nil}, layer{front + "opencode.jsonc", nil})
		}
		return append(all, layer{"{config}/opencode/config.json", nil}), true
	case "zed":
		return []layer{{"./.zed/settings.json", nil}, {"{config}/zed/settings.json", nil}}, true
	case "copilot-cli":
		return []layer{{"./.mcp.json", nil}, {"./.github/mcp.json", nil}, {"{copilot}/mcp-config.json", nil}}, false
	case "kiro":
		return []layer{{"./.kiro/settings/mcp.json", nil}, {"~/.kiro/settings/mcp.json", nil}}, false
	}
	return nil, false
}

// switchOff is a place where a client's server can be switched off by its name.
// In keys {name} stands for that in small letters.
type switchOff struct {
	layer
	// off reports whether the value that is there switches the server off.
	off func(value any, server string) bool
	// project says that it is about entries of the project's file alone.
	project bool
}

// switches are the places where a client documents that servers are switched off.
func switches(id string) (all []switchOff) {
	add := func(off func(any, string) bool, keys string, places ...string) {
		for _, place := range places {
			all = append(all, switchOff{layer{place, strings.Split(keys, " ")}, off, strings.HasSuffix(keys, "McpjsonServers")})
		}
	}
	switch id {
	case "claude-code":
		settings := []string{"{claude}/settings.json", "./.claude/settings.json", "./.claude/settings.local.json"}
		add(denies, "permissions deny", settings...)
		add(lists, "disabledMcpjsonServers", settings...)
		add(lists, "deniedMcpServers", settings...)
		add(leavesOut, "allowedMcpServers", settings...)
		add(lists, "projects {folder} disabledMcpjsonServers", "{claude.json}/.claude.json")
		add(lists, "projects {folder} disabledMcpServers", "{claude.json}/.claude.json")
	case "cursor":
		add(denies, "permissions deny", "~/.cursor/cli-config.json", "{cursor}/cli-config.json", "./.cursor/cli.json")
	case "vscode":
		settings := []string{"{app}/Code/User/settings.json", "./.vscode/settings.json"}
		add(says("none"), "chat.mcp.access", settings...)
		add(says(false), "chat.mcp.enabled", settings...)
	case "gemini-cli":
		settings := []string{"{gemini}/.gemini/settings.json", "./.gemini/settings.json"}
		add(lists, "mcp excluded", settings...)
		add(leavesOut, "mcp allowed", settings...)
		add(lists, "excludeMCPServers", settings...)
		add(leavesOut, "allowMCPServers", settings...)
		add(says(false), "{name} enabled", "{gemini}/.gemini/mcp-server-enablement.json")
	case "opencode":
		files, _ := layers(id)
		for _, f := range files {
			add(turnsOff, "tools", f.place)
			add(turnsOff, "permission", f.place)
		}
	}
	return all
}

// lists holds for a list that names the server, as a text or a member of an object.
func lists(value any, server string) bool {
	all, _ := value.([]any) // anything else names none
	return slices.ContainsFunc(all, func(v any) bool {
		if o, ok := v.(map[string]any); ok {
			v = o["serverName"]
		}
		return v == server
	})
}

// leavesOut holds for a list of what is allowed that doesn't name the server.
func leavesOut(value any, server string) bool {
	_, ok := value.([]any)
	return ok && !lists(value, server)
}

func says(word any) func(any, string) bool {
	return func(value any, _ string) bool { return value == word }
}

// denies holds for a list of rules one of which denies every tool of the server,
// as Claude Code and Cursor write them.
func denies(value any, server string) bool {
	all, _ := value.([]any) // anything else denies nothing
	tools := "mcp__" + toolName(server) + "__"
	return slices.ContainsFunc(all, func(v any) bool {
		rule, _ := v.(string) // anything else is no rule
		switch {
		case strings.HasPrefix(rule, "Mcp("):
			return rule == "Mcp("+server+":*)" || rule == "Mcp(*:*)" || rule == "Mcp(*)"
		case rule+"__" == tools:
			return true
		}
		return matches(rule, tools)
	})
}

// turnsOff holds for rules by names of tools, as OpenCode writes them, that take
// every tool of the server away and that no narrower one gives back.
func turnsOff(value any, server string) bool {
	rules, ok := value.(map[string]any)
	if !ok {
		return value == "deny"
	}
	off, on := false, false
	for pattern, v := range rules {
		if matches(pattern, toolName(server)+"_") {
			taken := v == false || v == "deny"
			off, on = off || taken, on || !taken
		}
	}
	return off && !on
}

// matches reports whether a pattern takes in all that begins with the front.
func matches(pattern, front string) bool {
	bare, star := strings.CutSuffix(pattern, "*")
	return star && strings.HasPrefix(front, bare)
}

// toolName is how a server's name stands in the names of its tools.
func toolName(server string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, server)
}
