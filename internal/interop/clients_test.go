// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/testenv"
)

// npm returns the folder of the peers.
func npm(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("POSTERN_NPM")
	if dir == "" {
		testenv.Missing(t, "POSTERN_NPM (npm install in a copy of internal/interop/npm)")
	}
	if _, err := exec.LookPath("node"); err != nil {
		testenv.Missing(t, "node")
	}
	return dir
}

// node22 is the newer runtime that npm brings, for peers that need it.
func node22(t *testing.T, dir string) string {
	t.Helper()
	for _, arch := range []string{"x64", "arm64"} {
		node := filepath.Join(dir, "node_modules", "node-linux-"+arch, "bin", "node")
		if _, err := os.Stat(node); err == nil {
			return node
		}
	}
	testenv.Missing(t, "node 22 from npm")
	return ""
}

// build returns the path of a fresh postern.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "postern")
	cmd := exec.Command("go", "build", "-o", bin, "../../cmd/postern")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// folder is a root with a bit of everything, and the environment of a fresh
// user.
func folder(t *testing.T) (root string, env []string) {
	t.Helper()
	home := t.TempDir()
	root = filepath.Join(home, "root")
	for name, content := range map[string]string{
		"a.txt": "alpha\nbeta\ngamma\n", "sub/b.md": "# B\n", "pic.png": "\x89PNG\r\n\x1a\n\x00", ".env": "TOKEN=1\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root, append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"),
		"POSTERN_STATE="+filepath.Join(home, "state"))
}

type toolCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

type toolResult struct {
	Content []struct {
		Type, Text string
	}
	IsError bool
	Meta    map[string]any `json:"_meta"`
}

func (r toolResult) text() string {
	var all []string
	for _, c := range r.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// step is a call of one tool and what must be in the answer.
type step struct {
	toolCall
	want  string
	error bool
}

// everyTool calls each tool once with success, and once more where a refusal
// tells something of its own.
func everyTool(root string) []step {
	at := func(name string) string { return filepath.Join(root, name) }
	call := func(name, want string, args map[string]any) step {
		return step{toolCall: toolCall{name, args}, want: want}
	}
	steps := []step{
		call("list_allowed_directories", root, map[string]any{}),
		call("list_directory", "[FILE] a.txt", map[string]any{"path": root}),
		call("list_directory_with_sizes", "Total:", map[string]any{"path": root, "sortBy": "size"}),
		call("directory_tree", `"name": "sub"`, map[string]any{"path": root}),
		call("search_files", at("sub/b.md"), map[string]any{"path": root, "pattern": "**/*.md"}),
		call("search_content", "beta", map[string]any{"path": root, "query": "^be"}),
		call("get_file_info", "size: 17", map[string]any{"path": at("a.txt")}),
		call("read_file", "alpha", map[string]any{"path": at("a.txt")}),
		call("read_text_file", "alpha", map[string]any{"path": at("a.txt"), "head": 1}),
		call("read_media_file", "", map[string]any{"path": at("pic.png")}),
		call("read_multiple_files", "# B", map[string]any{"paths": []string{at("a.txt"), at("sub/b.md")}}),
		call("write_file", "Successfully wrote to", map[string]any{"path": at("new.txt"), "content": "one\n"}),
		call("edit_file", "-one", map[string]any{"path": at("new.txt"), "edits": []map[string]string{{"oldText": "one", "newText": "two"}}}),
		call("append_file", "", map[string]any{"path": at("new.txt"), "content": "three\n"}),
		call("create_directory", "Successfully created directory", map[string]any{"path": at("x/y")}),
		call("copy_file", "", map[string]any{"source": at("new.txt"), "destination": at("x/copy.txt")}),
		call("move_file", "Successfully moved", map[string]any{"source": at("new.txt"), "destination": at("x/y/moved.txt")}),
		call("read_text_file", "two\nthree", map[string]any{"path": at("x/y/moved.txt")}),
	}
	refused := []step{
		call("delete_file", "confirm", map[string]any{"path": at("a.txt")}),
		call("delete_file", "next: a person runs: postern approve ", map[string]any{"path": at("a.txt"), "confirm": true}),
		call("read_text_file", "denied: fs.read", map[string]any{"path": at(".env")}),
		call("read_text_file", "not beneath any root", map[string]any{"path": "/etc/passwd"}),
	}
	for i := range refused {
		refused[i].error = true
	}
	return append(steps, refused...)
}

func check(t *testing.T, s step, r toolResult) {
	t.Helper()
	if r.IsError != s.error || !strings.Contains(r.text(), s.want) {
		t.Errorf("%s %v: isError %v, text %q; want isError %v and %q", s.Name, s.Arguments, r.IsError, r.text(), s.error, s.want)
	}
}

// TestTypeScriptClients: the official clients of both eras call every tool, on
// stdio and over HTTP.
func TestTypeScriptClients(t *testing.T) {
	dir, bin := npm(t), build(t)
	for _, name := range []string{"legacy", "modern", "legacy over HTTP", "modern over HTTP"} {
		t.Run(name, func(t *testing.T) {
			era, _, overHTTP := strings.Cut(name, " ")
			root, env := folder(t)
			steps := everyTool(root)
			var calls []toolCall
			for _, s := range steps {
				calls = append(calls, s.toolCall)
			}
			file := filepath.Join(t.TempDir(), "calls.json")
			data, err := json.Marshal(calls)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
			server := []string{bin, "serve", root}
			if overHTTP {
				url, token := serveHTTP(t, bin, root, env)
				server, env = []string{url}, append(env, "POSTERN_TOKEN="+token)
			}
			cmd := exec.CommandContext(t.Context(), "node", append([]string{"client.mjs", era, file}, server...)...)
			cmd.Env = append(env, "POSTERN_NPM="+dir)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			var got struct {
				Server              struct{ Name string }
				Tools               []string
				Resources, Contents []string
				Updated             string
				Results             []toolResult
			}
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if got.Server.Name != "postern" || len(got.Results) != len(steps) {
				t.Fatalf("server %q, %d results of %d", got.Server.Name, len(got.Results), len(steps))
			}
			if !strings.HasPrefix(got.Updated, "file:///") {
				t.Errorf("heard of a change of %q", got.Updated)
			}
			if len(got.Resources) != 1 || got.Resources[0] != "project" || !strings.Contains(got.Contents[0], "[FILE] a.txt") {
				t.Errorf("resources %q, contents %q", got.Resources, got.Contents)
			}
			for i, s := range steps {
				check(t, s, got.Results[i])
			}
			for _, name := range got.Tools {
				if !slices.ContainsFunc(steps, func(s step) bool { return s.Name == name && !s.error || name == "delete_file" }) {
					t.Errorf("no call of %s", name)
				}
			}
		})
	}
}

// TestInspector: the Inspector's command line of both generations attaches,
// lists and calls every tool, as the README says, and over HTTP the newer one: the
// older has no way to send a token.
func TestInspector(t *testing.T) {
	dir, bin := npm(t), build(t)
	inspectors := map[string][]string{
		"0.15": {"node", filepath.Join(dir, "node_modules/inspector-0.15/cli/build/cli.js"), "--cli"},
		"2.12": {node22(t, dir), filepath.Join(dir, "node_modules/inspector-2/clients/launcher/build/index.js"), "--cli"},
	}
	for _, name := range []string{"0.15", "2.12", "2.12 over HTTP"} {
		t.Run(name, func(t *testing.T) {
			version, _, overHTTP := strings.Cut(name, " ")
			command := inspectors[version]
			root, env := folder(t)
			server, header := []string{bin, "serve", root}, []string(nil)
			if overHTTP {
				url, token := serveHTTP(t, bin, root, env)
				server, header = []string{url}, []string{"--transport", "http", "--header", "Authorization: Bearer " + token}
			}
			run := func(args ...string) ([]byte, error) {
				cmd := exec.CommandContext(t.Context(), command[0], slices.Concat(command[1:], server, args, header)...)
				cmd.Env = env
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					err = fmt.Errorf("%w: %s", err, stderr.String())
				}
				return out, err
			}
			out, err := run("--method", "tools/list")
			if err != nil || !strings.Contains(string(out), `"read_text_file"`) {
				t.Fatalf("tools/list: %v\n%s", err, out)
			}
			for _, s := range everyTool(root) {
				args := []string{"--method", "tools/call", "--tool-name", s.Name}
				for k, v := range s.Arguments {
					args = append(args, "--tool-arg", k+"="+argument(t, v))
				}
				out, err := run(args...)
				var r toolResult
				if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
					t.Errorf("%s: %v, %v\n%s", s.Name, err, jsonErr, out)
					continue
				}
				check(t, s, r)
			}
		})
	}
}

// argument spells a value as the Inspector's --tool-arg reads it.
func argument(t *testing.T, v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
