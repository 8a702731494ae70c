// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recipe is what docs/clients.md says under that heading, in that language, to
// take an agent's own tools away.
func recipe(t *testing.T, heading, language string) string {
	t.Helper()
	data, err := os.ReadFile("../../../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(data), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, block, found := strings.Cut(section, "\n```"+language+"\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !found || !closed {
		t.Fatalf("docs/clients.md has no %s under %q", language, heading)
	}
	return block + "\n"
}

// TestClaudeCodeOwnTools: with the rules of docs/clients.md in a settings file,
// of the user or of the project, Claude Code has no file tool and no shell of its
// own, even when it skips permissions; postern's tools stay. Without the rules each
// of its own gets at the secret or writes.
func TestClaudeCodeOwnTools(t *testing.T) {
	rules := recipe(t, "Claude Code", "json")
	for name, c := range map[string]struct {
		file   string
		args   []string
		denied bool
	}{
		"none":    {},
		"user":    {file: ".claude/settings.json", denied: true},
		"project": {file: "code/app/.claude/settings.json", denied: true},
		"flag":    {args: []string{"--tools", ""}, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ClaudeCode)
			p.attach("", "")
			if c.file != "" {
				p.put(c.file, rules)
			}
			at := func(name string) string { return filepath.Join(p.work, name) }
			s := p.session(
				p.call("read_text_file", object{"path": "notes.md"}),
				p.call("write_file", object{"path": "new.md", "content": "new\n"}),
				Call{Tool: "Read", Input: object{"file_path": at(".env")}},
				Call{Tool: "Bash", Input: object{"command": "cat .env", "description": "look"}},
				Call{Tool: "Write", Input: object{"file_path": at("own.md"), "content": "own\n"}},
				Call{Tool: "Read", Input: object{"file_path": at("notes.md")}}, // else it may not edit
				Call{Tool: "Edit", Input: object{"file_path": at("notes.md"), "old_string": "milk", "new_string": "rum"}},
				Call{Tool: "EnterWorktree", Input: object{"name": "x"}},
			)
			s.Args = c.args
			results := s.Run(t)
			p.guarded(results[:2])
			for i, r := range results[2:] {
				if gone := r.IsError && strings.Contains(r.Text, "No such tool available"); gone != c.denied {
					t.Errorf("%s: %q", s.Calls[i+2].Tool, r.Text)
				}
			}
			for what, done := range map[string]bool{
				"read": strings.Contains(results[2].Text, "5e7c"), "ran": strings.Contains(results[3].Text, "5e7c"),
				"wrote": p.get("code/app/own.md") != "", "edited": strings.Contains(p.get("code/app/notes.md"), "rum"),
			} {
				if done == c.denied {
					t.Errorf("%s: %v", what, done)
				}
			}
		})
	}
}

// TestCodexOwnTools: with the lines of docs/clients.md Codex has no shell
// and no image tool. Its patch tool can't be taken away, but its sandbox refuses
// what that would write, unless Codex is started without the sandbox.
func TestCodexOwnTools(t *testing.T) {
	head, tail := recipe(t, "Codex", "toml")+"\n", approve
	for name, c := range map[string]struct {
		head, tail   string
		cautious     bool
		shell, patch bool // what gets through
	}{
		"none":     {shell: true, patch: true},
		"off":      {head: head, tail: tail, cautious: true},
		"bypassed": {head: head, tail: tail, patch: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, Codex)
			p.attach(c.head, c.tail)
			own := []Call{
				{Tool: "exec_command", Input: object{"cmd": "cat .env"}},
				{Tool: "view_image", Input: object{"path": filepath.Join(p.work, ".env")}},
			}
			s := p.session(append(own,
				p.call("read_text_file", object{"path": "notes.md"}),
				p.call("write_file", object{"path": "new.md", "content": "new\n"}))...)
			s.Cautious = c.cautious
			results := s.Run(t)
			p.guarded(results[2:])
			s.Calls, s.Model = append(own,
				Call{Tool: "exec", Text: "text(await tools.exec_command({cmd: 'cat .env'}))"},
				Call{Tool: "apply_patch", Text: "*** Begin Patch\n*** Add File: own.md\n+own\n*** End Patch\n"}), coding
			more := s.Run(t)
			for _, r := range append(results[:2], more[:3]...) {
				gone := strings.HasPrefix(r.Text, "unsupported call: ") || strings.Contains(r.Text, "tools.exec_command is not a function")
				if gone == c.shell {
					t.Errorf("%q", r.Text)
				}
			}
			for _, r := range []Result{results[0], more[0], more[2]} {
				if secret := strings.Contains(r.Text, "5e7c"); secret != c.shell {
					t.Errorf("read the secret: %v, %q", secret, r.Text)
				}
			}
			refused := strings.Contains(more[3].Text, "read-only sandbox")
			if wrote := p.get("code/app/own.md") == "own\n"; wrote != c.patch || refused == c.patch {
				t.Errorf("wrote: %v; %q", wrote, more[3].Text)
			}
		})
	}
}

// coding is a model that Codex knows: to it, and not to one that Codex has never
// heard of, it offers its patch tool, and JavaScript that calls the other tools.
const coding = "gpt-6-astra"

// TestClaudeCodeAsks: without a person Claude Code refuses postern's tools,
// until a rule of its settings allows them. What .mcp.json names is started
// without being approved when nobody is there.
func TestClaudeCodeAsks(t *testing.T) {
	for name, settings := range map[string]string{"asks": "", "allowed": `{"permissions": {"allow": ["mcp__postern"]}}`} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, ClaudeCode)
			p.put("code/app/.mcp.json", p.object())
			if settings != "" {
				p.put(".claude/settings.json", settings)
			}
			s := p.session(p.call("read_text_file", object{"path": "notes.md"}))
			s.Cautious = true
			r := s.Run(t)[0]
			if asked := r.IsError && strings.Contains(r.Text, "haven't granted it"); asked != (settings == "") || asked == envelope.MatchString(p.shown(r)) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// approve is the line of a server's entry by which Codex doesn't ask.
const approve = "default_tools_approval_mode = \"approve\"\n"

// TestCodexAsks: without a person Codex refuses those of postern's tools that
// change something, until the server's entry approves them.
func TestCodexAsks(t *testing.T) {
	for name, tail := range map[string]string{"asks": "", "approved": approve} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, Codex)
			p.attach("", tail)
			s := p.session(
				p.call("read_text_file", object{"path": "notes.md"}),
				p.call("write_file", object{"path": "new.md", "content": "new\n"}),
			)
			s.Cautious = true
			results := s.Run(t)
			if !envelope.MatchString(p.shown(results[0])) {
				t.Errorf("read: %+v", results[0])
			}
			asked := strings.Contains(results[1].Text, "requires approval")
			if wrote := p.get("code/app/new.md") == "new\n"; asked != (tail == "") || wrote == asked {
				t.Errorf("write: %v, %+v", wrote, results[1])
			}
		})
	}
}

// TestCodexProject: a server in the project's own .codex/config.toml is not
// started until the project is trusted.
func TestCodexProject(t *testing.T) {
	for name, args := range map[string][]string{"untrusted": nil, "trusted": {"--trust"}} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, Codex)
			p.put("code/app/.codex/config.toml", p.table())
			s := p.session(p.call("read_text_file", object{"path": "notes.md"}))
			s.Args, s.Blind = args, args == nil
			r := s.Run(t)[0]
			if unknown := strings.HasPrefix(r.Text, "unsupported call: "); unknown != (args == nil) || unknown == envelope.MatchString(p.shown(r)) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// guarded: postern's tools read notes.md and wrote new.md.
func (p place) guarded(results []Result) {
	p.t.Helper()
	if !envelope.MatchString(p.shown(results[0])) || p.get("code/app/new.md") != "new\n" {
		p.t.Errorf("postern's tools: %+v", results)
	}
}
