// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
)

// TestBuiltinPatternsCompile: a pattern that did not compile would guard nothing.
func TestBuiltinPatternsCompile(t *testing.T) {
	for _, e := range slices.Concat(secrets(), runsByItself()) {
		for _, r := range e.rules(Config{Roots: []Root{{Name: "r", Homes: []string{"home/*"}}}}) {
			if r.pattern.String() == "" {
				t.Errorf("%s: %s does not compile", e.name, r.reason.Rule)
			}
		}
		for _, x := range lines(e.except) {
			if err := Check(core.ActionUnknown, core.Allow, x, nil); err != nil {
				t.Errorf("%s: except %s: %v", e.name, x, err)
			}
		}
	}
}

func TestBuiltinLists(t *testing.T) {
	d := Default()
	p, err := Compile(Config{
		Fallback: &d,
		Roots:    []Root{{Name: "project"}, {Name: "all", Homes: []string{"home/*"}}, {Name: "state"}},
		Protected: []Protected{
			{Root: "project", Path: "st[a]te", Entry: "postern-state"},
			{Root: "project", Path: "bin/postern", Entry: "postern"},
			{Root: "project", Path: "dot/.vscode", Entry: "editors"},
			{Root: "project", Path: "dot/.cursor", Entry: "agents"},
			{Root: "state", Entry: "postern-state"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{ // entry, or "" for no entry: names; a leading ! marks those that may be read
		"dotenv": ".env a/.env .env.local a/b/.ENV .env::$DATA .e\u200bnv .env/x .env.EXAMPLE .env.example/x",
		"keys":   "a.pem x/b.KEY id_rsa .x/id_ed25519_work id_ecdsa.bak id_dsa a.p12 a.pfx a.jks a.kdbx id_rsa.pub:x:$DATA id_rsa::$DATA.pub",
		"ssh":    ".ssh .ssh/config x/.ssh/known_hosts", "gnupg": ".gnupg/x",
		"cloud":     ".aws/config .azure/x .config/gcloud/x .kube/config .docker/config.json .oci/config",
		"logins":    ".netrc _netrc .git-credentials .pypirc .config/gh/hosts.yml a/credentials credentials.json service-account-1.json",
		"npmrc":     "a/.npmrc a/b/.NPMRC .Npmrc",
		"browsers":  ".mozilla/firefox/x/logins.json .config/google-chrome/Default .config/google-chrome-beta/x",
		"git":       "!.git/hooks/pre-commit !.git/hooks !.GIT/Config !a/.git/config !.git/modules/a/b/hooks/x !.git/modules/a/config !.gitconfig !.config/git/ignore !.git/worktrees/w/config.worktree !.git !sub/.git !.git/HEAD !.git/refs !.git/remotes/origin !.git/commondir !.git/sub/.git !.git/x/.git/y/config !.husky/pre-commit",
		"shell":     "!.bashrc !.ZSHRC !.config/fish/config.fish !.profile !.xsessionrc",
		"autostart": "!.config/autostart/x !.config/systemd/user/a !Library/LaunchAgents/x !var/spool/cron/u !etc/crontab !etc/cron.d/x",
		"agents": "!.claude/settings.json !.claude/settings.local.json !.claude/hooks/x !.mcp.json !a/.cursor/mcp.json !.cursor/hooks.json !.codex/config.toml !.gemini/settings.json !.github/hooks/x !.windsurf/x !.kiro/x !.opencode/x !opencode.json !a/opencode.jsonc !.claude/commands/x !a/.claude/agents/x !.claude/skills/a/x !.claude/plugins/x !.gemini/commands/x !.gemini/extensions/a/x !.claude.json !.copilot/mcp-config.json !.codeium/windsurf/mcp_config.json !.config/Claude/x !.config/opencode/x" +
			" !.cursor/permissions.json !.cursor/sandbox.json !.cursor/cli.json !a/.CURSOR/worktrees.json !.cursor/environment.json !.cursor/cli-config.json !.cursor/skills/a/SKILL.md !.cursor/rules/.claude/settings.json !.cursor/rules/a/b/c.mdc !.claude/output-styles/x.md !.claude/workflows/x.js !.claude/rules/.x !.claude/.x !.claude/skills/a/.claude/rules/x.md" +
			" !.claude/agents/.cursor/rules/x.md !.qwen/agents/.roo/rules/x.md !.qwen/extensions/a/x.json !.qwen/skills/a/x !.gemini/policies/a.toml !.gemini/trustedFolders.json !.gemini/x !.amazonq/cli-agents/default.json !.amazonq/mcp.json !.roo/mcp.json !.roo/commands/x.md !.continue/mcpServers/x.yaml !.continue/config.ts !.clinerules/hooks/PreToolUse !.clinerules/x.sh !.cline/skills/x" +
			" !.github/copilot/settings.json !.github/copilot/settings.local.json !.github/extensions/a/extension.mjs !.github/lsp.json !.github/mcp.json !.github/agents/a.agent.md !.github/skills/a/SKILL.md !lsp.json !a/.github/lsp.json !.lsp.json !.agents/skills/a/SKILL.md !.agents/hooks.json !.agent/workflows/x.md !.factory/settings.json !.augment/settings.json !.trae/mcp.json !.kilocode/mcp.json" +
			" !.kilo/x !kilo.jsonc !.junie/mcp/mcp.json !.amp/settings.json !.pi/extensions/a.ts !.openhands/setup.sh !crush.json !.crush.json !.crushrc !.aider.conf.yml !.config/cursor/cli-config.json !.config/crush/crushrc !.config/amp/settings.json !dot/.cursor/rules/a.mdc !Documents/Cline/Hooks/x",
		"editors": "!.vscode/tasks.json !a/.vscode/settings.json !.idea/workspace.xml !.envrc !.zed/settings.json !a/.zed/tasks.json !.zed/debug.json !.config/zed/x !.config/Code/User/profiles/a/mcp.json" +
			" !.vscode/launch.json !.vscode/x.json !.vscode/extensions/a/extension.js !.vscode/extensions/a/node_modules/b/index.js !p.code-workspace !a/b.code-workspace !.idea/startup.xml !.idea/watcherTasks.xml !.idea/runConfigurations/a.xml !.run/a.run.xml !.fleet/run.json !.vs/mcp.json !.devcontainer/devcontainer.json !a/.devcontainer.json !.config/Cursor/User/settings.json !.config/VSCodium/User/tasks.json !.config/Windsurf/User/x" +
			" !AppData/Roaming/Cursor/User/settings.json !.vscode-server/data/Machine/settings.json !.config/JetBrains/x !.vimrc !.config/nvim/init.lua !.emacs.d/init.el !dot/.vscode/extensions.json",
		"postern": "!.postern/policy.yaml !.postern !bin/postern", "postern-state": "st[a]te/keys/log .local/state/postern/x",
		"": "main.go .env.example a/.env.template x.pub id_rsa.pub .npmrc docker/.bashrc a/.profile .git/info/exclude .gitignore .github/x a/.claude.json a/.copilot/x .config/Code/x opencode.yaml CLAUDE.md AGENTS.md .cursorrules .pre-commit-config.yaml .vscode .vscode/extensions.json .vscode/go.code-snippets environment .claude .claude/CLAUDE.md .claude/rules .claude/rules/a.md a/.claude/rules/a.md .cursor .cursor/rules a/.cursor/rules/a.mdc .cursor/rules/a/RULE.md src/cursor/permissions.json cursor/mcp.json claude/settings.json .roo/rules/a.md .continue/rules/a.md .amazonq/rules/a.md .clinerules .clinerules/a.md .github/copilot-instructions.md .github/instructions/a.md .github/dependabot.yml a/lsp.json .claude/rules/a/b.md node_modules/a/.vscode/tasks.json node_modules/@a/b/.idea/workspace.xml a/node_modules/b/.devcontainer/devcontainer.json node_modules/a/b.code-workspace src/lsp.json.md lsp.jsonc a.code-workspace.md run/a.xml idea/startup.xml a/.vimrc a/.config/Cursor/User/settings.json .config/VSCodium/settings.json package.json Makefile .github/workflows/ci.yml stae/x bin/postern2 monkey a.keys",
	}
	for entry, names := range tests {
		for name := range strings.FieldsSeq(names) {
			name, readable := strings.CutPrefix(name, "!")
			for _, a := range []core.Action{core.FSRead, core.FSList, core.FSWatch, core.FSWrite, core.FSCreate, core.FSRename, core.FSDelete} {
				want := entry
				if readable && looks(a) {
					want = ""
				}
				got := p.Evaluate(core.Request{Action: a, Resource: core.File("project", name)})
				if got.Reason.Builtin != want || (want != "") != (got.Decision == core.Deny) {
					t.Errorf("%v %q: %v by %q, want entry %q", a, name, got.Decision, got.Reason.Builtin, want)
				}
			}
		}
	}
	for name, entry := range map[string]string{"home/ann/.bashrc": "shell", "home/ann/.config/git/config": "git", "home/ann/.claude.json": "agents", "home/ann/.config/zed/tasks.json": "editors", "home/.bashrc": "", "x/home/ann/.bashrc": ""} {
		if got := p.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File("all", name)}); got.Reason.Builtin != entry {
			t.Errorf("%q: entry %q, want %q", name, got.Reason.Builtin, entry)
		}
	}
	if got := p.Evaluate(core.Request{Action: core.FSRead, Resource: core.File("state", "")}); got.Reason.Builtin != "postern-state" {
		t.Errorf("a root that is the state directory: %v", got)
	}
	r := p.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File("project", ".git/hooks/pre-commit")}).Reason.String()
	if r != `deny "**/.git/hooks/**" (built-in: git): an explicit deny outranks allow` {
		t.Errorf("reason %q", r)
	}
}

func TestLiftedEntries(t *testing.T) {
	d := Default()
	for _, name := range Entries() {
		p, err := Compile(Config{Roots: []Root{{Name: "project"}}, Fallback: &d, Lift: []string{name}})
		if err != nil {
			t.Fatal(err)
		}
		for path, entry := range map[string]string{
			".env": "dotenv", ".ssh/x": "ssh", ".bashrc": "shell", ".envrc": "editors", "p.code-workspace": "editors", ".vscode/tasks.json": "editors", ".config/VSCodium/User/x": "editors",
			".cursor/permissions.json": "agents", ".claude/x": "agents", ".github/copilot/settings.json": "agents", ".claude/agents/.cursor/rules/x.md": "agents",
		} {
			got := p.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File("project", path)})
			if want := core.Deny; (entry == name) == (got.Decision == want) {
				t.Errorf("%s lifted: %s is %v", name, path, got.Decision)
			}
		}
	}
}

// TestClass: a secret stays one when its entry is lifted, the policy denies it
// or its root can't be written, and nothing else becomes one.
func TestClass(t *testing.T) {
	names := map[string]string{
		".env": "dotenv", "a/.ENV": "dotenv", ".e\u200bnv": "dotenv", ".ssh/x": "ssh", "a/b.pem": "keys",
		".env.example": "", "main.go": "", "": "",
	}
	d := Default()
	for what, c := range map[string]Config{
		"default":   {Roots: []Root{{Name: "r"}}, Fallback: &d},
		"lifted":    {Roots: []Root{{Name: "r"}}, Fallback: &d, Lift: Entries()},
		"undecided": {Roots: []Root{{Name: "r"}}, Lift: Entries()},
		"denied":    {Roots: []Root{{Name: "r"}}, Lift: Entries(), Layers: []Layer{{Deny: []Pattern{{Text: "**"}}}}},
		"read only": {Roots: []Root{{Name: "r", ReadOnly: true}}, Fallback: &d},
		"no root":   {Roots: []Root{{Name: "other"}}, Fallback: &d, Lift: []string{"ssh"}},
	} {
		p, err := Compile(c)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range names {
			for _, a := range []core.Action{core.FSRead, core.FSWrite} {
				if got := p.Evaluate(core.Request{Action: a, Resource: core.File("r", name)}).Class; got != want {
					t.Errorf("%s: %v %q belongs to %q, want %q", what, a, name, got, want)
				}
			}
		}
	}
	if got := (*Policy)(nil).Evaluate(core.Request{Action: core.FSRead, Resource: core.File("r", ".env")}); got.Decision != core.Deny {
		t.Errorf("no policy: %v", got)
	}
}
