// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"regexp"
	"strings"
	"testing"
)

// TestAsked: a person decides while the agent works. A yes serves the call that
// was shown, once, and no other; a no is told to the model; and what was
// changed is taken back.
func TestAsked(t *testing.T) {
	for _, agent := range []Agent{ClaudeCode, Codex} {
		t.Run(agent.String(), func(t *testing.T) {
			p := newPlace(t, agent)
			p.put("code/app/.postern/policy.yaml", "version: 1\nrules: { fs.write: ask }\n")
			p.run("init", "--yes", "--client", agent.String(), p.work)
			p.asked()
		})
	}
}

// question is where a refusal names what a person runs.
var question = regexp.MustCompile(`postern approve ([0-9a-z]{8})\b`)

func (p place) asked() {
	t := p.t
	t.Helper()
	write := func(content string) Call {
		return p.call("write_file", object{"path": "notes.md", "content": content})
	}
	s := p.session(write("one\n"), write("one\n"), write("one\n"), write("two\n"), write("two\n"))
	answer := map[int][]string{1: {"approve", "--yes"}, 4: {"deny"}}
	s.Before = func(i int, results []Result) {
		args := answer[i]
		if args == nil {
			return
		}
		id := question.FindStringSubmatch(results[i-1].Text)
		if id == nil {
			t.Errorf("write %d: no question in %q", i-1, results[i-1].Text)
			return
		}
		p.run(append(args, id[1])...)
	}
	results := s.Run(t)
	for i, want := range []string{
		"nobody has answered yet", "Successfully wrote to notes.md", "nobody has answered yet",
		"nobody has answered yet", "because: a person said no",
	} {
		if text := p.shown(results[i]); !strings.Contains(text, want) {
			t.Errorf("write %d: %q, want %q", i, text, want)
		}
	}
	if got := p.get("code/app/notes.md"); got != "one\n" {
		t.Errorf("after the session notes.md holds %q", got)
	}
	p.run("undo", "--last", "--yes")
	if got := p.get("code/app/notes.md"); got != "# Notes\nbuy milk\n" {
		t.Errorf("after undo notes.md holds %q", got)
	}
}
