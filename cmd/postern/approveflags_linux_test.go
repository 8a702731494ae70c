// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/prompt"
)

// unwrapped is the screen with the lines that a narrow terminal breaks put together.
func (p *person) unwrapped() string { return strings.ReplaceAll(p.screen(), "\r\n  ¦ ", "") }

// TestApproveFlags: a yes that can't be given is refused before anybody is asked, with
// the command that can; one that can says all of what it is for, needs the word where
// it is for a whole root, and is told once.
func TestApproveFlags(t *testing.T) {
	env, dir := desk(t)
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	place(t, dir, "src/a.txt", "old\n")
	a := newAgent(t, env, dir)
	ask := func(content string) string {
		t.Helper()
		return a.refusedWith(map[string]any{"path": "src/a.txt", "content": content})[0]
	}
	id := ask("one\n")
	for _, tc := range []struct {
		flags      []string
		rule, next string
	}{
		{[]string{"--pattern", "src/**", "--always"}, "a pattern begins with its root, as project://src/**", "--pattern 'project://src/**' --always "},
		{[]string{"--pattern", "project://other/**"}, "the pattern does not cover what is asked: not project://src/a.txt", "--pattern 'project://src/**' "},
		{[]string{"--until", "8d"}, "the time must lie in the next 7 days", "--until 7d "},
	} {
		p := sit(t, env, 40, append(append([]string{"approve"}, tc.flags...), id)...)
		p.ends(2)
		p.sees("because: ")
		if got := p.screen(); !strings.Contains(got, "because: "+tc.rule+"\r\nnext: postern approve "+tc.next+id+"\r\n") || strings.Contains(got, "question "+id) {
			t.Errorf("%v:\n%s", tc.flags, got)
		}
	}

	p := sit(t, env, 40, "approve", "--pattern", "project://src/**", "--always", id)
	p.sees(`later: `)
	if got := p.unwrapped(); !strings.Contains(got, "y yes: fs.write (a new file is fs.create, and not in it), by any tool, on project://src/**, in any session, until 2") {
		t.Error(got)
	}
	p.types("l\r")
	p.sees(`next: postern approve --pattern 'project://src/\*\*' --always ` + id)
	p.ends(4)

	p = sit(t, env, 40, "approve", "--pattern", "project://**", "--always", id)
	p.sees(`for a yes type always`)
	p.sees(`later: `)
	p.types("y\r")
	p.sees(`not answered: for a yes to this type always`)
	p.types("always\r")
	p.ends(0)
	p.sees("takes it back")
	if got := p.screen(); strings.Count(got, "approved "+id) != 1 || !strings.Contains(got, "approved "+id+": fs.write project://src/a.txt") {
		t.Errorf("told otherwise than once:\n%s", got)
	}
}

// TestUpTellsPolicy: an edit that isn't valid is said on the terminal of up that nobody
// calls, once, and so is that it is mended.
func TestUpTellsPolicy(t *testing.T) {
	env, dir := desk(t)
	policy := filepath.Join(filepath.Dir(dir), ".config", "postern", "policy.yaml")
	p := sit(t, env, 40, "up", dir)
	p.sees("the page, in the next minute")
	time.Sleep(prompt.Deaf)
	if strings.Contains(p.screen(), "in force\r\n") {
		t.Fatal(p.screen())
	}
	put(t, policy, "version: 1\nrules: { fs.delete: dny }\n")
	p.sees(`the changed policy is not in force, the last good one is\r\n`)
	p.sees(`policy\.yaml:2:21: fs\.delete must be one of: allow, ask, deny\r\n`)
	put(t, policy, "version: 1\nrules: { fs.delete: deny }\n")
	p.sees(`the policy is valid again and in force\r\n`)
	if n := strings.Count(p.screen(), "is not in force"); n != 1 {
		t.Errorf("said %d times:\n%s", n, p.screen())
	}
	p.blurts("\x03")
	p.ends(0)
}
