// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/state"
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
		Policy: config.Options{Dirs: []string{m.project}, WorkDir: box, StateDir: m.state, Env: env, SystemFile: filepath.Join(box, "none")},
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

func (m *machine) policy(text string) {
	m.put(filepath.Join(m.home, ".config/postern/policy.yaml"), text, 0o600)
}

func (m *machine) mcp(command string, args ...string) {
	m.put(filepath.Join(m.project, ".mcp.json"), fmt.Sprintf(`{"mcpServers":{"postern":{"command":%q,"args":["%s"]}}}`, command, strings.Join(args, `","`)), 0o600)
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
		{"program", func(m *machine) {
			m.o.Self = filepath.Join(m.box, "go-build123", "exe", "postern")
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

		{"state", func(*machine) {}, Skipped, "not made yet"},
		{"state", func(m *machine) { m.open() }, Pass, "yours alone"},
		{"state", func(m *machine) { m.must(os.Chmod(m.open(), 0o750)) }, Fail, "open to other users"},
		{"state", func(m *machine) { m.put(filepath.Join(m.open(), "version"), "9\n", 0o600) }, Fail, `layout "9"`},
		{"state", func(m *machine) { m.put(filepath.Join(m.open(), "version"), "1\n", 0o600) }, Pass, "brings it up to date"},

		{"log", func(m *machine) { m.open() }, Skipped, "nothing is recorded yet"},
		{"log", func(m *machine) { m.put(filepath.Join(m.open(), "audit", "000001.jsonl"), "{}\n", 0o600) }, Fail, "the key of the log is gone"},

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

		{"clients", func(*machine) {}, Skipped, "postern init does that"},
		{"clients", func(m *machine) { m.mcp(m.o.Self, "serve", ".") }, Pass, "runs this program"},
		{"clients", func(m *machine) { m.mcp("/absent/postern", "serve", ".") }, Fail, "can't be found"},
		{"clients", func(m *machine) { m.mcp("/bin/sh", "-c", "true") }, Warn, "runs something else"},
		{"clients", func(m *machine) {
			m.put(filepath.Join(m.box, "old/postern"), "#!/bin/sh\necho '{\"postern\":\"v0\"}'\n", 0o755)
			m.mcp(filepath.Join(m.box, "old/postern"), "serve", ".")
		}, Warn, "is version v0, and this is v1"},
		{"clients", func(m *machine) {
			m.put(filepath.Join(m.box, "old/postern"), "#!/bin/sh\necho\n", 0o755)
			m.mcp(filepath.Join(m.box, "old/postern"), "serve", ".")
		}, Fail, "doesn't tell its version"},
		{"clients", func(m *machine) { m.put(filepath.Join(m.project, ".mcp.json"), "{", 0o600) }, Warn, ".mcp.json"},

		{"client-line", func(m *machine) { m.mcp(m.o.Self, "serve", "--http", "auto", ".") }, Skipped, "not started from here"},
		{"client-line", func(m *machine) { m.mcp(m.o.Self, "serve", ".") }, Fail, "it doesn't answer"},

		{"own-tools", func(m *machine) { m.mcp(m.o.Self, "serve", ".") }, Warn, "its own Read, Edit, Write and Bash"},
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

// TestNothingForeignIsStarted: neither a program in the project nor one that
// others can change, nor any other verb, whatever a client's file says.
func TestNothingForeignIsStarted(t *testing.T) {
	for what, lies := range map[string]func(*machine) string{
		"in the project": func(m *machine) string { return filepath.Join(m.project, "bin", "postern") },
		"of other name":  func(m *machine) string { return filepath.Join(m.box, "x", "other") },
		"open to others": func(m *machine) string { return filepath.Join(m.box, "loose", "postern") },
		"its control":    func(m *machine) string { return filepath.Join(m.box, "mine", "postern") },
	} {
		m := newMachine(t)
		trace, program := filepath.Join(m.box, "started"), lies(m)
		mode := os.FileMode(0o755)
		if what == "open to others" {
			mode = 0o777
		}
		m.put(program, "#!/bin/sh\n: > "+trace+"\n", mode)
		m.mcp(program, "serve", ".")
		m.of("clients")
		m.of("client-line")
		_, err := os.Stat(trace)
		if started := err == nil; started != (what == "its control") {
			t.Errorf("%s: started %v", what, started)
		}
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
