// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestVersions: the agents are those that npm-agents pins.
func TestVersions(t *testing.T) {
	data, err := os.ReadFile("../npm-agents/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var pinned struct {
		OptionalDependencies map[string]string
	}
	if err := json.Unmarshal(data, &pinned); err != nil {
		t.Fatal(err)
	}
	for _, a := range []Agent{ClaudeCode, Codex} {
		cmd := exec.CommandContext(t.Context(), a.Program(t), "--version")
		cmd.Env = []string{"HOME=" + t.TempDir()}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, arch := range []string{"x64", "arm64"} {
			_, version, _ := strings.Cut(strings.TrimPrefix(pinned.OptionalDependencies[a.String()+"-linux-"+arch], "npm:@"), "@")
			version = strings.TrimSuffix(version, "-linux-"+arch)
			if version == "" || !strings.Contains(" "+strings.TrimSpace(string(out))+" ", " "+version+" ") {
				t.Errorf("%v says %q, pinned for %s is %q", a, out, arch, version)
			}
		}
	}
}

// shell is a command with a home of its own.
func shell(ctx context.Context, t *testing.T, script string) (cmd *exec.Cmd, home string) {
	t.Helper()
	home = t.TempDir()
	cmd = exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	return cmd, home
}

// TestNothingIsLeft: what hangs is killed with all that it started, and so is
// what stays in the group of one that ended.
func TestNothingIsLeft(t *testing.T) {
	for name, script := range map[string]string{
		"hangs": "sleep 1000 & echo started >up; sleep 1000",
		"ended": "sleep 1000 >/dev/null 2>&1 & echo started >up",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd, home := shell(ctx, t, script)
			go func() {
				for {
					if _, err := os.Stat(filepath.Join(home, "up")); err == nil || ctx.Err() != nil {
						cancel()
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			_, _ = runGroup(cmd)
			if left := orphans(home); left != nil {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// TestOrphans: a process that left the group is found by its home, and ended.
func TestOrphans(t *testing.T) {
	cmd, home := shell(t.Context(), t, "setsid sh -c 'echo out >out; exec sleep 1000' >/dev/null 2>&1 & until test -e out; do sleep 0.01; done")
	if out, err := runGroup(cmd); err != nil {
		t.Fatal(err, out)
	}
	if found := end(processes(home)); len(found) != 1 {
		t.Errorf("found %q", found)
	}
	if left := orphans(home); left != nil {
		t.Errorf("still there: %q", left)
	}
}

// TestModelRefusesTheNetwork: whatever is sent through the proxy is refused and remembered.
func TestModelRefusesTheNetwork(t *testing.T) {
	m := newModel(nil)
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodConnect, "example.org:443", nil),
		httptest.NewRequest(http.MethodGet, "http://example.org/v1/models", nil),
		httptest.NewRequest(http.MethodPost, "/v1/elsewhere", nil),
	} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		if w.Code < 400 {
			t.Errorf("%s %s: %d", r.Method, r.URL, w.Code)
		}
	}
	if len(m.odd) != 3 {
		t.Errorf("remembered %q", m.odd)
	}
}

// TestModelAgain: a request that is sent again gets the same call again, one
// that has its result the next, one without the tool another chance.
func TestModelAgain(t *testing.T) {
	m := newModel([]Call{{Tool: "first"}, {Tool: "second"}, {Server: "s", Tool: "third"}})
	ask := func(path, body string) string {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return w.Body.String()
	}
	for _, step := range []struct{ path, body, want string }{
		{"/v1/messages", `{"messages": []}`, "done"}, // no tools: beside the conversation
		{"/v1/messages", `{"messages": [], "tools": [{}]}`, "first"},
		{"/v1/messages", `{"messages": [], "tools": [{}]}`, "first"},
		{"/v1/responses", `{"input": [{"type": "function_call_output", "call_id": "toolu_scripted_0", "output": "a"}]}`, "second"},
		{"/v1/messages", `{"messages": [{"content": [{"type": "tool_result", "tool_use_id": "toolu_scripted_1", "is_error": true,
			"content": [{"text": "b"}, {"text": "c"}]}]}], "tools": [{}]}`, "not_yet"}, // the third isn't offered
		{"/v1/messages", `{"messages": [], "tools": [{"name": "mcp__s__third"}]}`, "mcp__s__third"},
		{"/v1/responses", `{"input": [{"type": "function_call_output", "call_id": "toolu_scripted_2", "output": ""}]}`, "done"},
		{"/v1/responses", `{"input": []}`, "done"},
	} {
		if got := ask(step.path, step.body); !strings.Contains(got, `"`+step.want+`"`) {
			t.Errorf("%s %s: %s", step.path, step.body, got)
		}
	}
	if m.results[0] != (Result{Text: "a"}) || m.results[1] != (Result{"b\nc", true}) {
		t.Errorf("kept %+v", m.results)
	}
}
