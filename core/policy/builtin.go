// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"
	"sync"

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

	everywhere []rule         // those for every root
	excepted   []glob.Pattern // one for all
}

const (
	ownFiles = "postern"       // readable
	ownState = "postern-state" // not even that
	// nested are folders with rules inside another client's folder, which would
	// take a file of rules there for one of its agents or skills.
	nested = "**/.*/**/.claude/**\n**/.*/**/.cursor/**\n**/.*/**/.roo/**\n**/.*/**/.continue/**\n**/.*/**/.amazonq/**\n**/.*/**/.clinerules/**"
)

// The built-in lists, compiled once: they are most of what a policy is made of.
var (
	secrets      = sync.OnceValue(func() []entry { return ready(secretEntries()) })
	runsByItself = sync.OnceValue(func() []entry { return ready(runningEntries()) })
)

// secretEntries is the built-in list that is denied for every action.
func secretEntries() []entry {
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

// runningEntries is the built-in list that is denied for everything but read,
// list and watch: a program reads these files without being told to.
func runningEntries() []entry {
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
		// Whole folders, since clients take servers, hooks, permissions, code and
		// lines of a shell from ever more files in them.
		{
			name: "agents", anyway: "**/.mcp.json\n**/.codex/**\n**/.gemini/**\n**/.qwen/**\n**/.windsurf/**\n**/.kiro/**\n**/.opencode/**\n**/.agents/**\n**/.agent/**\n**/.cline/**\n**/.factory/**\n" +
				"**/.augment/**\n**/.trae/**\n**/.kilo/**\n**/.kilocode/**\n**/.junie/**\n**/.amp/**\n**/.crush/**\n**/.pi/**\n**/.openhands/**\n**/.github/hooks/**\n**/.github/copilot/**\n**/.github/extensions/**\n" +
				"**/.github/agents/**\n**/.github/skills/**\n**/.github/plugin/**\n**/.github/mcp.json\nlsp.json\n**/.github/lsp.json\n**/.lsp.json\n**/opencode.json\n**/opencode.jsonc\n**/kilo.json\n**/kilo.jsonc\n**/crush.json\n**/.crush.json\n" +
				"**/crushrc\n**/.crushrc\n**/.aider.conf.yml\n" + nested,
			home: ".claude.json\n.copilot/**\n.codeium/**\n.config/opencode/**\n.config/cursor/**\n.config/crush/**\n.config/amp/**\n.config/goose/**\n.config/kilo/**\n.config/github-copilot/**\nDocuments/Cline/**\n" +
				".config/Claude/**\nLibrary/Application Support/Claude/**\nAppData/Roaming/Claude/**",
		},
		// Those where a model only reads the rules. Names with a dot in front are
		// no rules: a folder of another client could be one of them.
		{
			name: "agents", anyway: "**/.claude/**\n**/.cursor/**\n**/.roo/**\n**/.continue/**\n**/.amazonq/**\n**/.clinerules/**",
			except: "**/.claude\n**/.claude/[!.]*.md\n**/.claude/rules\n**/.claude/rules/[!.]*\n**/.claude/rules/[!.]*/[!.]*\n**/.cursor\n**/.cursor/rules\n**/.cursor/rules/[!.]*\n**/.cursor/rules/[!.]*/[!.]*\n" +
				"**/.roo\n**/.roo/rules\n**/.roo/rules/[!.]*\n**/.continue\n**/.continue/rules\n**/.continue/rules/[!.]*\n**/.amazonq\n**/.amazonq/rules\n**/.amazonq/rules/[!.]*\n" +
				"**/.clinerules\n**/.clinerules/[!.]*.md",
		},
		// Tasks, run configurations, containers and settings that name programs. In
		// a package that is installed nobody opens them, and it is removed whole.
		{
			name: "editors", anyway: "**/.vscode/**\n**/*.code-workspace\n**/.zed/**\n**/.idea/**\n**/.run/**\n**/.fleet/**\n**/.vs/**\n**/.devcontainer/**\n**/.devcontainer.json\n**/.envrc",
			home: ".config/*/User/**\nLibrary/Application Support/*/User/**\nAppData/Roaming/*/User/**\n.vscode-server/**\n.vscode-insiders/**\n.vscode-oss/**\n.cursor-server/**\n.windsurf-server/**\n" +
				".config/zed/**\nAppData/Roaming/Zed/**\n.config/JetBrains/**\nLibrary/Application Support/JetBrains/**\nAppData/Roaming/JetBrains/**\n.vimrc\n.vim/**\n.config/nvim/**\n.emacs\n.emacs.d/**\n.config/emacs/**",
			except: "**/.vscode\n**/.vscode/extensions.json\n**/.vscode/*.code-snippets\n" +
				"**/node_modules/**/.vscode/**\n**/node_modules/**/.idea/**\n**/node_modules/**/.devcontainer/**\n**/node_modules/**/*.code-workspace",
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

// HomePatterns are the patterns for home folders of what runs by itself, by the
// entry that they belong to: where a variable or a link has moved such a file,
// only the caller knows.
func HomePatterns() map[string][]string {
	all := map[string][]string{}
	for _, e := range runsByItself() {
		all[e.name] = append(all[e.name], lines(e.home)...)
	}
	return all
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
	for _, place := range c.Protected {
		if place.Entry == ownState {
			hidden = append(hidden, place.rule())
		} else if !slices.Contains(c.Lift, place.Entry) {
			runs = append(runs, place.rule())
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

// ready compiles what each entry says of every root.
func ready(list []entry) []entry {
	for i := range list {
		e := &list[i]
		for _, x := range lines(e.except) {
			p, _ := glob.Compile(x)
			e.excepted = append(e.excepted, p)
		}
		for _, text := range slices.Concat(lines(e.anyway), lines(e.home)) {
			e.everywhere = append(e.everywhere, builtin(e.name, "", text, text, e.excepted))
		}
	}
	return list
}

// rules returns the entry's rules for these roots.
func (e entry) rules(c Config) []rule {
	out := slices.Clone(e.everywhere)
	for _, r := range c.Roots {
		for _, home := range r.Homes {
			for _, text := range lines(e.home) {
				out = append(out, builtin(e.name, r.Name, home+"/"+text, text, e.excepted))
			}
		}
	}
	return out
}

// rule returns the place's rule, which has no exceptions.
func (p Protected) rule() rule {
	text := "**"
	if p.Path != "" {
		text = glob.Literal(p.Path)
	}
	if p.Below != "" {
		text = strings.TrimPrefix(glob.Literal(p.Path)+"/"+p.Below, "/")
	}
	return builtin(p.Entry, p.Root, text, text, nil)
}

// builtin compiles one pattern of an entry; shown is how it reads in a reason. A
// pattern that did not compile would be the zero one and guard nothing, so a
// test compiles all of them and Homes are patterns that config has checked.
func builtin(entry, root, text, shown string, except []glob.Pattern) rule {
	pattern, _ := glob.CompileFolded(text)
	return rule{root: root, pattern: pattern, except: except, reason: core.Reason{
		Decision: core.Deny, Step: core.StepDeny, Rule: "deny " + strconv.Quote(shown), Builtin: entry,
	}}
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
