// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestClaudeCode: Claude Code, attached by init, works through postern.
func TestClaudeCode(t *testing.T) {
	p := newPlace(t, ClaudeCode)
	p.put("code/app/.mcp.json", "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"false\"}\n  }\n}\n")
	p.put(".claude/settings.json", `{"disabledMcpjsonServers": ["other"]}`)
	p.works()
}

// TestCodex: Codex, attached by init, works through postern.
func TestCodex(t *testing.T) {
	p := newPlace(t, Codex)
	p.put(".codex/config.toml", "# mine\n[mcp_servers.other] # for later\ncommand = \"false\"\nenabled = false\n")
	p.works()
}

// works attaches the agent as a person would, lets it read and change files
// and try what it may not, and takes postern out again. The model is shown the
// envelope around what it read and the three lines of what was refused, the
// project is as the calls say, the log has every call under the agent's name.
func (p place) works() {
	t := p.t
	t.Helper()
	before := p.files()
	p.run("init", "--yes", "--client", p.agent.String(), p.work)
	calls := p.calls()
	results := p.session(calls...).Run(t)
	p.compare(calls, results)

	for i, r := range results {
		c := calls[i]
		text := p.shown(r)
		switch {
		case strings.HasPrefix(c.Tool, "read") && i < allowed && !envelope.MatchString(text):
			t.Errorf("%s %v: no envelope: %q", c.Tool, c.Input, text)
		case i >= allowed && !refusal.MatchString(text):
			t.Errorf("%s %v: not the three lines of a refusal: %q", c.Tool, c.Input, text)
		case r.IsError != (i >= allowed && p.agent == ClaudeCode):
			t.Errorf("%s %v: error %v", c.Tool, c.Input, r.IsError)
		}
	}
	p.records()

	p.run("init", "--undo", "--yes", p.work)
	before["code/app/notes.md"] = "# Notes\nbuy bread\n"
	before["code/app/new.md"] = "new\n"
	if diff := cmp.Diff(before, p.files()); diff != "" {
		t.Errorf("after init --undo (-before +after):\n%s", diff)
	}
}

// allowed is how many of the calls are allowed: they come first.
const allowed = 7

func (p place) calls() []Call {
	return []Call{
		p.call("read_text_file", object{"path": "notes.md"}),
		p.call("edit_file", object{"path": "notes.md", "edits": []any{object{"oldText": "milk", "newText": "bread"}}}),
		p.call("write_file", object{"path": "new.md", "content": "new\n"}),
		p.call("read_text_file", object{"path": filepath.Join(p.work, "new.md")}),
		p.call("list_directory", object{"path": "."}),
		p.call("search_files", object{"path": ".", "pattern": "**/*.md"}),
		p.call("search_content", object{"path": ".", "query": "two"}),

		p.call("read_text_file", object{"path": filepath.Join(p.home, "diary.txt")}),
		p.call("read_text_file", object{"path": "../../diary.txt"}),
		p.call("write_file", object{"path": "../evil.txt", "content": "x\n"}),
		p.call("read_text_file", object{"path": ".env"}),
		p.call("write_file", object{"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"}),
	}
}

var (
	envelope = regexp.MustCompile(`(?s)\A<untrusted-NONCE kind="file" source="project://[a-z.]+" etag="ETAG">\n.*\n</untrusted-NONCE>\z`)
	refusal  = regexp.MustCompile(`\Adenied: fs\.[a-z]+ .+\nbecause: .+\nnext: .+\z`)
)

// compare holds the transcript against the one in testdata.
func (p place) compare(calls []Call, results []Result) {
	p.t.Helper()
	file := filepath.Join("testdata", p.agent.String()+".txt")
	got := p.transcript(calls, results)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		p.t.Errorf("what the model was shown (-%s +got):\n%s", file, diff)
	}
}

// record is what is looked at of one.
type record struct{ Agent, Op, Event, Corr, Code string }

// records looks at the log: it verifies, each record has the agent's name, each
// kind of call is there, and each refusal can be explained.
func (p place) records() {
	t := p.t
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(p.run("log", "--json", "--all")) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Agent != p.agent.String() {
			t.Errorf("a record of %q: %s", r.Agent, line)
		}
		if r.Event == "refusal" {
			if out := p.run("explain", r.Corr); !strings.Contains(out, p.agent.String()) {
				t.Errorf("explain %s: %s", r.Corr, out)
			}
		}
		seen[strings.Join([]string{r.Op, r.Event, r.Code}, " ")]++
	}
	for what, want := range map[string]int{
		"fs.write outcome ": 1, "fs.create outcome ": 1,
		"fs.read refusal path.escape": 2, "fs.write refusal path.escape": 1,
		"fs.read refusal policy.denied": 1, "fs.write refusal policy.denied": 1,
	} {
		if seen[what] != want {
			t.Errorf("%q is in the log %d times, want %d: %v", what, seen[what], want, seen)
		}
	}
	if seen["fs.read decision "] == 0 || seen["fs.list decision "] == 0 {
		t.Errorf("what is in the log: %v", seen)
	}
	if out := p.run("log", "verify"); !strings.HasPrefix(out, "ok: ") {
		t.Errorf("log verify: %s", out)
	}
}
