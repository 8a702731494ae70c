// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"maps"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/internal/safety"
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
	// off reports whether the value that is there may switch the server off.
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
		add(refuses, "deniedMcpServers", settings...)
		add(shutsOut, "allowedMcpServers", settings...)
		add(lists, "projects {folder} disabledMcpjsonServers", "{claude.json}/.claude.json")
		add(lists, "projects {folder} disabledMcpServers", "{claude.json}/.claude.json")
	case "cursor":
		add(denies, "permissions deny", "~/.cursor/cli-config.json", "{cursor}/cli-config.json", "./.cursor/cli.json")
	case "vscode":
		settings := []string{"{app}/Code/User/settings.json", "./.vscode/settings.json"}
		add(says("none"), "chat.mcp.access", settings...)
		add(says("registry"), "chat.mcp.access", settings...)
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

// lists holds for a list that names the server.
func lists(value any, server string) bool {
	all, _ := value.([]any) // anything else names none
	return slices.Contains(all, any(server))
}

// leavesOut holds for a list of what is allowed that doesn't name the server.
func leavesOut(value any, server string) bool {
	_, ok := value.([]any)
	return ok && !lists(value, server)
}

// refuses holds for a list of servers of Claude Code that has ours, or may have it.
func refuses(value any, server string) bool {
	named, other := serversIn(value, server)
	return named || other
}

// shutsOut holds for a list of all that is allowed, as Claude Code writes it,
// that may not have the server: once one is told by its command, a name alone is
// not enough.
func shutsOut(value any, server string) bool {
	named, other := serversIn(value, server)
	_, ok := value.([]any)
	return ok && (!named || other)
}

// serversIn reports whether a list of servers has an entry of this name, and one
// that goes by something else than a name alone, as a command or an address: that
// may be any server.
func serversIn(value any, server string) (named, other bool) {
	all, _ := value.([]any) // anything else has none
	for _, v := range all {
		if o, ok := v.(map[string]any); ok && len(o) == 1 {
			v = o["serverName"]
		}
		name, ok := v.(string)
		named, other = named || ok && name == server, other || !ok
	}
	return named, other
}

func says(word any) func(any, string) bool {
	return func(value any, _ string) bool { return value == word }
}

// denies holds for a list of rules that may deny the tools of the server, as Claude
// Code and Cursor write them.
func denies(value any, server string) bool {
	all, _ := value.([]any) // anything else denies nothing
	var byTool, byServer []string
	for _, v := range all {
		rule, _ := v.(string) // anything else is no rule
		if inner, ok := strings.CutPrefix(rule, "Mcp("); ok {
			byServer = append(byServer, strings.TrimSuffix(inner, ")"))
		} else {
			byTool = append(byTool, rule)
		}
	}
	tools := "mcp__" + toolName(server)
	return takes(byTool, tools, "__") || takes(byServer, server, ":")
}

// turnsOff holds for rules by names of tools, as OpenCode writes them, that may take
// the tools of the server away. The last rule that matches is what counts there, and
// was the longest one once: so only what stands later, is narrower and is about all
// tools of the server gives them back.
func turnsOff(value any, server string) bool {
	rules, ok := value.(inOrder)
	if !ok || len(rules.names) > mostRules {
		return ok || value == "deny"
	}
	name := toolName(server)
	var denied []string
	given, back := "", false
	for _, pattern := range slices.Backward(rules.names) {
		v := rules.members[pattern]
		bare, star := strings.CutSuffix(pattern, "*")
		switch {
		case takenAway(v):
			if !back || !wider(pattern, given) {
				denied = append(denied, pattern)
			}
		case star && strings.HasPrefix(name+"_", bare) && (v == true || v == "allow" || v == "ask"):
			if back = true; len(bare) > len(given) {
				given = bare
			}
		}
	}
	return takes(denied, name, "_")
}

// takenAway reports whether a rule's value denies. One that has rules by what a tool
// is called with denies where one of them does.
func takenAway(v any) bool {
	inner, _ := v.(map[string]any)
	return v == false || v == "deny" || slices.Contains(slices.Collect(maps.Values(inner)), any("deny"))
}

// mostRules is how many rules of a list are compared with names, and longestName
// how long these are: what there is more of may be any.
const (
	mostRules   = 1000
	longestName = 256
)

// takes reports whether rules that deny may take a server's tools away: by its own
// name, by a wildcard that stands for one of its tools, or by all their names. A tool
// that is denied by its name alone leaves the others.
func takes(denied []string, name, join string) bool {
	name = strings.ToLower(name)
	left, paths := map[string]bool{}, []glob.Path{glob.Prepare(oneSegment(name))}
	for _, tool := range safety.Tools() {
		left[name+join+tool] = true
		paths = append(paths, glob.Prepare(oneSegment(name+join+tool)))
	}
	judged, front := 0, name+join
	for _, rule := range denied {
		rule = strings.ToLower(rule)
		if delete(left, rule); rule == name || len(left) == 0 {
			return true
		}
		i := strings.IndexAny(rule, "*?")
		if i < 0 || !strings.HasPrefix(front, rule[:i]) && !strings.HasPrefix(rule[:i], front) {
			continue
		}
		p, err := wildcards(rule)
		meets := func(path glob.Path) bool { return p.Matches(&path, false) }
		if judged++; judged > mostRules || len(name) > longestName || err != nil || slices.ContainsFunc(paths, meets) {
			return true
		}
	}
	return false
}

// wider reports whether a pattern is about all that begins so, and more.
func wider(pattern, front string) bool {
	p, err := wildcards(pattern)
	return err == nil && !strings.HasPrefix(pattern, front) && p.Match(front+"~")
}

// wildcards compiles a pattern of a client: * and ? are all that is special in it,
// a star crosses slashes, and behind a blank it may stand for nothing, as may the
// blank.
func wildcards(pattern string) (glob.Pattern, error) {
	text := []byte(escapes.Replace(oneSegment(strings.TrimSuffix(pattern, " *"))))
	text = slices.CompactFunc(text, func(a, b byte) bool { return a == '*' && b == '*' })
	return glob.CompileFolded(string(text))
}

// escapes takes its meaning from what is special in our patterns alone.
var escapes = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `{`, `\{`, `}`, `\}`)

// oneSegment puts what any ? stands for in place of slashes.
func oneSegment(s string) string { return strings.ReplaceAll(s, "/", "?") }

// toolName is how a server's name stands in the names of its tools.
func toolName(server string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, server)
}
