// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
)

// entry is a named group of a built-in list. Patterns are separated by line
// ends. Those in home name what lies in a home folder: they hold at the top of
// each root, which may be a home, and at each home that is known to lie
// beneath it (Root.Homes), and not in any other folder, where a .profile or
// .bashrc is a file like any other.
type entry struct {
	name   string
	anyway string
	home   string
	except string
}

const (
	ownFiles = "postern"       // readable
	ownState = "postern-state" // not even that
)

// secrets is the built-in list that is denied for every action.
func secrets() []entry {
	return []entry{
		{
			name: "dotenv", anyway: "**/.env\n**/.env.*",
			except: "**/.env.example\n**/.env.sample\n**/.env.template\n**/.env.dist",
		},
		{name: "keys", anyway: "**/*.pem\n**/*.key\n**/*.p12\n**/*.pfx\n**/*.jks\n**/*.kdbx\n**/id_rsa*\n**/id_ed25519*\n**/id_ecdsa*\n**/id_dsa*", except: "**/*.pub"},
		{name: "ssh", anyway: "**/.ssh/**"},
		{name: "gnupg", anyway: "**/.gnupg/**"},
		{name: "cloud", anyway: "**/.aws/**\n**/.azure/**\n**/.config/gcloud/**\n**/.kube/**\n**/.docker/config.json\n**/.oci/**"},
		{name: "logins", anyway: "**/.netrc\n**/_netrc\n**/.git-credentials\n**/.pypirc\n**/.config/gh/hosts.yml\n**/credentials\n**/credentials.json\n**/service-account*.json"},
		// The one at a root's top is a project's settings as often as a token;
		// whoever reads it judges that by its content.
		{name: "npmrc", anyway: "**/.npmrc", except: ".npmrc"},
		{name: "browsers", anyway: "**/.config/chromium/**\n**/.config/google-chrome*/**\n**/.config/microsoft-edge*/**\n**/.config/BraveSoftware/**\n**/.mozilla/firefox/**\n" +
			"**/snap/chromium/common/**\n**/.var/app/org.mozilla.firefox/**\n**/.var/app/org.chromium.Chromium/**\n**/.var/app/com.google.Chrome*/**\n" +
			"**/.var/app/com.microsoft.Edge*/**\n**/.var/app/com.brave.Browser/**\n**/Library/Application Support/Chromium/**\n**/Library/Application Support/Google/Chrome*/**\n" +
			"**/Library/Application Support/Firefox/**\n**/Library/Application Support/Microsoft Edge*/**\n**/Library/Application Support/BraveSoftware/**\n" +
			"**/AppData/Local/Chromium/User Data/**\n**/AppData/Local/Google/Chrome*/User Data/**\n**/AppData/Roaming/Mozilla/Firefox/**\n" +
			"**/AppData/Local/Microsoft/Edge*/User Data/**\n**/AppData/Local/BraveSoftware/**"},
		// A file that is being replaced has its old or new content under a name
		// like the last one for a moment, and after a crash for good.
		{name: ownState, anyway: "**/.local/state/postern/**\n**/.postern-tmp-*"},
	}
}

// runsByItself is the built-in list that is denied for everything but read,
// list and watch: a program reads these files without being told to.
func runsByItself() []entry {
	return []entry{
		{
			// commondir and gitdir make a repository take its configuration and
			// hooks from elsewhere, and the todo lists hold commands
			// (gitrepository-layout, git-rebase).
			name: "git", anyway: "**/.git/hooks/**\n**/.git/config\n**/.git/config.worktree\n**/.git/commondir\n**/.git/gitdir\n**/.git/rebase-merge/**\n**/.git/sequencer/**\n" +
				"**/.git/worktrees/*/config.worktree\n**/.git/worktrees/*/commondir\n**/.git/worktrees/*/gitdir\n**/.git/info/attributes\n**/.git/modules/**/hooks/**\n" +
				"**/.git/modules/**/config\n**/.git/modules/**/config.worktree\n**/.git/modules/**/info/attributes\n**/.git/modules/**/commondir\n**/.git/modules/**/gitdir\n**/.husky/**",
			home: ".gitconfig\n.config/git/**",
		},
		// Whatever else is changed there can make git take its configuration from
		// elsewhere too: a .git file or remote that points away, or a repository
		// that is broken, so that git finds another one around it.
		{name: "git", anyway: "**/.git/**", except: "**/.git/info/exclude\n**/.git/description"},
		{
			name: "shell", home: ".bashrc\n.bashrc.d/**\n.bash_profile\n.bash_login\n.bash_logout\n.bash_aliases\n.profile\n.zshrc\n.zshenv\n.zprofile\n.zlogin\n.zlogout\n.config/fish/**\n" +
				".xprofile\n.xsessionrc\n.pam_environment\n.config/environment.d/**",
		},
		{
			name: "autostart", anyway: "**/spool/cron/**\n**/etc/crontab\n**/etc/cron.*/**",
			home: ".config/autostart/**\n.config/systemd/**\n.local/share/systemd/user/**\nLibrary/LaunchAgents/**",
		},
		// Settings start servers, commands and hooks; commands, agents, skills and
		// plugins bring tools and lines of a shell with them.
		{
			name: "agents", anyway: "**/.claude/settings*.json\n**/.claude/hooks/**\n**/.claude/commands/**\n**/.claude/agents/**\n**/.claude/skills/**\n**/.claude/plugins/**\n**/.mcp.json\n" +
				"**/.cursor/mcp.json\n**/.cursor/hooks.json\n**/.codex/**\n**/.gemini/settings.json\n**/.gemini/commands/**\n**/.gemini/extensions/**\n**/.qwen/settings.json\n" +
				"**/.roo/mcp.json\n**/.amazonq/mcp.json\n**/.github/hooks/**\n**/.windsurf/**\n**/.kiro/**\n**/.opencode/**\n**/opencode.json\n**/opencode.jsonc",
			home: ".claude.json\n.copilot/**\n.codeium/windsurf/**\n.config/opencode/**\n.config/Claude/**\nLibrary/Application Support/Claude/**\nAppData/Roaming/Claude/**",
		},
		{
			name: "editors", anyway: "**/.vscode/tasks.json\n**/.vscode/launch.json\n**/.vscode/settings.json\n**/.vscode/mcp.json\n**/.zed/settings.json\n**/.zed/tasks.json\n" +
				"**/.zed/debug.json\n**/.idea/workspace.xml\n**/.envrc",
			home: ".config/Code*/User/**\nLibrary/Application Support/Code*/User/**\nAppData/Roaming/Code*/User/**\n.config/zed/**\nAppData/Roaming/Zed/**",
		},
		{name: ownFiles, anyway: "**/.postern/**\n**/.config/postern/**"},
	}
}

// Entries returns the names of the built-in entries that can be lifted.
func Entries() []string {
	var names []string
	for _, e := range slices.Concat(secrets(), runsByItself()) {
		if e.name != ownFiles && e.name != ownState {
			names = append(names, e.name)
		}
	}
	return slices.Compact(names) // an entry may have a part with exceptions of its own
}

func (p *Policy) compileBuiltin(c Config) error {
	for _, name := range c.Lift {
		if !slices.Contains(Entries(), name) {
			return &fault.Error{
				Code: fault.ConfigInvalid, Op: "allow_sensitive", Resource: name,
				Rule: "no built-in entry of this name can be lifted: " + strings.Join(Entries(), ", "),
			}
		}
	}
	var hidden, lifted, runs []rule
	for _, e := range secrets() {
		p.private = append(p.private, e.name)
		if slices.Contains(c.Lift, e.name) {
			lifted = append(lifted, e.rules(c)...)
		} else {
			hidden = append(hidden, e.rules(c)...)
		}
	}
	for _, e := range runsByItself() {
		if !slices.Contains(c.Lift, e.name) {
			runs = append(runs, e.rules(c)...)
		}
	}
	p.secrets, p.lifted, p.runs = newRuleset(hidden, true), newRuleset(lifted, true), newRuleset(runs, true)
	return nil
}

// secret returns the entry of the built-in secrets that the file belongs to
// and "" for none: of those that are lifted, or of all.
func (p *Policy) secret(file core.Resource, all bool) string {
	if !all && len(p.lifted.rules) == 0 {
		return ""
	}
	q := query{root: file.Root, name: file.Name, path: glob.Prepare(file.Name)}
	r := p.lifted.first(&q)
	if r == nil && all {
		r = p.secrets.first(&q)
	}
	if r == nil {
		return ""
	}
	return r.reason.Builtin
}

// rules returns the entry's rules for these roots.
func (e entry) rules(c Config) []rule {
	var out []rule
	for _, text := range lines(e.anyway) {
		out = append(out, e.rule("", text, text))
	}
	for _, text := range lines(e.home) {
		out = append(out, e.rule("", text, text))
		for _, r := range c.Roots {
			for _, home := range r.Homes {
				out = append(out, e.rule(r.Name, home+"/"+text, text))
			}
		}
	}
	for _, place := range c.Protected {
		if place.Entry == e.name {
			text := "**"
			if place.Path != "" {
				text = glob.Literal(place.Path)
			}
			out = append(out, e.rule(place.Root, text, text))
		}
	}
	return out
}

// rule compiles one built-in pattern; shown is how it reads in a reason. A
// pattern that did not compile would be the zero one and guard nothing, so a
// test compiles all of them and Homes are patterns that config has checked.
func (e entry) rule(root, text, shown string) rule {
	pattern, _ := glob.CompileFolded(text)
	r := rule{root: root, pattern: pattern, reason: core.Reason{
		Decision: core.Deny, Step: core.StepDeny, Rule: "deny " + strconv.Quote(shown), Builtin: e.name,
	}}
	for _, x := range lines(e.except) {
		except, _ := glob.Compile(x)
		r.except = append(r.except, except)
	}
	return r
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
