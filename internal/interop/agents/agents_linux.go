// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/testenv"
)

// Agent is a coding agent that can be run.
type Agent int

// The agents, by the names that postern has for them.
const (
	ClaudeCode Agent = iota + 1
	Codex
)

// String is the name that postern's records have.
func (a Agent) String() string {
	return map[Agent]string{ClaudeCode: "claude-code", Codex: "codex"}[a]
}

// Program is the path of the agent's program; without it the test is over.
func (a Agent) Program(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("POSTERN_AGENTS")
	if dir == "" {
		testenv.Missing(t, "POSTERN_AGENTS (npm install in a copy of internal/interop/npm-agents)")
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	pattern := map[Agent]string{ClaudeCode: "claude", Codex: "vendor/*/bin/codex"}[a]
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", a.String()+"-linux-"+arch, pattern))
	if err != nil || len(found) != 1 {
		testenv.Missing(t, a.String()+" in POSTERN_AGENTS")
	}
	return found[0]
}

// Session is one run of an agent, from one prompt to the end of its turn.
type Session struct {
	Agent     Agent
	Workspace string
	Home      string // HOME, and what the agent keeps there
	Calls     []Call

	// Cautious leaves out the switch by which the agent does whatever its model
	// wants. Nobody is there to be asked, so what it would ask about is refused.
	Cautious bool
	// Model is what Codex takes the model for, which decides about the tools that
	// it offers; "" for one that it has never heard of.
	Model string
	// Blind lets the model make calls of tools that it isn't offered; else it waits
	// for them a while.
	Blind bool
	// Before is what others do before the model makes call i of the list; they see
	// the results of those before it. It is called once for each call.
	Before func(i int, results []Result)
	Args   []string // more arguments
}

// most is how long an agent may take. It needs two seconds, on a busy machine twenty.
const most = 4 * time.Minute

// Run lets the agent make the calls and gives what its model was shown for
// each. The agent has to make them all and end well by itself, nothing of it
// may go on running, and it may not want to reach anything but its model.
func Run(t testing.TB, a Agent, workspace, home string, calls []Call) []Result {
	t.Helper()
	return Session{Agent: a, Workspace: workspace, Home: home, Calls: calls}.Run(t)
}

// Run is as the function Run.
func (s Session) Run(t testing.TB) []Result {
	t.Helper()
	program := s.Agent.Program(t)
	m := newModel(s.Calls)
	m.blind, m.before = s.Blind, s.Before
	server := httptest.NewServer(m)
	defer server.Close()

	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, s.arguments(server.URL)...)
	cmd.Dir = s.Workspace
	cmd.Env = s.environment(server.URL)
	output, err := runGroup(cmd)
	if err != nil {
		t.Errorf("%v: %v\n%s", s.Agent, err, output)
	}
	for _, line := range orphans(s.Home) {
		t.Errorf("%v: still running: %s", s.Agent, line)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, odd := range m.odd {
		t.Errorf("%v asked for %s", s.Agent, odd)
	}
	if i := slices.Index(m.have, false); i >= 0 {
		t.Fatalf("%v: no result of call %d, %s\n%s", s.Agent, i, s.Calls[i].qualified(), output)
	}
	return m.results
}

// environment makes the scripted model the agent's own. Of the tester's
// environment it has nothing but PATH.
func (s Session) environment(url string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "TMPDIR=" + s.Home, "LANG=C.UTF-8", "TERM=dumb", "NO_COLOR=1",
		"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "http_proxy=" + url, "https_proxy=" + url,
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		// Claude Code
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=none",
		"IS_SANDBOX=1",             // else it doesn't skip permissions as root
		"ENABLE_TOOL_SEARCH=false", // else the model has to look for tools first
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1",
	}
}

// arguments are those of a turn without a person.
func (s Session) arguments(url string) []string {
	if s.Agent == ClaudeCode {
		args := []string{"-p", "go"}
		if !s.Cautious {
			args = append(args, "--dangerously-skip-permissions")
		}
		return append(args, s.Args...)
	}
	name := s.Model
	if name == "" {
		name = "scripted"
	}
	args := []string{"exec", "--skip-git-repo-check"}
	if !s.Cautious {
		args = append(args, "--dangerously-bypass-approvals-and-sandbox")
	}
	for _, setting := range []string{
		`model="` + name + `"`, `model_provider="scripted"`, `model_providers.scripted.name="scripted"`,
		`model_providers.scripted.base_url="` + url + `/v1"`, `model_providers.scripted.wire_api="responses"`,
		`analytics.enabled=false`, `feedback.enabled=false`, `check_for_update_on_startup=false`,
		`features.plugins=false`, `features.apps=false`, // else it fetches a list of them
	} {
		args = append(args, "-c", setting)
	}
	return append(append(args, s.Args...), "go")
}
