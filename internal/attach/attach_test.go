// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
)

const program = "/opt/postern/bin/postern"

// place is a home folder with a project and a state directory.
type place struct {
	t     *testing.T
	w     World
	state string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t, World{Home: filepath.Join(dir, "home"), Project: filepath.Join(dir, "My Project"), GOOS: "linux", Getenv: func(string) string { return "" }}, filepath.Join(dir, "state")}
	for _, d := range []string{p.w.Home, p.w.Project} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p *place) put(path, text string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) get(path string) string {
	p.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func (p *place) home(name string) string    { return filepath.Join(p.w.Home, name) }
func (p *place) project(name string) string { return filepath.Join(p.w.Project, name) }

func client(t *testing.T, id string) Client {
	t.Helper()
	c, ok := ByID(id)
	if !ok {
		t.Fatal(id)
	}
	return c
}

func (p *place) attach(ids ...string) *Plan {
	p.t.Helper()
	var clients []Client
	for _, id := range ids {
		clients = append(clients, client(p.t, id))
	}
	plan, err := NewPlan(p.w, Server{Command: program}, clients, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(plan.Close)
	return plan
}

func (p *place) apply(plan *Plan) {
	p.t.Helper()
	if err := plan.Apply(p.t.Context(), p.state); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) undo(ids ...string) *Plan {
	p.t.Helper()
	var named []Client
	for _, id := range ids {
		named = append(named, client(p.t, id))
	}
	plan, err := PlanUndo(p.w, Server{Command: program}, p.state, named)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(plan.Close)
	return plan
}

// Every client: from nothing to attached, seen, twice the same, and back.
func TestEveryClient(t *testing.T) {
	if ids := IDs(); len(ids) != 11 || ids[0] != "claude-code" || ids[5] != "gemini-cli" {
		t.Errorf("%v", ids)
	}
	for _, c := range Clients() {
		p := newPlace(t)
		p.apply(p.attach(c.ID))
		got, errs := Attached(p.w)
		where := c.Paste(p.w, Server{Command: program}).Where
		name := "postern"
		if c.project == nil {
			name = "postern-my-project"
		}
		want := []Attachment{{Client: c, File: where, Entry: name, Command: program, Args: []string{"serve", "--agent", c.ID, p.w.Project}, InProject: c.project != nil, Everywhere: c.project == nil}}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Client) bool { return a.ID == b.ID })); diff != "" || errs != nil {
			t.Errorf("%s: %v %s", c.ID, errs, diff)
		}
		// What is pasted into a file that is absent is what is written.
		if text := c.Paste(p.w, Server{Command: program}).Text; text != p.get(where) {
			t.Errorf("%s: %s", c.ID, cmp.Diff(text, p.get(where)))
		}
		if again := p.attach(c.ID); !again.Idle() || len(again.Attached) != 1 {
			t.Errorf("%s: a second time %+v", c.ID, again.Changes)
		}
		p.apply(p.undo())
		for _, dir := range []string{p.w.Home, p.w.Project} {
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("%s: left %v %v", c.ID, left, err)
			}
		}
		if !p.undo().Idle() {
			t.Errorf("%s: something is left to undo", c.ID)
		}
		if c.Next == "" || c.Own == "" {
			t.Errorf("%s: says nothing", c.ID)
		}
	}
}

func TestShell(t *testing.T) {
	p := newPlace(t)
	p.w.Project = "/it's here"
	for id, want := range map[string]string{
		"claude-code": `claude mcp add postern -- /opt/postern/bin/postern serve --agent claude-code '/it'\''s here'`,
		"codex":       `codex mcp add postern-it-s-here -- /opt/postern/bin/postern serve --agent codex '/it'\''s here'`,
		"vscode":      `code --add-mcp '{"name": "postern", "command": "/opt/postern/bin/postern", "args": ["serve", "--agent", "vscode", "/it'\''s here"]}'`,
		"cursor":      "",
	} {
		if got := client(t, id).Paste(p.w, Server{Command: program}).Shell; got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
	p.w.Project = "/a\x1b[31m"
	if got := client(t, "codex").Paste(p.w, Server{Command: program}); got.Shell != "" || strings.Contains(got.Text, "\x1b") {
		t.Errorf("%+v", got)
	}
	if got := client(t, "codex").Paste(p.w, Server{Command: program, Args: []string{"."}}).Text; !strings.Contains(got, `"codex", "."]`) {
		t.Error(got)
	}
}

func TestPlaces(t *testing.T) {
	env := map[string]string{}
	w := World{Home: "/h", GOOS: "linux", Getenv: func(k string) string { return env[k] }}
	check := func(id, want string) {
		t.Helper()
		if got := client(t, id).userFile(w); got != want {
			t.Errorf("%s on %s: %s, want %s", id, w.GOOS, got, want)
		}
	}
	check("claude-desktop", "/h/.config/Claude/claude_desktop_config.json")
	check("codex", "/h/.codex/config.toml")
	env = map[string]string{"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "APPDATA": "/a"}
	check("claude-desktop", "/x/Claude/claude_desktop_config.json")
	check("codex", "/c/config.toml")
	check("zed", "/x/zed/settings.json")
	w.GOOS = "darwin"
	check("claude-desktop", "/h/Library/Application Support/Claude/claude_desktop_config.json")
	check("vscode", "/h/Library/Application Support/Code/User/mcp.json")
	w.GOOS = "windows"
	check("claude-desktop", "/a/Claude/claude_desktop_config.json")
	env = map[string]string{"CODEX_HOME": "relative"}
	check("codex", "/h/.codex/config.toml")
	w.Home = ""
	check("codex", "")
}

func TestFind(t *testing.T) {
	p := newPlace(t)
	if found := Find(p.w); found != nil {
		t.Errorf("%+v", found)
	}
	p.put(p.home(".codex/config.toml"), "")
	p.put(p.home(".config/Claude/x"), "")
	p.put(p.project("opencode.jsonc"), "")
	p.w.LookPath = func(name string) (string, error) {
		if name == "cursor-agent" {
			return "/bin/cursor-agent", nil
		}
		return "", os.ErrNotExist
	}
	var got []string
	for _, f := range Find(p.w) {
		got = append(got, f.Client.ID+" "+strings.TrimPrefix(f.Why, p.w.Home))
	}
	if diff := cmp.Diff([]string{"claude-desktop /.config/Claude", "cursor /bin/cursor-agent", "codex /.codex", "opencode opencode.jsonc"}, got); diff != "" {
		t.Error(diff)
	}
	// The file that is there is the one that is used.
	if f, err := client(t, "opencode").place(p.w); err != nil || filepath.Base(f.path) != "opencode.jsonc" {
		t.Errorf("%v %v", f, err)
	}
}

func TestAttachedTellsForeign(t *testing.T) {
	p := newPlace(t)
	p.put(p.project(".mcp.json"), `{"mcpServers": {"postern": {"command": "/tmp/evil"}, "files": {"command": "C:\\bin\\postern.exe", "args": ["serve", "."]}, "x": {"command": "postern", "args": ["log"]}}}`)
	p.put(p.home(".claude.json"), `{"projects": {"`+p.w.Project+`": {"mcpServers": {"here": {"command": "postern", "args": ["serve", "."]}}}, "/other": {"mcpServers": {"there": {"command": "postern", "args": ["serve", "."]}}}}}`)
	p.put(p.home(".codex/config.toml"), "[mcp_servers.a]\nargs = ['serve', '/x']\ncommand = 'postern'\nenabled_tools = ['b']\ncwd = '/'\n")
	p.put(p.home(".copilot/mcp-config.json"), "{")
	if err := os.Symlink(p.home(".claude.json"), p.project("opencode.json")); err != nil {
		t.Fatal(err)
	}
	got, errs := Attached(p.w)
	var lines []string
	for _, a := range got {
		line := a.Client.ID + " " + a.Entry + " " + a.Command
		if a.Foreign {
			line += " foreign"
		}
		lines = append(lines, line)
	}
	if diff := cmp.Diff([]string{"claude-code postern /tmp/evil foreign", `claude-code files C:\bin\postern.exe`, "claude-code here postern", "codex a postern"}, lines); diff != "" {
		t.Error(diff)
	}
	if len(errs) != 2 || fault.CodeOf(errs[0]) != fault.PathSymlink || fault.CodeOf(errs[1]) != fault.ConfigInvalid {
		t.Errorf("%v", errs)
	}
}

// Entries of two folders with one name, of a folder that is gone, of another.
func TestNameInTheUsersFile(t *testing.T) {
	s := Server{Command: program}
	w := World{Project: "/a/app", Getenv: func(string) string { return "" }}
	line := func(name, dir string) entry {
		return entry{name: name, command: program, args: []string{"serve", "--agent", "codex", dir}}
	}
	second := "postern-app-" + shortHash(w.Project)
	for name, tt := range map[string]struct {
		old  []entry
		want string
	}{
		"nothing":              {nil, "postern-app"},
		"ours":                 {[]entry{line("postern-app", "/a/app")}, "postern-app"},
		"another's":            {[]entry{line("postern-app", t.TempDir())}, second},
		"one not mounted":      {[]entry{line("postern-app", "/gone/app")}, second},
		"ours is the second":   {[]entry{line("postern-app", t.TempDir()), line(second, "/a/app")}, second},
		"the first has gone":   {[]entry{line(second, "/a/app")}, second},
		"something else there": {[]entry{{name: "postern-app", command: "/tmp/evil"}}, "postern-app"}, // and refused there
	} {
		if got := s.pick(w, false, tt.old); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for project, want := range map[string]string{"/": "postern", "/a/Ünïcode": "postern-n-code", "/a/" + strings.Repeat("x", 99): "postern-" + strings.Repeat("x", maxFolder), "/a/..": "postern", "/a/-b_c.d-": "postern-b-c-d"} {
		if got := s.serverName(World{Project: project}, false); got != want {
			t.Errorf("%s: %s", project, got)
		}
	}
}

// A block in TOML is taken for ours only as it was written.
func TestBlockChangedByHand(t *testing.T) {
	f := client(t, "codex").form
	e := testEntry(f)
	text, _, prob := f.add([]byte("a = 1\n"), e)
	if prob != nil {
		t.Fatal(prob)
	}
	for name, change := range map[string]string{
		"a pair more":         "command = |env = { A = \"b\" }\ncommand = ",
		"another program":     program + "|/tmp/evil",
		"a flag":              "\"--agent\"|\"--policy\", \"/evil\", \"--agent\"",
		"no end":              " # end of postern|",
		"a table of it":       "end of postern|end of postern\n[mcp_servers.postern.env]",
		"a pair behind it":    "end of postern|end of postern\nenabled = false",
		"a comment in it":     "command = |# c\ncommand = ",
		"header of an array":  "[mcp_servers.postern]|[[mcp_servers.postern]]",
		"the same once again": "a = 1|[mcp_servers.postern]",
	} {
		old, with, _ := strings.Cut(change, "|")
		hand := strings.Replace(string(text), old, with, 1)
		if hand == string(text) {
			t.Fatal(name)
		}
		if got, _, prob := f.add([]byte(hand), e); prob == nil && string(got) != hand {
			t.Errorf("%s is overwritten: %s", name, got)
		} else if prob == nil && name != "no end" { // then it is a plain table that runs the same
			t.Errorf("%s is trusted", name)
		}
		if name == "no end" {
			continue
		}
		if got, prob := f.remove([]byte(hand), e.name, nil); prob == nil && string(got) != hand {
			t.Errorf("%s is removed: %s", name, got)
		}
	}
	// Codex writes its servers anew and drops the comments.
	bare := strings.NewReplacer("# added by postern init: postern\n", "", " # end of postern", "").Replace(string(text))
	if got, _, prob := f.add([]byte(bare), e); prob != nil || string(got) != bare {
		t.Errorf("%v %s", prob, got)
	}
	if got, prob := f.remove([]byte(bare), e.name, nil); prob != nil || string(got) != "a = 1\n" {
		t.Errorf("%v %q", prob, got)
	}
}

func TestInstalled(t *testing.T) {
	for path, ok := range map[string]bool{
		"/usr/bin/postern": true, "/home/u/go/bin/postern": true, "/home/u/building/postern": true,
		"/tmp/go-build123/b001/exe/postern": false, "/tmp/go-build123/b417/cli.test": false, "/home/u/.cache/go-build/aa/" + strings.Repeat("a", 64) + "-d/postern": false,
		"/var/cache/other/00/" + strings.Repeat("0", 64) + "-d/postern": false,
		"/home/u/go-builder/postern":                                    true, "/home/u/go-build/postern": true, "/home/u/go-build12/postern": true, "/go-build1x/b001/exe/postern": true,
		"/home/u/go-build123/b001/exe/src/postern": true, "/home/u/ab/" + strings.Repeat("0", 64) + "-d/postern": true,
	} {
		if err := Installed(path); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestNamesThatNoFileHolds(t *testing.T) {
	p := newPlace(t)
	p.w.Project += "\xff"
	if err := os.Mkdir(p.w.Project, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "cursor")}, nil); fault.CodeOf(err) != fault.RequestInvalid {
		t.Errorf("%v", err)
	}
}

// What is remembered is data too: a journal that names a file of the project as
// one outside, or no journal at all, leads nowhere.
func TestJournalIsRead(t *testing.T) {
	p := newPlace(t)
	p.apply(p.attach("cursor"))
	path := journalPath(p.state, p.w.Project)
	if strings.Contains(p.get(path), program) {
		t.Error("the journal holds contents")
	}
	p.put(path, strings.Replace(p.get(path), `"in_project": true`, `"in_project": false`, 1))
	if plan := p.undo(); len(plan.Changes) != 1 || !plan.Changes[0].InProject {
		t.Errorf("%+v", plan.Changes)
	}
	p.put(path, "{")
	if _, err := PlanUndo(p.w, Server{}, p.state, nil); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("%v", err)
	}
}
