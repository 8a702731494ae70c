// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/grant"
)

// machine is one that a test makes: everything beneath box.
type machine struct {
	*testing.T
	box, home, project, state string
	o                         Options
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	box, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{
		T: t, box: box, home: filepath.Join(box, "home"), project: filepath.Join(box, "project"), state: filepath.Join(box, "state"),
	}
	self := filepath.Join(box, "bin", "postern")
	m.put(self, "#!/bin/sh\n", 0o755)
	m.must(os.MkdirAll(m.project, 0o755), os.MkdirAll(m.home, 0o755))
	env := func(name string) string {
		if name == "HOME" {
			return m.home
		}
		return ""
	}
	m.o = Options{
		Self: self, Version: "v1", Now: time.Now,
		World:  attach.World{Home: m.home, Project: m.project, GOOS: "linux", Getenv: env},
		Policy: config.Options{Dirs: []string{m.project}, WorkDir: m.project, StateDir: m.state, Env: env, SystemFile: filepath.Join(box, "none")},
	}
	return m
}

func (m *machine) must(errs ...error) {
	m.Helper()
	if err := errors.Join(errs...); err != nil {
		m.Fatal(err)
	}
}

func (m *machine) put(path, text string, mode os.FileMode) {
	m.Helper()
	m.must(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode))
}

func (m *machine) open() string {
	m.Helper()
	d, err := state.Open(m.state)
	m.must(err)
	return d.Path()
}

// shared lets the group of a folder write it. Members are who else is in that
// group, "-" for one that nobody knows.
func (m *machine) shared(dir, members string) {
	m.Helper()
	m.must(os.Chmod(dir, 0o775))
	info, err := os.Stat(dir)
	m.must(err)
	gid := info.Sys().(*syscall.Stat_t).Gid
	m.o.Policy.Accounts = filepath.Join(m.box, "accounts")
	m.put(filepath.Join(m.o.Policy.Accounts, "passwd"), fmt.Sprintf("me:x:%d:%d::/:\n", os.Geteuid(), gid), 0o644)
	if members == "-" {
		gid++
	}
	m.put(filepath.Join(m.o.Policy.Accounts, "group"), fmt.Sprintf("me:x:%d:%s\n", gid, strings.TrimPrefix(members, "-")), 0o644)
}

// of are the findings of one check.
func (m *machine) of(name string) []Result {
	m.Helper()
	l := newLook(m.o)
	for _, c := range checks() {
		if c.name == name {
			return l.timed(m.Context(), c)
		}
	}
	m.Fatalf("no check %s", name)
	return nil
}

// record makes a log with some records, and returns its segment.
func (m *machine) record(n int) string {
	m.Helper()
	l, err := audit.Open(m.open(), audit.Options{})
	m.must(err)
	for range n {
		m.must(l.Record(core.Event{
			Time: time.Now(), Phase: core.PhaseDecision, Action: core.FSRead, Resource: core.File("project", "a"), Corr: "c-1",
			Verdict: core.Verdict{Decision: core.Deny, Reason: core.Reason{Why: "a reason"}},
		}, false))
	}
	m.must(l.Close())
	return filepath.Join(m.state, "audit", "000001.jsonl")
}

// tamper changes one word in the middle of a signed segment.
func (m *machine) tamper(segment string) {
	m.Helper()
	text, err := os.ReadFile(segment)
	m.must(err)
	if !bytes.Contains(text, []byte(`"deny"`)) {
		m.Fatalf("no decision in %s", text)
	}
	m.must(os.WriteFile(segment, bytes.Replace(text, []byte(`"deny"`), []byte(`"dent"`), 1), 0o600))
}

func (m *machine) policy(text string) {
	m.put(filepath.Join(m.home, ".config/postern/policy.yaml"), text, 0o600)
}

func (m *machine) mcp(command string, args ...string) {
	m.put(filepath.Join(m.project, ".mcp.json"), fmt.Sprintf(`{"mcpServers":{"postern":{"command":%q,"args":["%s"]}}}`, command, strings.Join(args, `","`)), 0o600)
}

// user makes an entry in a file of the user's.
func (m *machine) user(command string, args ...string) {
	m.put(filepath.Join(m.home, ".cursor/mcp.json"), fmt.Sprintf(`{"mcpServers":{"postern":{"command":%q,"args":["%s"]}}}`, command, strings.Join(args, `","`)), 0o600)
}

// odd makes an entry of this program in the project, with more members.
func (m *machine) odd(members string) {
	m.put(filepath.Join(m.project, ".mcp.json"), fmt.Sprintf(`{"mcpServers":{"postern":{"command":%q,"args":["serve","--agent","claude-code",%q],%s}}}`, m.o.Self, m.project, members), 0o600)
}

// link makes a link to this program in the project, and an entry that names it.
func (m *machine) link(name string) {
	at := filepath.Join(m.project, name)
	m.must(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(m.o.Self, at))
	m.mcp(at, "serve", "--agent", "claude-code", m.project)
}

// TestFindings: each check finds what is wrong, and on the same machine without
// it finds nothing (the first row of each).
func TestFindings(t *testing.T) {
	tests := []struct {
		check  string
		make   func(*machine)
		status Status
		text   string
	}{
		{"program", func(*machine) {}, Pass, "version v1"},
		{"program", func(m *machine) { m.must(os.Chmod(m.o.Self, 0o777)) }, Fail, "others can write it"},
		{"program", func(m *machine) { m.must(os.Chmod(filepath.Dir(m.o.Self), 0o777)) }, Fail, "somebody else can replace it"},
		{"program", func(m *machine) { m.shared(filepath.Dir(m.o.Self), "") }, Pass, "version v1"},
		{"program", func(m *machine) { m.shared(filepath.Dir(m.o.Self), "mate") }, Fail, "somebody else can replace it"},
		{"program", func(m *machine) { m.shared(filepath.Dir(m.o.Self), "-") }, Warn, "who is in it can't be told"},
		{"program", func(m *machine) {
			m.o.Self = filepath.Join(m.box, "go-build123", "b001", "exe", "postern")
			m.put(m.o.Self, "", 0o755)
		}, Warn, "temporary program of go run"},
		{"program", func(m *machine) {
			other := filepath.Join(m.box, "other", "postern")
			m.put(other, "", 0o755)
			m.o.World.LookPath = func(string) (string, error) { return other, nil }
		}, Warn, "in PATH there is another one"},

		{"policy", func(*machine) {}, Pass, "the shipped default"},
		{"policy", func(m *machine) {
			m.policy("version: 1\ndefault: deny\nexamples:\n  - { fs.read: project://x, decision: deny }\n")
		}, Pass, "its examples hold"},
		{"policy", func(m *machine) {
			m.policy("version: 1\ndefault: deny\nexamples:\n  - { fs.read: project://x, decision: allow }\n")
		}, Fail, "policy.yaml:4:"},
		{"policy", func(m *machine) { m.policy("version: 1\nroles: {}\n") }, Fail, "unknown key"},
		{"policy", func(m *machine) {
			m.policy("version: 1\n")
			m.must(os.Chmod(filepath.Join(m.home, ".config/postern/policy.yaml"), 0o666))
		}, Fail, "others can write the file"},

		{"policy", func(m *machine) {
			m.put(filepath.Join(m.project, ".postern/policy.yaml"), "version: 1\n", 0o600)
		}, Pass, "nobody else can change it"},
		{"policy", func(m *machine) {
			m.put(filepath.Join(m.project, ".postern/policy.yaml"), "version: 1\n", 0o666)
		}, Warn, "its examples hold, but others can write it"},
		{"policy", func(m *machine) {
			m.put(filepath.Join(m.project, ".postern/policy.yaml"), "version: 1\n", 0o600)
			m.must(os.Chmod(filepath.Join(m.project, ".postern"), 0o777))
		}, Warn, "somebody else can replace it"},

		{"policy", func(m *machine) {
			m.policy("version: 1\n")
			m.shared(filepath.Join(m.home, ".config/postern"), "")
		}, Pass, "nobody else can change it"},
		{"policy", func(m *machine) {
			m.policy("version: 1\n")
			m.shared(filepath.Join(m.home, ".config/postern"), "mate")
		}, Fail, "others can replace the file"},
		{"policy", func(m *machine) {
			m.policy("version: 1\n")
			m.shared(filepath.Join(m.home, ".config"), "mate") // not its own folder, but one above
		}, Warn, "its examples hold, but somebody else can replace it"},
		{"policy", func(m *machine) {
			m.policy("version: 1\n")
			m.shared(filepath.Join(m.home, ".config/postern"), "-")
		}, Warn, "who is in it can't be told"},

		{"project-policy", func(*machine) {}, Skipped, "no project has one"},
		{"project-policy", func(m *machine) {
			m.put(filepath.Join(m.project, ".postern/policy.yaml"), "version: 1\nrules: { fs.write: deny }\n", 0o600)
		}, Pass, "tries nothing else"},
		{"project-policy", func(m *machine) {
			m.put(filepath.Join(m.project, ".postern/policy.yaml"), "version: 1\nrules: { fs.delete: allow }\n", 0o600)
		}, Warn, "allows without effect: fs.delete"},

		{"roots", func(*machine) {}, Pass, "project://"},
		{"roots", func(m *machine) { m.o.Policy.Dirs = []string{m.home} }, Warn, "the home folder"},
		{"roots", func(m *machine) { m.o.Policy.Dirs = []string{"/"} }, Warn, "everything on this machine"},

		{"roots", func(m *machine) {
			m.o.Policy.Dirs = []string{filepath.Join(m.box, "\xff")}
			m.must(os.Mkdir(m.o.Policy.Dirs[0], 0o755))
		}, Fail, "can't be served: "},

		{"state", func(*machine) {}, Skipped, "not made yet"},
		{"state", func(m *machine) {
			m.put(filepath.Join(m.box, "file"), "", 0o600)
			m.o.Policy.StateDir = filepath.Join(m.box, "file", "a", "state")
		}, Fail, "file/a/state is not there and can't be made: "},
		{"state", func(m *machine) { m.open() }, Pass, "yours alone"},
		{"state", func(m *machine) { m.must(os.Chmod(m.open(), 0o750)) }, Fail, "open to other users"},
		{"state", func(m *machine) { m.put(filepath.Join(m.open(), "version"), "9\n", 0o600) }, Fail, `layout "9"`},
		{"state", func(m *machine) { m.put(filepath.Join(m.open(), "version"), "1\n", 0o600) }, Pass, "brings it up to date"},

		{"log", func(m *machine) { m.open() }, Skipped, "nothing is recorded yet"},
		{"log", func(m *machine) { m.record(3) }, Pass, "000001.jsonl is as it was signed"},
		{"log", func(m *machine) {
			m.record(3)
			m.must(os.Remove(filepath.Join(m.state, "checkpoint")))
		}, Warn, "whether the end of the log is missing can't be told"},
		{"log", func(m *machine) { m.tamper(m.record(3)) }, Fail, "audit.broken: "},
		{"log", func(m *machine) { m.put(filepath.Join(m.open(), "audit", "000001.jsonl"), "{}\n", 0o600) }, Fail, "the key of the log is gone"},
		{"log", func(m *machine) {
			m.put(filepath.Join(m.open(), "audit", "000001.jsonl"), "{}\n", 0o600)
			m.put(filepath.Join(m.state, "version"), "1\n", 0o600)
		}, Skipped, "of an earlier release"},
		{"signed", func(m *machine) { m.open() }, Skipped, "nothing is signed yet"},
		{"signed", func(m *machine) { m.record(3) }, Pass, "no process lives"},
		{"signed", func(m *machine) {
			m.record(3)
			m.must(os.Remove(filepath.Join(m.state, "checkpoint")))
		}, Warn, "the file checkpoint is gone"},
		{"signed", func(m *machine) { m.put(filepath.Join(m.open(), "version"), "1\n", 0o600) }, Skipped, "of an earlier release"},

		{"clock", func(m *machine) {
			m.put(filepath.Join(m.open(), "audit", "000001.jsonl"), `{"t":"2020-01-01T00:00:00Z"}`+"\n", 0o600)
		}, Pass, "not in the future"},
		{"clock", func(m *machine) {
			m.put(filepath.Join(m.open(), "audit", "000001.jsonl"), `{"t":"2999-01-01T00:00:00Z"}`+"\n", 0o600)
		}, Warn, "in the future"},

		{"litter", func(m *machine) { m.put(filepath.Join(m.project, "f"), "", 0o600) }, Pass, "nothing of killed processes"},
		{"litter", func(m *machine) {
			m.put(filepath.Join(m.project, "d/.postern-tmp-0123456789abcdef"), "", 0o600)
			m.o.Now = func() time.Time { return time.Now().Add(time.Hour) }
		}, Warn, "1 files of killed writes in project://"},
		{"litter", func(m *machine) { m.put(filepath.Join(m.project, ".postern-tmp-0123456789abcdef"), "", 0o600) }, Pass, "nothing of"},
		{"litter", func(m *machine) {
			m.put(filepath.Join(m.open(), "endpoints/.endpoint-1"), "", 0o600)
			m.o.Now = func() time.Time { return time.Now().Add(time.Hour) }
		}, Warn, "1 unfinished files in the state directory"},

		{"endpoints", func(m *machine) { m.open() }, Skipped, "nothing is served over HTTP"},
		{"endpoints", func(m *machine) {
			m.put(filepath.Join(m.open(), "endpoints/a.json"), `{"address":"127.0.0.1:1","folders":["/a"]}`, 0o600)
		}, Pass, "/a is not served now"},
		{"endpoints", func(m *machine) {
			m.put(filepath.Join(m.open(), "endpoints/a.json"), `{"address":"127.0.0.1:1","folders":["/a"]}`, 0o644)
		}, Fail, "others can read the token"},

		{"paused", func(*machine) {}, Skipped, "is not made yet"},
		{"paused", func(m *machine) { m.open() }, Pass, "no agent is paused"},
		{"paused", func(m *machine) { m.must(grant.Open(m.open(), grant.Options{}).Pause(m.Context(), "coder", "test")) }, Warn, "coder is paused"},

		{"clients", func(*machine) {}, Skipped, "postern init does that"},
		{"clients", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project) }, Pass, "runs this program"},
		{"clients", func(m *machine) { m.mcp("/absent/postern", "serve", "--agent", "claude-code", m.project) }, Fail, "can't be found"},
		{"clients", func(m *machine) { m.mcp("/bin/sh", "-c", "true") }, Warn, "runs something else"},
		{"clients", func(m *machine) {
			m.put(filepath.Join(m.box, "old/postern"), "#!/bin/sh\necho '{\"postern\":\"v0\"}'\n", 0o755)
			m.user(filepath.Join(m.box, "old/postern"), "serve", "--agent", "cursor", m.project)
		}, Warn, "is version v0, and this is v1"},
		{"clients", func(m *machine) {
			m.put(filepath.Join(m.box, "old/postern"), "#!/bin/sh\necho\n", 0o755)
			m.user(filepath.Join(m.box, "old/postern"), "serve", "--agent", "cursor", m.project)
		}, Fail, "doesn't tell its version"},
		{"clients", func(m *machine) { m.put(filepath.Join(m.project, ".mcp.json"), "{", 0o600) }, Warn, ".mcp.json"},
		{"clients", func(m *machine) { m.mcp("./bin/postern", "serve", "--agent", "claude-code", m.project) }, Fail, "its program ./bin/postern is a relative path"},
		{"clients", func(m *machine) { m.link("bin/postern") }, Warn, "which is not this program"},
		{"clients", func(m *machine) { m.odd(`"env":{"XDG_CONFIG_HOME":"/x"}`) }, Warn, "has members that init doesn't write: env: "},
		{"clients", func(m *machine) { m.odd(`"type":"http","url":"http://x"`) }, Warn, "init doesn't write: type, url: "},
		{"clients", func(m *machine) { m.odd(`"disabled":true`) }, Warn, "init doesn't write: disabled: "},
		{"clients", func(m *machine) { m.odd(`"type":"stdio"`) }, Pass, "runs this program"}, // the control
		{"clients", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", "--policy=p.yaml", m.project) }, Warn, "has flags that init doesn't write: --policy"},
		{"clients", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", "/") }, Warn, "serves another folder than this one: /"},
		{"clients", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "cursor", m.project) }, Warn, "is for the agent cursor, and its client is claude-code"},
		{"client-line", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project, "/etc") }, Skipped, "another folder than this one: /etc, and is not started"},
		{"client-line", func(m *machine) { m.odd(`"env":{"POSTERN_STATE":"/x"}`) }, Skipped, "init doesn't write: env, and is not started"},

		{"client-line", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", "--http", "auto", m.project) }, Skipped, "not started from here"},
		{"client-line", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project) }, Fail, "it doesn't answer"},

		{"own-tools", func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project) }, Warn, "its own Read, Edit, Write and Bash"},
	}
	for _, tc := range tests {
		t.Run(tc.check+" "+tc.text, func(t *testing.T) {
			m := newMachine(t)
			tc.make(m)
			found := m.of(tc.check)
			if !slices.ContainsFunc(found, func(r Result) bool {
				return r.Name == tc.check && r.Status == tc.status && strings.Contains(r.Text, tc.text)
			}) {
				t.Errorf("%+v, want %v %q", found, tc.status, tc.text)
			}
			for _, r := range found {
				if (r.Status == Warn || r.Status == Fail) && r.Hint == "" {
					t.Errorf("no hint: %+v", r)
				}
			}
		})
	}
}

// TestTimeout: a check that hangs is given up, and says so.
func TestTimeout(t *testing.T) {
	m := newMachine(t)
	m.o.CheckTime = time.Millisecond
	l := newLook(m.o)
	release := make(chan struct{})
	defer close(release)
	found := l.timed(t.Context(), check{"hangs", func(context.Context, *look) []Result { <-release; return nil }})
	if len(found) != 1 || found[0].Status != Fail || found[0].Name != "hangs" || found[0].Hint == "" {
		t.Errorf("%+v", found)
	}
}

// TestNothingIsMade: a look at a machine without postern makes nothing there.
func TestNothingIsMade(t *testing.T) {
	m := newMachine(t)
	all := Run(t.Context(), m.o)
	if err := Err(all); err != nil {
		t.Errorf("%v: %+v", err, all)
	}
	for dir, want := range map[string]int{m.home: 0, m.project: 0, m.box: 3} {
		if entries, _ := os.ReadDir(dir); len(entries) != want {
			t.Errorf("%s: %v", dir, entries)
		}
	}
}

// TestLogWithoutTime: a log that there is no time to compare is not called sound.
func TestLogWithoutTime(t *testing.T) {
	m := newMachine(t)
	m.record(2000)
	l := newLook(m.o)
	if r := checkLog(t.Context(), l)[0]; r.Status != Pass {
		t.Fatalf("with time: %+v", r)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if r := checkLog(ended, l)[0]; r.Status != Warn || !strings.Contains(r.Text, "no time to compare") {
		t.Errorf("%+v", r)
	}
}

// TestErrCounts: a check with several failures is named once.
func TestErrCounts(t *testing.T) {
	all := []Result{{Name: "policy"}, {Name: "policy"}, {Name: "roots", Status: Pass}, {Name: "log"}}
	if got, want := fault.As(Err(all)).Rule, "3 of 4 findings are failures: policy (2), log"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestErr(t *testing.T) {
	for status, want := range map[Status]int{Pass: 0, Warn: 0, Skipped: 0, Fail: fault.ExitFailed} {
		got := 0
		if err := Err([]Result{{Name: "x", Status: status}}); err != nil {
			got = fault.CodeOf(err).Exit()
		}
		if got != want {
			t.Errorf("%v: exit %d, want %d", status, got, want)
		}
	}
}
