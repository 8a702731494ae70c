// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/attach"
)

// TestNothingForeignIsStarted: neither a program that lies with a project, or in
// any clone, nor one that others can change, nor one that a project's file names,
// however it is spelled.
func TestNothingForeignIsStarted(t *testing.T) {
	type place struct {
		lies    string // beneath the box
		command string // "" for its absolute path
		mode    os.FileMode
		inProject,
		git bool // the folder above the program is a work tree
	}
	for what, p := range map[string]place{
		"its control":             {lies: "mine/postern"},
		"in the project":          {lies: "project/bin/postern"},
		"of other name":           {lies: "x/other"},
		"open to others":          {lies: "loose/postern", mode: 0o777},
		"in a clone":              {lies: "clone/bin/postern", git: true},
		"named by the project":    {lies: "mine/postern", inProject: true},
		"relative":                {lies: "project/bin/postern", command: "bin/postern"},
		"relative, above":         {lies: "bin2/postern", command: "../bin2/postern"},
		"relative, of the user's": {lies: "mine/postern", command: "../mine/postern"},
		"relative, by project":    {lies: "bin2/postern", command: "../bin2/postern", inProject: true},
	} {
		m := newMachine(t)
		t.Chdir(m.project)
		trace, program := filepath.Join(m.box, "started"), filepath.Join(m.box, p.lies)
		if p.mode == 0 {
			p.mode = 0o755
		}
		m.put(program, "#!/bin/sh\n: > "+trace+"\n", p.mode)
		if p.git {
			m.must(os.Mkdir(filepath.Join(m.box, "clone/.git"), 0o755))
		}
		if p.command == "" {
			p.command = program
		}
		write, agent := m.user, "cursor"
		if p.inProject {
			write, agent = m.mcp, "claude-code"
		}
		write(p.command, "serve", "--agent", agent, m.project)
		for _, r := range slices.Concat(m.of("clients"), m.of("client-line")) {
			if what != "its control" && (r.Status == Pass || strings.Contains(r.Hint, "run it")) {
				t.Errorf("%s: %+v", what, r)
			}
		}
		_, err := os.Stat(trace)
		if started := err == nil; started != (what == "its control") {
			t.Errorf("%s: started %v", what, started)
		}
	}
}

// TestForeignGitIsNotAsked: a project's settings can put a program of their own
// before the system's git, or a library before those of git.
func TestForeignGitIsNotAsked(t *testing.T) {
	type place struct {
		lies   string // beneath the box
		link   string // what leads there, "" for nothing
		mode   os.FileMode
		broken bool // the policy
	}
	for what, p := range map[string]place{
		"its control":             {lies: "tools/git"},
		"in the project":          {lies: "project/bin/git"},
		"a link in the project":   {lies: "tools/git", link: "project/bin/git"},
		"a link into the project": {lies: "project/bin/git", link: "tools/git"},
		"open to others":          {lies: "tools/git", mode: 0o777},
		"of unknown folders":      {lies: "tools/git", broken: true},
	} {
		m := newMachine(t)
		trace, at := filepath.Join(m.box, "started"), filepath.Join(m.box, p.lies)
		m.put(at, "#!/bin/sh\necho \"$LD_LIBRARY_PATH\" > "+trace+"\n", max(p.mode, 0o755))
		if p.link != "" {
			at = filepath.Join(m.box, p.link)
			m.must(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(filepath.Join(m.box, p.lies), at))
		}
		if p.broken {
			m.policy("nonsense")
		}
		t.Setenv("LD_LIBRARY_PATH", m.project)
		m.o.World.LookPath = func(string) (string, error) { return at, nil }
		r := m.of("git")[0]
		said, err := os.ReadFile(trace)
		if started := err == nil; started != (what == "its control") || !started && (r.Status != Skipped || r.Text == "there is no git") {
			t.Errorf("%s: started %v, %+v", what, started, r)
		}
		if strings.TrimSpace(string(said)) != "" {
			t.Errorf("it was started with the library path %q", said)
		}
	}
}

// TestRememberedIsStarted: a program that init wrote into a project's file is
// trusted there, as long as nobody has changed the file.
func TestRememberedIsStarted(t *testing.T) {
	m := newMachine(t)
	trace, program := filepath.Join(m.box, "started"), filepath.Join(m.box, "old/postern")
	m.put(program, "#!/bin/sh\n: > "+trace+"\n", 0o755)
	c, _ := attach.ByID("claude-code")
	plan, err := attach.NewPlan(m.o.World, attach.Server{Command: program}, []attach.Client{c}, nil)
	m.must(err)
	defer plan.Close()
	m.must(plan.Apply(t.Context(), m.state))
	m.of("clients")
	if _, err := os.Stat(trace); err != nil {
		t.Error("what init wrote is not started")
	}
	m.must(os.Remove(trace))
	file := filepath.Join(m.project, ".mcp.json")
	text, err := os.ReadFile(file)
	m.must(err, os.WriteFile(file, append(text, '\n'), 0o600))
	m.of("clients")
	if _, err := os.Stat(trace); err == nil {
		t.Error("a file that was changed is trusted")
	}
}

// TestNamesInLines: what a file calls an entry can't end the line's sentence,
// and is bounded.
func TestNamesInLines(t *testing.T) {
	for name, want := range map[string]string{
		"mine": "Claude Code, mine in ", // the control
		"postern in /x/.mcp.json runs this program. warn: ": `Claude Code, "postern in /x/.mcp.json runs this program. warn: " in `,
		strings.Repeat("a", 2<<20):                          "Claude Code, " + strings.Repeat("a", 80) + "... in ",
	} {
		m := newMachine(t)
		m.put(filepath.Join(m.project, ".mcp.json"), fmt.Sprintf(`{"mcpServers":{%q:{"command":%q,"args":["serve","--agent","claude-code",%q]}}}`, name, m.o.Self, m.project), 0o600)
		if r := m.of("clients")[0]; !strings.HasPrefix(r.Text, want) || r.Status != Pass || len(r.Text) > 1000 {
			t.Errorf("%.200s, want %q", r.Text, want)
		}
	}
}

// TestManyEntries: a file with thousands of entries doesn't hide those of others.
func TestManyEntries(t *testing.T) {
	for n, more := range map[int]bool{3: false, 2000: true} {
		m := newMachine(t)
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"p%d":{"command":%q,"args":["serve","."]}`, i, m.o.Self))
		}
		m.put(filepath.Join(m.project, ".mcp.json"), `{"mcpServers":{`+strings.Join(all, ",")+`}}`, 0o600)
		m.user("/absent/postern", "serve", "--agent", "cursor", m.project)
		found := m.of("clients")
		told := slices.ContainsFunc(found, func(r Result) bool { return strings.Contains(r.Text, "more than 20 entries") })
		other := slices.ContainsFunc(found, func(r Result) bool { return strings.Contains(r.Text, "/absent/postern") })
		if told != more || !other || len(found) > mostEntries+2 {
			t.Errorf("%d: %d findings, told %v, the other %v", n, len(found), told, other)
		}
	}
}

// TestInterruptedTakesAway: a check that is told to end is waited for, so that it
// can take its folder away.
func TestInterruptedTakesAway(t *testing.T) {
	m := newMachine(t)
	tmp := filepath.Join(m.box, "tmp")
	m.must(os.Mkdir(tmp, 0o700))
	t.Setenv("TMPDIR", tmp)
	m.put(m.o.Self, "#!/bin/sh\nexec sleep 60\n", 0o755)
	m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project)
	m.o.CheckTime = time.Minute
	l := newLook(m.o)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	made := make(chan bool)
	go func() {
		defer close(made)
		for ctx.Err() == nil {
			if entries, _ := os.ReadDir(tmp); len(entries) > 0 {
				made <- true
				stop()
			}
		}
	}()
	defer stop()
	ended := make(chan []Result, 1)
	go func() { ended <- l.timed(ctx, check{"client-line", checkClientLines}) }()
	if !<-made { // the control
		t.Fatal("no folder was made")
	}
	found := <-ended
	if entries, _ := os.ReadDir(tmp); len(entries) > 0 || found[0].Status != Skipped {
		t.Errorf("%v is left: %+v", entries, found)
	}
}
