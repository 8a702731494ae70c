// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// Undo with everything that may have happened since.
func TestUndoAfterChanges(t *testing.T) {
	p := newPlace(t)
	p.put(p.project(".mcp.json"), "{}\n")
	p.apply(p.attach("claude-code", "cursor", "gemini-cli", "codex", "windsurf"))
	// Others write: a server beside ours, a setting, a comment, the whole file
	// anew, our own entry changed by hand.
	p.put(p.project(".mcp.json"), strings.Replace(p.get(p.project(".mcp.json")), `"mcpServers": {`, `"mcpServers": { "a": {"command": "x"},`, 1))
	p.put(p.project(".cursor/mcp.json"), strings.Replace(p.get(p.project(".cursor/mcp.json")), "{", "{ // mine", 1))
	p.put(p.project(".gemini/settings.json"), `{"theme":"x","mcpServers":{"postern":{"args":["serve","--agent","gemini-cli","`+p.w.Project+`"],"command":"`+program+`"}}}`)
	p.put(p.home(".codex/config.toml"), p.get(p.home(".codex/config.toml"))+"[x]\na = 1\n")
	p.put(p.home(".codeium/windsurf/mcp_config.json"), strings.Replace(p.get(p.home(".codeium/windsurf/mcp_config.json")), `"command"`, `"disabled": true, "command"`, 1))
	plan := p.undo()
	p.apply(plan)
	for path, want := range map[string]string{
		p.project(".mcp.json"):             "{\n  \"mcpServers\": { \"a\": {\"command\": \"x\"}\n  }\n}\n",
		p.project(".cursor/mcp.json"):      "{ // mine\n}\n",
		p.project(".gemini/settings.json"): `{"theme":"x"}`,
		p.home(".codex/config.toml"):       "[x]\na = 1\n",
	} {
		if got := p.get(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if len(plan.Kept) != 1 || !strings.Contains(plan.Kept[0], "mcp_config.json:3:") || !strings.Contains(p.get(p.home(".codeium/windsurf/mcp_config.json")), "disabled") {
		t.Errorf("%q", plan.Kept)
	}
}

// What is displaced is compared even if it changed after the last look.
func TestWriteCompares(t *testing.T) {
	p := newPlace(t)
	p.put(p.project(".mcp.json"), "{}")
	plan := p.attach("claude-code")
	p.put(p.project(".mcp.json"), `{"theirs": 1}`)
	if err := plan.write(plan.Changes[0]); fault.CodeOf(err) != fault.PreconditionFailed {
		t.Errorf("%v", err)
	}
	if got := p.get(p.project(".mcp.json")); got != `{"theirs": 1}` {
		t.Error(got)
	}
}

// A flag that somebody has added to our line is neither lost nor trusted.
func TestFlagAddedByHand(t *testing.T) {
	p := newPlace(t)
	p.apply(p.attach("cursor"))
	text := strings.Replace(p.get(p.project(".cursor/mcp.json")), `"cursor", `, `"cursor", "--read-only", `, 1)
	p.put(p.project(".cursor/mcp.json"), text)
	if _, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "cursor")}, nil); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("%v", err)
	}
	text = strings.Replace(text, `"--read-only", "`+p.w.Project+`"`, `"`+p.w.Project+`", "--policy", "evil"`, 1)
	p.put(p.project(".cursor/mcp.json"), text)
	if _, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "cursor")}, nil); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("%v", err)
	}
}

// Nor is a member that changes what our program does.
func TestMemberAddedByHand(t *testing.T) {
	for _, member := range []string{`"env": {"LD_PRELOAD": "x"}`, `"cwd": "/"`, `"trust": true`, `"command": "x"`, `"type": "http"`} {
		p := newPlace(t)
		p.put(p.project(".mcp.json"), `{"mcpServers": {"postern": {"command": "`+program+`", "args": ["serve", "--agent", "claude-code", "`+p.w.Project+`"], `+member+`}}}`)
		if _, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "claude-code")}, nil); fault.CodeOf(err) != fault.ConfigInvalid {
			t.Errorf("%s: %v", member, err)
		}
		if plan := p.undo(); len(plan.Changes) != 0 {
			t.Errorf("%s: %+v", member, plan.Changes)
		}
	}
}

// An entry that is brought up to date goes with the file that was made for it.
func TestUndoAfterUpdate(t *testing.T) {
	p := newPlace(t)
	p.apply(p.attach("cursor"))
	moved, err := NewPlan(p.w, Server{Command: "/new/postern"}, []Client{client(t, "cursor")}, nil)
	if err != nil || len(moved.Changes) != 1 || moved.Changes[0].New {
		t.Fatalf("%v %+v", err, moved)
	}
	p.apply(moved)
	p.apply(p.undo())
	if there(p.project(".cursor")) {
		t.Error("the file is left")
	}
}

// Another folder of the same name keeps its entry, also with nothing remembered.
func TestUndoLeavesTheOther(t *testing.T) {
	p := newPlace(t)
	p.apply(p.attach("codex"))
	other := newPlace(t)
	other.w.Home = p.w.Home
	other.apply(other.attach("codex"))
	config := p.home(".codex/config.toml")
	if n := strings.Count(p.get(config), "\n[mcp_servers.postern-my-project"); n != 2 {
		t.Fatal(p.get(config))
	}
	other.state = filepath.Join(t.TempDir(), "none")
	other.apply(other.undo())
	if got := p.get(config); !strings.Contains(got, p.w.Project) || strings.Contains(got, other.w.Project) {
		t.Error(got)
	}
}
