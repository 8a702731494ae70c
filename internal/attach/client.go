// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Server is what a client is to start.
type Server struct {
	// Name is the entry's name, "" for DefaultName. In a file of the user the
	// folder's name is added, so that several projects live beside each other.
	Name string
	// Command is the absolute path of the program.
	Command string
	// Args follow `serve --agent ID`; nil for the project's folder.
	Args []string
}

// DefaultName is the name of an entry.
const DefaultName = "postern"

// World is what the surroundings of one run are; nothing is read beside it.
type World struct {
	Home    string // absolute, "" where there is none
	Project string // absolute and resolved, "" for none
	GOOS    string
	Getenv  func(string) string
	// LookPath finds a program; it may be nil.
	LookPath func(string) (string, error)
}

// Client is one MCP client. The zero value is none.
type Client struct {
	// ID is the value of --agent in the installed line, a stable name.
	ID string
	// Name is the client's own.
	Name string
	// Next is what a person has to do in the client once it is attached.
	Next string
	// Own says what of the client is not guarded by being attached.
	Own string

	form    form
	project []string // files relative to the project, the first is made; nil where it has none
	user    string   // the user's file, as World.path reads it
	// more are other files and folders that the client takes what it runs from,
	// and that a variable can move to where no built-in list knows them.
	more  []string
	signs signs
}

// signs tell that a client is here.
type signs struct {
	programs []string
	home     []string // as the user's file is spelled
	project  []string
}

// form is how an entry looks in a client's file.
type form struct {
	toml    bool
	key     string // the object that holds the entries
	kind    string // the value of "type", "" for none
	array   bool   // command and arguments are one list
	enabled bool   // has "enabled": true
	tools   bool   // has "tools": ["*"]
}

// Clients returns every client that is known, the most used ones first.
func Clients() []Client { return slices.Concat(first(), second(), third()) }

func first() []Client {
	servers := form{key: "mcpServers"}
	return []Client{
		{
			ID: "claude-code", Name: "Claude Code", form: servers, project: []string{".mcp.json"}, user: "{claude.json}/.claude.json",
			more: []string{
				"{claude}", "{claude}/.config.json", "{claude}/settings.json", "{claude}/settings.local.json", "{claude}/hooks", "{claude}/commands", "{claude}/agents",
				"{claude}/skills", "{claude}/plugins",
			},
			Next:  "start claude in the folder again and approve the server when it asks; /mcp shows it",
			Own:   "its own Read, Edit, Write and Bash don't go through postern",
			signs: signs{programs: []string{"claude"}, home: []string{"{claude}", "{claude.json}/.claude.json"}, project: []string{".claude", ".mcp.json"}},
		},
		{
			ID: "claude-desktop", Name: "Claude Desktop", form: servers,
			user:  "{app}/Claude/claude_desktop_config.json",
			more:  []string{"{app}/Claude"},
			Next:  "quit Claude Desktop and start it again",
			Own:   "other servers and extensions in it don't go through postern",
			signs: signs{home: []string{"{app}/Claude"}},
		},
		{
			ID: "cursor", Name: "Cursor", form: servers, project: []string{".cursor/mcp.json"}, user: "~/.cursor/mcp.json",
			more:  []string{"~/.cursor", "{cursor}", "{cursor}/cli-config.json", "{app}/Cursor/User"},
			Next:  "enable the server in Cursor's settings under MCP",
			Own:   "its own file tools and terminal don't go through postern",
			signs: signs{programs: []string{"cursor", "cursor-agent"}, home: []string{"~/.cursor"}, project: []string{".cursor"}},
		},
		{
			ID: "vscode", Name: "VS Code", form: form{key: "servers", kind: "stdio"}, project: []string{".vscode/mcp.json"},
			user:  "{app}/Code/User/mcp.json",
			more:  []string{"{app}/Code/User"},
			Next:  "open .vscode/mcp.json in VS Code, choose Start above the entry and trust the server",
			Own:   "the edit and terminal tools of agent mode don't go through postern",
			signs: signs{programs: []string{"code"}, home: []string{"{app}/Code"}, project: []string{".vscode"}},
		},
	}
}

func second() []Client {
	servers := form{key: "mcpServers"}
	return []Client{
		{
			ID: "codex", Name: "Codex", form: form{toml: true, key: "mcp_servers"}, user: "{codex}/config.toml",
			more:  []string{"{codex}"},
			Next:  "start codex again; /mcp shows the server",
			Own:   "its own shell and apply_patch don't go through postern",
			signs: signs{programs: []string{"codex"}, home: []string{"{codex}"}},
		},
		{
			ID: "gemini-cli", Name: "Gemini CLI", form: servers, project: []string{".gemini/settings.json"}, user: "{gemini}/.gemini/settings.json",
			more: []string{
				"{gemini}/.gemini", "$GEMINI_CLI_SYSTEM_SETTINGS_PATH", "$GEMINI_CLI_SYSTEM_DEFAULTS_PATH", "$GEMINI_CLI_TRUSTED_FOLDERS_PATH",
			},
			Next:  "start gemini in the folder again; /mcp shows the server",
			Own:   "its own file tools and shell don't go through postern",
			signs: signs{programs: []string{"gemini"}, home: []string{"{gemini}/.gemini"}, project: []string{".gemini"}},
		},
		{
			ID: "windsurf", Name: "Windsurf", form: servers, user: "~/.codeium/windsurf/mcp_config.json",
			more:  []string{"~/.codeium/windsurf", "{app}/Windsurf/User"},
			Next:  "refresh the servers in Windsurf's settings under Cascade",
			Own:   "Cascade's own file tools and terminal don't go through postern",
			signs: signs{programs: []string{"windsurf"}, home: []string{"~/.codeium/windsurf"}},
		},
		{
			ID: "opencode", Name: "OpenCode", form: form{key: "mcp", kind: "local", array: true, enabled: true},
			project: []string{"opencode.json", "opencode.jsonc"}, user: "{config}/opencode/opencode.json",
			more:  []string{"{config}/opencode", "~/.opencode", "$OPENCODE_CONFIG", "$OPENCODE_CONFIG_DIR", "$OPENCODE_TUI_CONFIG"},
			Next:  "start opencode in the folder again",
			Own:   "its own file tools and bash don't go through postern",
			signs: signs{programs: []string{"opencode"}, home: []string{"{config}/opencode"}, project: []string{"opencode.json", "opencode.jsonc"}},
		},
	}
}

func third() []Client {
	servers := form{key: "mcpServers"}
	return []Client{
		{
			ID: "zed", Name: "Zed", form: form{key: "context_servers"}, project: []string{".zed/settings.json"}, user: "{config}/zed/settings.json",
			more:  []string{"{config}/zed"},
			Next:  "open the folder in Zed again and trust it; the agent panel shows the server",
			Own:   "the agent's own file tools and terminal don't go through postern",
			signs: signs{programs: []string{"zed", "zeditor"}, home: []string{"{config}/zed"}, project: []string{".zed"}},
		},
		{
			ID: "copilot-cli", Name: "Copilot CLI", form: form{key: "mcpServers", kind: "local", tools: true}, user: "{copilot}/mcp-config.json",
			more:  []string{"{copilot}"},
			Next:  "start copilot again; /mcp shows the server",
			Own:   "its own file tools and shell don't go through postern",
			signs: signs{programs: []string{"copilot"}, home: []string{"{copilot}"}},
		},
		{
			ID: "kiro", Name: "Kiro", form: servers, project: []string{".kiro/settings/mcp.json"}, user: "~/.kiro/settings/mcp.json",
			more:  []string{"~/.kiro"},
			Next:  "open the folder in Kiro again; the MCP panel shows the server",
			Own:   "its own file tools and shell don't go through postern",
			signs: signs{programs: []string{"kiro", "kiro-cli"}, home: []string{"~/.kiro"}, project: []string{".kiro"}},
		},
	}
}

// ByID returns the client of that name.
func ByID(id string) (Client, bool) {
	for _, c := range Clients() {
		if c.ID == id {
			return c, true
		}
	}
	return Client{}, false
}

// IDs returns the names that ByID knows, in the order of Clients.
func IDs() []string {
	var ids []string
	for _, c := range Clients() {
		ids = append(ids, c.ID)
	}
	return ids
}

// userFile is the absolute path of the user's file, "" where that can't be told.
func (c Client) userFile(w World) string { return w.path(c.user) }

// serverName is the entry's name in a file of the project or of the user.
func (s Server) serverName(w World, inProject bool) string {
	name := s.Name
	if name == "" {
		name = DefaultName
	}
	if folder := folderName(w.Project); !inProject && folder != "" {
		name += "-" + folder
	}
	return name
}

// maxFolder bounds what of a folder's name is used: some clients join the names
// of server and tool and allow 64 bytes for both.
const maxFolder = 24

// folderName is the last part of the path in letters that every client takes.
func folderName(project string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(path.Base(filepath.ToSlash(project))) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-") && b.Len() > 0:
			b.WriteByte('-')
		}
		if b.Len() == maxFolder {
			break
		}
	}
	return strings.TrimRight(b.String(), "-")
}

// args is the argument list of the installed line.
func (s Server) args(w World, c Client) []string {
	args := []string{"serve", "--agent", c.ID}
	if s.Args == nil {
		return append(args, w.Project)
	}
	return append(args, s.Args...)
}
