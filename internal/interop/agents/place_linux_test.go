// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// built builds postern, once, and gives its path.
var built = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(binDir, "postern")
	cmd := exec.Command("go", "build", "-o", bin, "../../../cmd/postern")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

// binDir is the folder of what is built.
var binDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "postern-agents")
	if err != nil {
		panic(err)
	}
	binDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// place is a person's home with a project in it, and an agent that works there.
type place struct {
	t     *testing.T
	agent Agent
	bin   string // postern
	home  string
	work  string
}

// server is the name that init gives the entry: in a file of the user with the
// project's.
func (p place) server() string {
	return map[Agent]string{ClaudeCode: "postern", Codex: "postern-app"}[p.agent]
}

func newPlace(t *testing.T, a Agent) place {
	t.Helper()
	a.Program(t) // before anything is built
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	p := place{t: t, agent: a, bin: bin, home: home, work: filepath.Join(home, "code", "app")}
	p.put("code/app/notes.md", "# Notes\nbuy milk\n")
	p.put("code/app/src/main.txt", "one\ntwo\n")
	p.put("code/app/.env", "TOKEN=5e7c\n")
	p.put("code/app/.git/hooks/README", "none yet\n")
	p.put("diary.txt", "nobody's business\n")
	return p
}

// put writes a file of the home.
func (p place) put(name, content string) {
	p.t.Helper()
	path := filepath.Join(p.home, filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// get reads a file of the home, "" when it is absent.
func (p place) get(name string) string {
	data, err := os.ReadFile(filepath.Join(p.home, filepath.FromSlash(name)))
	if err != nil && !os.IsNotExist(err) {
		p.t.Error(err)
	}
	return string(data)
}

// run runs postern as the owner of the home, and wants it to end well.
func (p place) run(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.bin, args...)
	cmd.Dir = p.work
	cmd.Env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH")}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Errorf("postern %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// attach attaches the agent by hand, in the agent's file of the user: head
// comes before the entry of Codex, tail belongs to it.
func (p place) attach(head, tail string) {
	p.t.Helper()
	if p.agent == Codex {
		p.put(".codex/config.toml", head+p.table()+tail)
		return
	}
	p.put(".claude.json", p.object())
}

// table is an entry for Codex.
func (p place) table() string {
	return fmt.Sprintf("[mcp_servers.%s]\ncommand = %q\nargs = [\"serve\", \"--agent\", \"codex\", %q]\n", p.server(), p.bin, p.work)
}

// object is a file of Claude Code with an entry.
func (p place) object() string {
	return fmt.Sprintf(`{"mcpServers": {%q: {"command": %q, "args": ["serve", "--agent", "claude-code", %q]}}}`, p.server(), p.bin, p.work)
}

// call is a call of one of postern's tools.
func (p place) call(tool string, input object) Call {
	return Call{Server: p.server(), Tool: tool, Input: input}
}

// session is a session in the project.
func (p place) session(calls ...Call) Session {
	return Session{Agent: p.agent, Workspace: p.work, Home: p.home, Calls: calls}
}

// shown is the text of a result without what is another each time, and what
// Codex puts before it.
func (p place) shown(r Result) string {
	text := r.Text
	for _, change := range []struct{ pattern, to string }{
		{`\AWall time: [0-9.]+ seconds\nOutput:\n`, ""},
		{`untrusted-[0-9a-f]{8}\b`, "untrusted-NONCE"},
		{` etag="[^"]*"`, ` etag="ETAG"`},
		{`undo_id: [0-9a-f]{12}-[0-9a-z]+`, "undo_id: UNDO"},
		{regexp.QuoteMeta(p.home), "/home/me"},
	} {
		text = regexp.MustCompile(change.pattern).ReplaceAllString(text, change.to)
	}
	return strings.TrimSuffix(text, "\n")
}

// transcript is what a reader of the conversation would see.
func (p place) transcript(calls []Call, results []Result) string {
	p.t.Helper()
	var b strings.Builder
	for i, c := range calls {
		input, err := json.Marshal(c.Input)
		if err != nil {
			p.t.Fatal(err)
		}
		kind := "result"
		if results[i].IsError {
			kind = "error"
		}
		fmt.Fprintf(&b, "> %s %s\n%s:\n%s\n\n", c.Tool, strings.ReplaceAll(string(input), p.home, "/home/me"), kind, p.shown(results[i]))
	}
	return b.String()
}

// files are all files beneath the home by name, but for those that the agent
// and postern keep of their own.
func (p place) files() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(p.home, path)
		if err == nil && !own(name) {
			all[name] = p.get(name)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// own: the file comes with the use of an agent or of postern, and init has
// nothing to do with it.
func own(name string) bool {
	switch name {
	case ".claude/settings.json", ".codex/config.toml":
		return false
	case ".claude.json":
		return true
	}
	for _, folder := range []string{".local/state/postern/", ".cache/", ".claude/", ".codex/"} {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}
