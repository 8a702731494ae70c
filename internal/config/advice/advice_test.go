// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/config"
)

// Each code has an advice, and one that says something or is the policy's.
func TestCodes(t *testing.T) {
	for _, c := range fault.Codes() {
		s, ok := codes()[c]
		if !ok || s.Kind == "" || s.Text == "" && c != fault.PolicyDenied && c != fault.PolicyAsk {
			t.Errorf("%v has no advice", c)
		}
	}
	if len(codes()) != len(fault.Codes()) {
		t.Error("there is an advice for a code that doesn't exist")
	}
}

// names has what patterns and YAML read in their own way.
func names() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune("ab.*?[]{}!~$(|):\\ #'\"-&%@`\t\u00a0\u202e\ufeffé,>/")), 1, 12, -1)
}

// A proposed pattern names the file and no other, and survives YAML.
func TestLiteral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(names(), rapid.SampledFrom([]string{"else", "ELSE", "class", "~", "~/x", "$HOME", "a(b|c)", "!x", "a:/b"})).Draw(t, "name")
		other := names().Draw(t, "other")
		if !core.Canonical(name) || !core.Canonical(other) {
			return
		}
		text := literal(name)
		p, err := glob.Compile(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !p.Match(name) || p.Match(other) != (other == name) {
			t.Fatalf("%q: %q %t, %q %t", text, name, p.Match(name), other, p.Match(other))
		}
		var read map[string]string
		if err := yaml.Unmarshal([]byte("{ "+quoted(text)+": allow }"), &read); err != nil || read[text] != "allow" {
			t.Fatalf("%s: %v %q", quoted(text), err, read)
		}
	})
}

// No reader of policies takes a proposed pattern for another language's.
func TestLiteralIsRead(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(names(), rapid.SampledFrom([]string{"else", "Else", "~/x", "$HOME", "v(b|c)", "a@(b)", "!x", " x ", "a:/b", `a\b`, `\n`})).Draw(t, "name")
		if !core.Canonical(name) {
			return
		}
		line := "rules: { fs.read: { " + quoted(literal(name)) + ": allow, else: ask } }\n"
		file := filepath.Join(dir, "policy.yaml")
		if err := os.WriteFile(file, []byte("version: 1\n"+line), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Options{Dirs: []string{dir}, WorkDir: dir, PolicyFile: file, SystemFile: filepath.Join(dir, "none")})
		if err != nil {
			t.Fatalf("%s%v: %v", line, err, errors.Unwrap(err))
		}
		q := core.Request{Action: core.FSRead, Resource: core.File("project", name)}
		if v := c.Policy.Evaluate(q); v.Decision != core.Allow && v.Reason.Builtin == "" {
			t.Fatalf("%s%v", line, v.Reason)
		}
	})
}

// What guards postern itself is never lifted.
func TestLift(t *testing.T) {
	for _, entry := range []string{"postern", "postern-state", "", "unknown"} {
		e := &Editor{p: &policy.Policy{}}
		if s, ok := e.Lift(entry); ok || s.Kind != InNothing {
			t.Errorf("%s: %+v", entry, s)
		}
	}
}

// TestExamples: a change that makes an example wrong comes with what to do about
// it, in each file that has one; a change that makes none wrong comes alone.
func TestExamples(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const examples = "examples:\n  - { fs.write: \"project://a.txt\", decision: allow }\n  - { fs.read: \"project://.env\", decision: deny }\n"
	system := write("system.yaml", "version: 1\n"+examples)
	project := write("ws/.postern/policy.yaml", "version: 1\n"+examples)
	for name, user := range map[string]string{"with a file": "version: 1\n" + examples, "with a new one": ""} {
		t.Run(name, func(t *testing.T) {
			o := config.Options{Dirs: []string{filepath.Join(dir, "ws")}, WorkDir: dir, SystemFile: system, Env: func(k string) string {
				return map[string]string{"XDG_CONFIG_HOME": filepath.Join(dir, "home")}[k]
			}}
			_ = os.Remove(filepath.Join(dir, "home/postern/policy.yaml"))
			want := []Step{{File: project, Kind: InProject, Line: 4, Column: 5, Remove: true}}
			if user != "" {
				want = append([]Step{{File: write("home/postern/policy.yaml", user), Kind: InPolicy, Line: 4, Column: 5, Put: "decision: allow"}}, want...)
			}
			c, err := config.Load(o)
			if err != nil {
				t.Fatal(err)
			}
			e := NewEditor(c)
			if s, ok := e.Lift("git"); !ok || e.Examples() != nil {
				t.Errorf("%+v, %+v", s, e.Examples())
			}
			if _, ok := e.Lift("dotenv"); !ok {
				t.Error("not lifted")
			}
			got := e.Examples()
			for i := range got {
				if got[i].Text == "" {
					t.Errorf("%+v says nothing", got[i])
				}
				got[i].Text = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff) // the system's file is about no later one
			}
		})
	}
}
