// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config/advice"
)

// explain runs postern explain --json about a call, whose record may come a
// moment after its answer.
func (p *place) explain(id string) explainJSON {
	p.Helper()
	var out bytes.Buffer
	for over := time.Now().Add(30 * time.Second); ; {
		out.Reset()
		exit := run(p.Context(), []string{"explain", "--json", id}, p.env(strings.NewReader(""), &out))
		if exit == fault.ExitOK {
			break
		}
		if time.Now().After(over) {
			p.Fatalf("explain %s: exit %d", id, exit)
		}
		time.Sleep(20 * time.Millisecond)
	}
	var got explainJSON
	p.must(json.Unmarshal(out.Bytes(), &got))
	if got.ID != id {
		p.Fatalf("it explains %s, not %s", got.ID, id)
	}
	return got
}

// refused makes a call, which must end with that code, and explains it by the
// id that the client got.
func (s *session) refused(code fault.Code, tool string, args map[string]any) explainJSON {
	s.Helper()
	r := s.ask("tools/call", map[string]any{"name": tool, "arguments": args})
	if got := r.Meta.Error; got.Code != code.String() || got.ID == "" {
		s.Fatalf("%s: %+v, want %v: %+v", tool, got, code, r.Content)
	}
	x := s.explain(r.Meta.Error.ID)
	if x.Recorded.Code != code.String() || x.Now.Differs || len(x.Changes) == 0 {
		s.Fatalf("%s: %+v, now %+v, %d changes", tool, x.Recorded, x.Now, len(x.Changes))
	}
	return x
}

func (p *place) user() string { return filepath.Join(p.home, ".config/postern/policy.yaml") }

// policyCase is a call that a policy refuses. What is proposed is done, and the
// same call must then be allowed.
type policyCase struct {
	user, project string
	tool          string
	args          map[string]any
	code          fault.Code
	kinds         []string // of the steps; nil: one in the policy
	stuck         bool     // nothing helps
	nameless      bool     // the agent has no name, and so no rules of its own
	setup         func(*place)
}

func write(path string) map[string]any { return map[string]any{"path": path, "content": "x"} }

func remove(path string) map[string]any {
	return map[string]any{"path": path, "recursive": true, "confirm": true}
}

func read(path string) map[string]any { return map[string]any{"path": path} }

func policyCases() map[string]policyCase {
	const denied, ask = fault.PolicyDenied, fault.PolicyAsk
	two := []string{advice.InPolicy, advice.InPolicy}
	project := []string{advice.InProject}
	nothing := []string{advice.InNothing}
	odd := "v{1} [x]*?!~ é\"'#: a(b|c)\\d"
	return map[string]policyCase{
		// step 1
		"root for reading": {user: "version: 1\nroots: { project: { path: ., access: read } }\n", tool: "write_file", args: write("a.txt"), code: denied},
		"root in no one's": {user: "version: 1\nroots:\n  project:\n    path: .\n    access: read\n", tool: "delete_file", args: remove("a.txt"), code: denied, kinds: two},
		"postern's own":    {tool: "write_file", args: write(".postern/policy.yaml"), code: denied, kinds: nothing, stuck: true},
		"state of postern": {tool: "read_text_file", args: read(".local/state/postern/x"), code: denied, kinds: nothing, stuck: true},
		// step 2
		"built-in git":    {tool: "write_file", args: write(".git/config"), code: denied},
		"two built-ins":   {user: "version: 1\nallow_sensitive: [shell]\n", tool: "write_file", args: write(".git/.envrc"), code: denied, kinds: two},
		"secret":          {tool: "read_text_file", args: read(".env"), code: denied},
		"secret of two":   {user: "version: 1\nallow_sensitive:\n  - git\n", tool: "read_text_file", args: read(".env"), code: denied},
		"deny":            {user: "version: 1\ndeny: [\"a.txt\"]\n", tool: "read_text_file", args: read("a.txt"), code: denied},
		"deny with why":   {user: "version: 1\ndeny:\n  - { match: \"docs/**\", why: \"it is legal\" }\n", tool: "read_text_file", args: read("docs/a.md"), code: denied},
		"two denies":      {user: "version: 1\ndeny: [\"docs/**\", \"**/*.md\", \"other\"]\n", tool: "read_text_file", args: read("docs/a.md"), code: denied, kinds: two},
		"deny and ask":    {user: "version: 1\ndeny: [\"a.txt\"]\n", tool: "delete_file", args: remove("a.txt"), code: denied, kinds: two},
		"deny of project": {project: "version: 1\ndeny: [\"a.txt\"]\n", tool: "read_text_file", args: read("a.txt"), code: denied, kinds: project},
		// step 3
		"boundary":          {user: "version: 1\nallow: [\"src/**\"]\n", tool: "read_text_file", args: read("a.txt"), code: denied},
		"boundary, none":    {user: "version: 1\nallow: []\n", tool: "write_file", args: write("docs/a.md"), code: denied},
		"boundary, project": {project: "version: 1\nallow: [\"src/**\"]\n", tool: "read_text_file", args: read("a.txt"), code: denied, kinds: project},
		// step 4
		"agent":            {user: "version: 1\nagents: { codex: { fs.write: ask } }\n", tool: "write_file", args: write("a.txt"), code: ask},
		"agent denies":     {user: "version: 1\nagents:\n  codex:\n    fs.read: deny\n", tool: "read_text_file", args: read("a.txt"), code: denied},
		"agent else":       {user: "version: 1\nagents: { codex: { fs.read: { \"src/**\": allow, else: ask } } }\n", tool: "read_text_file", args: read("a.txt"), code: ask},
		"agent match":      {user: "version: 1\nagents: { codex: { fs.read: { \"*.txt\": deny, else: allow } } }\n", tool: "read_text_file", args: read("a.txt"), code: denied},
		"agent of project": {project: "version: 1\nagents: { codex: { fs.read: deny } }\n", tool: "read_text_file", args: read("a.txt"), code: denied, kinds: project},
		// step 5
		"shipped":           {tool: "delete_file", args: remove("a.txt"), code: ask},
		"shipped, a folder": {tool: "delete_file", args: remove("docs"), code: ask},
		"shipped, a file":   {user: "version: 1\nenvelope: on\n", tool: "delete_file", args: remove("a.txt"), code: ask},
		"shipped, rules":    {user: "version: 1\nrules:\n  fs.delete: { \"tmp/**\": allow }\n  fs.read: allow\n", tool: "delete_file", args: remove("a.txt"), code: ask},
		"rule":              {user: "version: 1\nrules: { fs.write: ask }\n", tool: "write_file", args: write("a.txt"), code: ask},
		"rule denies":       {user: "version: 1\nrules:\n  fs.create: deny\n", tool: "write_file", args: write("new"), code: denied},
		"rule else":         {user: "version: 1\nrules: { fs.write: { \"docs/**\": allow, else: deny } }\n", tool: "write_file", args: write("a.txt"), code: denied},
		"rule match":        {user: "version: 1\nrules: { fs.write: { \"*.txt\": ask, else: allow } }\n", tool: "write_file", args: write("a.txt"), code: ask},
		"two matches":       {user: "version: 1\nrules: { fs.write: { \"*.txt\": ask, \"a*\": deny, else: allow } }\n", tool: "write_file", args: write("a.txt"), code: denied},
		"two, nameless":     {user: "version: 1\nrules: { fs.write: { \"*.txt\": ask, \"a*\": deny, else: allow } }\n", tool: "write_file", args: write("a.txt"), code: denied, kinds: two, nameless: true},
		"else, nameless":    {user: "version: 1\nrules: { fs.write: { \"docs/**\": allow, else: deny } }\n", tool: "write_file", args: write("a.txt"), code: denied, nameless: true},
		"shipped, nameless": {tool: "delete_file", args: remove("a.txt"), code: ask, nameless: true},
		"rule of project":   {project: "version: 1\nrules: { fs.write: deny }\n", tool: "write_file", args: write("a.txt"), code: denied, kinds: project},
		"both layers":       {user: "version: 1\nrules: { fs.write: ask }\n", project: "version: 1\nrules: { fs.write: ask }\n", tool: "write_file", args: write("a.txt"), code: ask, kinds: []string{advice.InPolicy, advice.InProject}},
		"named root":        {user: "version: 1\nroots: { work: { path: . } }\nrules: { fs.write: ask }\n", tool: "write_file", args: write("a.txt"), code: ask},
		"a name like else":  {user: "version: 1\nrules: { fs.create: ask }\n", tool: "write_file", args: write("else"), code: ask},
		"an odd name":       {user: "version: 1\nrules: { fs.create: ask }\n", tool: "write_file", args: write(odd), code: ask},
		"an odd home":       {user: "version: 1\nallow: [\"src/**\"]\n", tool: "write_file", args: write("~x/$y"), code: denied, setup: func(p *place) { p.must(os.Mkdir(filepath.Join(p.dir, "~x"), 0o755)) }},
		// step 6
		"default":          {user: "version: 1\ndefault: deny\n", tool: "read_text_file", args: read("a.txt"), code: denied},
		"default asks":     {user: "version: 1\nrules: { fs.read: { \"docs/**\": allow } }\ndefault: ask\n", tool: "read_text_file", args: read("a.txt"), code: ask},
		"nameless":         {user: "version: 1\ndefault: deny\n", tool: "read_text_file", args: read("a.txt"), code: denied, nameless: true},
		"match, project":   {project: "version: 1\nrules: { fs.read: { \"*.txt\": deny, else: allow } }\n", tool: "read_text_file", args: read("a.txt"), code: denied, kinds: project},
		"no key for rules": {user: "version: 1\ndeny: []\n", tool: "delete_file", args: remove("a.txt"), code: ask, nameless: true},
		"default, project": {project: "version: 1\ndefault: deny\n", tool: "read_text_file", args: read("a.txt"), code: denied, kinds: project},
		// several names and actions
		"an edit reads":    {user: "version: 1\nrules: { fs.read: deny }\n", tool: "edit_file", args: map[string]any{"path": "a.txt", "edits": []map[string]string{{"oldText": "a", "newText": "b"}}}, code: denied},
		"a new file":       {user: "version: 1\nrules: { fs.write: deny, fs.create: deny }\n", tool: "write_file", args: write("new"), code: denied, kinds: two},
		"a move":           {user: "version: 1\nrules: { fs.rename: ask, fs.write: ask, fs.create: ask }\n", tool: "move_file", args: map[string]any{"source": "a.txt", "destination": "docs/b.txt"}, code: ask, kinds: slices.Repeat(two[:1], 5)},
		"a copy":           {user: "version: 1\nrules: { fs.read: ask, fs.create: ask }\n", tool: "copy_file", args: map[string]any{"source": "a.txt", "destination": "docs/b.txt"}, code: ask, kinds: two},
		"beneath a folder": {user: "version: 1\nrules: { fs.delete: { \"docs/sub/**\": deny, else: allow } }\n", tool: "delete_file", args: remove("docs"), code: denied},
		"through a link":   {user: "version: 1\nrules: { fs.read: { \"docs/**\": ask, else: allow } }\n", tool: "read_text_file", args: read("to-docs/a.md"), code: ask, setup: func(p *place) { p.must(os.Symlink("docs", filepath.Join(p.dir, "to-docs"))) }},
	}
}

// TestExplainPolicy: what is proposed is done to the files, and the same call
// is then allowed; before that it isn't. Nothing is proposed for a project's
// own file but to look at it, and then nothing else helps.
func TestExplainPolicy(t *testing.T) {
	for name, tt := range policyCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time a record is waited for
			p := newPlace(t, map[string]string{"a.txt": "a", "docs/a.md": "a", "docs/sub/b.md": "b", ".env": "S=1", ".git/config": "c"})
			for file, text := range map[string]string{p.user(): tt.user, filepath.Join(p.dir, ".postern/policy.yaml"): tt.project} {
				if text != "" {
					p.put(file, text)
				}
			}
			if tt.setup != nil {
				tt.setup(p)
			}
			args := []string{"--agent", "codex"}
			if tt.nameless {
				args = nil
			}
			if !strings.Contains(tt.user, "roots:") {
				args = append(args, ".")
			}
			x := p.serve(args...).refused(tt.code, tt.tool, tt.args)
			var kinds []string
			for _, s := range x.Changes {
				kinds = append(kinds, s.Kind)
			}
			if tt.kinds == nil {
				tt.kinds = []string{advice.InPolicy}
			}
			if !slices.Equal(kinds, tt.kinds) {
				t.Errorf("kinds %q, want %q: %+v", kinds, tt.kinds, x.Changes)
			}
			if x.Enough == tt.stuck && x.Now.Judged {
				t.Errorf("it is enough: %t", x.Enough)
			}
			var mine []advice.Step
			for _, s := range x.Changes {
				switch s.Kind {
				case advice.InPolicy:
					mine = append(mine, s)
				case advice.InProject:
					if s.Lines != nil || s.Put != "" || s.Remove && s.Text == "" || s.Line == 0 {
						t.Errorf("it proposes to loosen a project's file: %+v", s)
					}
					p.must(os.Remove(s.File))
				}
			}
			if len(mine) > 0 && mine[0].File != p.user() {
				t.Fatalf("the change is in %s", mine[0].File)
			}
			p.follow(mine)
			want := fault.OK
			if tt.stuck {
				want = tt.code
			}
			if got := p.serve(args...).call(tt.tool, tt.args); got != want.String() {
				src, _ := os.ReadFile(p.user())
				t.Errorf("afterwards: %s, want %v: %+v\n%s", got, want, x.Changes, src)
			}
		})
	}
}

// TestExplainNarrowest: what is proposed for one agent says nothing about
// another one, wherever the rule stands that decided.
func TestExplainNarrowest(t *testing.T) {
	for name, user := range map[string]string{
		"shipped": "", "a file": "version: 1\nrules: { fs.delete: ask }\n", "a match": "version: 1\nrules: { fs.delete: { \"*.txt\": ask } }\n",
		"default": "version: 1\nrules: { fs.delete: { \"b\": allow } }\ndefault: ask\n",
		"others":  "version: 1\nagents: { cursor: { fs.read: allow }, codex: { fs.read: allow } }\n",
		"known":   "version: 1\nagents:\n  codex:\n    fs.delete: { \"b\": allow }\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, map[string]string{"a.txt": "a", "b": "b"})
			if user != "" {
				p.put(p.user(), user)
			}
			x := p.serve("--agent", "codex", ".").refused(fault.PolicyAsk, "delete_file", remove("a.txt"))
			p.follow(x.Changes)
			for _, c := range []struct {
				agent string
				want  fault.Code
			}{{"cursor", fault.PolicyAsk}, {"codex", fault.OK}} {
				if got := p.serve("--agent", c.agent, ".").call("delete_file", remove("a.txt")); got != c.want.String() {
					t.Errorf("%s: %s, want %v: %+v", c.agent, got, c.want, x.Changes)
				}
			}
		})
	}
}

// TestExplainPrinted: a key that the file doesn't have yet is among the lines to write, as
// in a new one; a project's own line is only named, each place once.
func TestExplainPrinted(t *testing.T) {
	for name, tt := range map[string]struct {
		user, project, want string
		code                fault.Code
		tool                string
		args                map[string]any
	}{
		"no agents": {user: "version: 1\n#agents:\n", code: fault.PolicyAsk, tool: "delete_file", args: remove("a.txt"), want: "  USER\n    agents:\n      codex: { fs.delete: { \"a.txt\": allow } }\n"},
		"agents":    {user: "version: 1\nagents: { cursor: { fs.read: allow } }\n", code: fault.PolicyAsk, tool: "delete_file", args: remove("a.txt"), want: "  USER, under agents\n    codex: { fs.delete: { \"a.txt\": allow } }\n"},
		"project": {
			project: "version: 1\nrules:\n  fs.create: { \"new/**\": deny }\n  fs.write: { \"new/**\": deny }\n", code: fault.PolicyDenied, tool: "write_file", args: write("new/a"),
			want: "to change it: the project's own policy is stricter here, and no other file outranks it: take this line out, or narrow it, if you wrote it\n  PROJECT:3:16\n",
		},
		"confirm": {code: fault.ConfirmMissing, tool: "delete_file", args: read("a.txt"), want: "\nto not be asked either: allow this name, or more by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, map[string]string{"a.txt": "a"})
			own := filepath.Join(p.dir, ".postern/policy.yaml")
			for file, text := range map[string]string{p.user(): tt.user, own: tt.project} {
				if text != "" {
					p.put(file, text)
				}
			}
			x := p.serve("--agent", "codex", ".").refused(tt.code, tt.tool, tt.args)
			var out bytes.Buffer
			if exit := run(t.Context(), []string{"explain", x.ID}, p.env(strings.NewReader(""), &out)); exit != fault.ExitOK {
				t.Fatal(exit)
			}
			text := strings.NewReplacer(p.user(), "USER", own, "PROJECT").Replace(out.String())
			if !strings.Contains(text, tt.want) || tt.project != "" && (strings.Contains(text, "\n    allow\n") || strings.Count(text, "if you wrote it") != 1) {
				t.Errorf("%s\nwant %s", text, tt.want)
			}
		})
	}
}
