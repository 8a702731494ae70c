// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
)

// place is a home, a system file and a folder to guard, all in a temporary one.
type place struct {
	t               *testing.T
	home, dir, work string
	opts            config.Options
}

func newPlace(t *testing.T) *place {
	t.Helper()
	base := t.TempDir()
	p := &place{t: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "dir"), work: base}
	for _, d := range []string{p.home, p.dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.opts = config.Options{
		Dirs: []string{p.dir}, WorkDir: base, SystemFile: filepath.Join(base, "system", "policy.yaml"),
		Env:      func(key string) string { return map[string]string{"HOME": p.home}[key] },
		StateDir: filepath.Join(p.home, ".local/state/postern"),
	}
	return p
}

func (p *place) write(path, text string) string {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil { // whatever the umask
		p.t.Fatal(err)
	}
	return path
}

func (p *place) user(text string) string {
	return p.write(filepath.Join(p.home, ".config/postern/policy.yaml"), text)
}

func (p *place) system(text string) string { return p.write(p.opts.SystemFile, text) }

func (p *place) project(text string) string {
	return p.write(filepath.Join(p.dir, ".postern/policy.yaml"), text)
}

func (p *place) load() *config.Config {
	p.t.Helper()
	c, err := config.Load(p.opts)
	if err != nil {
		p.t.Fatalf("%v\n%v", err, errors.Unwrap(err))
	}
	return c
}

func (p *place) refused(code fault.Code, want string) {
	p.t.Helper()
	_, err := config.Load(p.opts)
	text := ""
	if err != nil {
		text = err.Error()
		if cause := errors.Unwrap(err); cause != nil {
			text += "\n" + cause.Error()
		}
	}
	if fault.CodeOf(err) != code || !strings.Contains(text, want) {
		p.t.Errorf("code %v, want %v with %q:\n%s", fault.CodeOf(err), code, want, text)
	}
}

func file(a core.Action, name string) core.Request {
	return core.Request{Action: a, Resource: core.File("project", name)}
}

func TestNoPolicyIsTheShippedDefault(t *testing.T) {
	p := newPlace(t)
	c := p.load()
	for a, want := range map[core.Action]core.Decision{
		core.FSRead: core.Allow, core.FSWrite: core.Allow, core.FSDelete: core.Ask, core.FSRename: core.Allow,
	} {
		if got := c.Policy.Evaluate(file(a, "x")); got.Decision != want {
			t.Errorf("%v: %v", a, got)
		}
	}
	if len(c.Roots) != 1 || c.Roots[0].Name != "project" || c.Roots[0].Path != p.dir || len(c.Files) != 0 {
		t.Errorf("roots %+v, files %v", c.Roots, c.Files)
	}
	if !c.Policy.ConfirmRequired(core.FSDelete) || !c.Settings.Envelope || c.Settings.Ask.Wait != 45*time.Second {
		t.Errorf("settings %+v", c.Settings)
	}
}

// TestPartialPolicy: what a file leaves out is as shipped.
func TestPartialPolicy(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nrules: { fs.delete: allow }\nrequire: { ifMatch: [fs.write] }\n")
	c := p.load()
	for a, want := range map[core.Action]core.Decision{core.FSDelete: core.Allow, core.FSWrite: core.Allow, core.FSRead: core.Allow} {
		if got := c.Policy.Evaluate(file(a, "x")); got.Decision != want {
			t.Errorf("%v: %v", a, got)
		}
	}
	if !c.Policy.IfMatchRequired(core.FSWrite) || !c.Policy.ConfirmRequired(core.FSDelete) {
		t.Error("require")
	}
	p.user("version: 1\nrules: { fs.read: allow }\ndefault: deny\n")
	if got := p.load().Policy.Evaluate(file(core.FSWrite, "x")); got.Decision != core.Deny || got.Reason.Step != core.StepDefault {
		t.Errorf("a stated default: %v", got)
	}
}

func TestLayersAndSettings(t *testing.T) {
	p := newPlace(t)
	p.system("version: 1\nenvelope: on\nlimits: { call: 30s }\negress: { ports: [443, 80] }\ntools: { off: [move_file] }\nundo: { keep: 1d }\n")
	p.user("version: 1\nenvelope: off\nlimits: { call: 50s, answer: 20MiB }\negress: { ports: [443, 22] }\ntools: { off: [edit_file] }\nundo: { keep: 2d, max_entries: 5 }\nscreen: { strict: true }\nrules: { fs.write: allow }\n")
	p.project("version: 1\ndeny: [{ match: gen, why: made by make }]\nlimits: { answer: 30MiB, whole_read: 1KiB }\nscreen: { strict: true }\nrules: { fs.write: ask, fs.delete: allow }\n")
	c := p.load()
	s := c.Settings
	if !s.Envelope || s.Limits.Call != 30*time.Second || s.Limits.Answer != 20<<20 || s.Limits.WholeRead != 1<<10 ||
		!cmp.Equal(s.Egress.Ports, []uint16{443}) || !cmp.Equal(s.ToolsOff, []string{"move_file", "edit_file"}) ||
		s.Undo.Keep != 48*time.Hour || s.Undo.MaxEntries != 5 || !s.Screen.Strict {
		t.Errorf("settings %+v", s)
	}
	if got := c.Policy.Evaluate(file(core.FSRead, "Gen/x")); got.Decision != core.Deny || !strings.Contains(got.Reason.String(), "deny of the project's own policy ("+c.Files[2]+":2:17): ") {
		t.Errorf("deny: %v", got.Reason)
	}
	if got := c.Policy.Evaluate(file(core.FSWrite, "x")); got.Decision != core.Ask {
		t.Errorf("the project tightens: %v", got)
	}
	if got := c.Policy.Evaluate(file(core.FSDelete, "x")); got.Decision != core.Ask {
		t.Errorf("the project loosens: %v", got)
	}
}

func TestProjectOnlyTightens(t *testing.T) {
	for _, text := range []string{
		"roots: { x: { path: / } }", "allow_sensitive: [dotenv]", "envelope: off", "undo: { keep: 1d }", "ask: { wait: 1s }",
		"egress: { ports: [22] }", "audit: { reads: allow }", "audit: { paths: plain }", "screen: { strict: false }", "screen: { results: mark }",
	} {
		p := newPlace(t)
		p.project("version: 1\n" + text + "\n")
		p.refused(fault.ConfigInvalid, "a project's policy can only tighten")
		p = newPlace(t) // the control: the user may
		p.user("version: 1\n" + strings.ReplaceAll(text, "{ path: / }", "{ path: . }") + "\n")
		p.load()
	}
}

func TestPolicyFlag(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nnonsense: 1\n")
	p.opts.PolicyFile = "mine.yaml"
	p.refused(fault.ConfigInvalid, "mine.yaml: there is no such file")
	p.write(filepath.Join(p.work, "mine.yaml"), "version: 1\nrules:\n  proc.exec: { \"fw\": deny, else: allow }\n")
	c := p.load()
	got := c.Policy.Evaluate(core.Request{Action: core.ProcExec, Resource: core.File("", "/t/sbin/fw")})
	if pos := got.Reason.Pos; got.Decision != core.Deny || pos.Line != 3 || pos.Column != 16 || !strings.Contains(got.Reason.Rule, `"fw"`) {
		t.Errorf("%+v", got)
	}
	if got := c.Policy.Evaluate(core.Request{Action: core.ProcExec, Resource: core.File("", "/t/sbin/ok")}); got.Decision != core.Allow {
		t.Errorf("%+v", got)
	}
}

func TestRoots(t *testing.T) {
	type root struct{ Name, Path string }
	tests := map[string]struct {
		user string
		dirs []string
		want []root
		code fault.Code
		text string
	}{
		"one":        {dirs: []string{"dir"}, want: []root{{"project", "dir"}}},
		"two":        {dirs: []string{"dir", "home"}, want: []root{{"dir", "dir"}, {"home", "home"}}},
		"collision":  {dirs: []string{"dir", "home/dir"}, code: fault.RequestInvalid, text: "has the same"},
		"twice":      {dirs: []string{"dir", "home/../dir"}, code: fault.RequestInvalid, text: "given twice"},
		"reserved":   {dirs: []string{"dir", "file"}, code: fault.RequestInvalid, text: "can't be called file"},
		"file":       {dirs: []string{"plain"}, code: fault.RequestInvalid, text: "it is a file"},
		"named file": {user: "roots: { a: { path: ~/../plain } }", code: fault.ConfigInvalid, text: "policy.yaml:2:10: the root a, "},
		"all gone":   {dirs: []string{"gone", "gone2"}, code: fault.PathMissing, text: "neither this folder nor any other root"},
		"odd name":   {dirs: []string{"dir", "My Dir"}, code: fault.RequestInvalid, text: "My Dir"},
		"none":       {code: fault.RequestInvalid, text: "no folder is given"},
		"missing":    {dirs: []string{"nope"}, code: fault.PathMissing, text: "nope"},
		"dot":        {user: "roots: { a: { path: . } }", dirs: []string{"dir"}, want: []root{{"a", "dir"}}},
		"dot alone":  {user: "roots: { a: { path: . } }", want: []root{{"a", "."}}},
		"dot of two": {user: "roots: { a: { path: . } }", dirs: []string{"dir", "home"}, code: fault.ConfigInvalid, text: "several are"},
		"home":       {user: "roots: { a: { path: ~/x }, b: { path: \"~\" } }", want: []root{{"a", "home/x"}, {"b", "home"}}},
		"relative":   {user: "roots: { a: { path: .. } }", want: []root{{"a", "home/.config"}}},
		"foreign":    {user: "roots: { a: { path: ~/ } }", dirs: []string{"dir"}, code: fault.RequestInvalid, text: "none of them"},
		"same":       {user: "roots: { a: { path: ~/ } }", dirs: []string{"home"}, want: []root{{"a", "home"}}},
		"alias":      {user: "roots: { a: { path: ., alias: b }, b: { path: . } }", code: fault.ConfigInvalid, text: "already that of"},
		"state":      {dirs: []string{"home/.local/state/postern/undo"}, code: fault.RequestInvalid, text: "own state"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.opts.Dirs = tc.dirs
			p.write(filepath.Join(p.work, "plain"), "a file")
			if tc.user != "" {
				p.user("version: 1\n" + tc.user + "\n")
			}
			if tc.want == nil {
				p.refused(tc.code, tc.text)
				return
			}
			var got []root
			for _, r := range p.load().Roots {
				rel, err := filepath.Rel(p.work, r.Path)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, root{r.Name, rel})
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestOneFolderTwoRoots: a folder that two roots name would be judged by the
// rules of one of them only.
func TestOneFolderTwoRoots(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nroots:\n  a: { path: ., access: read }\n  b: { path: ., access: write }\n")
	if _, err := config.Load(p.opts); fault.CodeOf(err) != fault.ConfigInvalid || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "too") {
		t.Errorf("error %v: %v", err, errors.Unwrap(err))
	}
}

// TestProjectPatternsAreBounded: what comes with a folder can't make decisions
// slow; the same patterns of a user's own file are fine.
func TestProjectPatternsAreBounded(t *testing.T) {
	p := newPlace(t)
	policy := "version: 1\ndeny:\n"
	for i := range 200 {
		policy += fmt.Sprintf("  - \"**/%d%s\"\n", i, strings.Repeat("?*a", 60))
	}
	p.user(policy)
	p.load()
	p.user("version: 1\n")
	p.write(filepath.Join(p.dir, ".postern", "policy.yaml"), policy)
	if _, err := config.Load(p.opts); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("error %v", err)
	}
}

func TestRootFieldsAndWarnings(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nroots:\n  a: { path: ., access: read, alias: res, mounts: [m/n], hardlinks: deny }\n  b: { path: ~/gone }\n  all: { path: / }\ndeny: [\"res://x\"]\nexamples:\n  - { fs.read: \"res://x/y\", decision: deny }\n  - { fs.write: \"a://z\", decision: deny }\n")
	c := p.load()
	r := c.Roots[0]
	if !r.ReadOnly || r.Alias != "res" || !cmp.Equal(r.Mounts, []string{"m/n"}) || !r.DenyHardlinks || !c.Roots[1].Missing {
		t.Errorf("%+v", c.Roots)
	}
	if len(c.Warnings) != 4 || !strings.Contains(c.Warnings[0], "gone") || !strings.Contains(c.Warnings[1], "whole file system") ||
		!strings.Contains(c.Warnings[2], "root a lies within root all") || !strings.Contains(c.Warnings[3], "root b lies within root all") {
		t.Errorf("warnings %q", c.Warnings)
	}
	rel := strings.TrimPrefix(p.home, "/")
	for name, entry := range map[string]string{
		rel + "/.bashrc": "shell", "home/x/.profile": "shell", "root/.zshrc": "shell", "srv/.bashrc": "",
		rel + "/.local/state/postern/keys/log": "postern-state", strings.TrimPrefix(c.Files[0], "/"): "postern",
	} {
		got := c.Policy.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File("all", name)})
		if got.Reason.Builtin != entry {
			t.Errorf("%s: %q, want %q", name, got.Reason.Builtin, entry)
		}
	}
}

func TestFilesThatOthersCanWrite(t *testing.T) {
	for name, spoil := range map[string]func(*place, string) error{
		"others can write the file": func(_ *place, f string) error { return os.Chmod(f, 0o646) },
		"anybody can replace":       func(_ *place, f string) error { return os.Chmod(filepath.Dir(f), 0o777) },
		"not a regular file":        func(_ *place, f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o755)) },
	} {
		p := newPlace(t)
		if err := spoil(p, p.user("version: 1\n")); err != nil {
			t.Fatal(err)
		}
		p.refused(fault.ConfigInvalid, name)
	}
	p := newPlace(t)
	link := p.project("version: 1\n")
	if err := errors.Join(os.Rename(link, link+"x"), os.Symlink(link+"x", link)); err != nil {
		t.Fatal(err)
	}
	p.refused(fault.ConfigInvalid, "through a link")
	if err := os.Chmod(p.user("version: 1\n"), 0o664&^fs.FileMode(0o020)); err != nil {
		t.Fatal(err)
	}
}

func TestExamplesAreChecked(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nexamples:\n  - { fs.read: \"project://a\", decision: allow }\n  - { fs.delete: \"project://a\", decision: allow }\n")
	p.refused(fault.ConfigInvalid, "policy.yaml:4:5: the example says allow, the policy decides ask: fs.delete: ask")
	p.user("version: 1\nagents: { x: { fs.delete: allow } }\nexamples:\n  - { fs.delete: \"project://a\", agent: x, decision: allow }\n  - { tool.call: a/b, class: runtime, decision: ask }\n")
	p.project("version: 1\ndeny: [a]\nexamples: [{ fs.delete: \"project://a\", agent: x, decision: deny }]\n")
	p.load() // the project's deny does not break the user's example
}

func TestProblemsOfAllFilesAtOnce(t *testing.T) {
	p := newPlace(t)
	p.system("version: 2\n")
	p.user("version: 1\ndeny: [1, a]\nfoo: bar\n")
	_, err := config.Load(p.opts)
	var invalid *config.Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != 3 {
		t.Fatalf("%v", err)
	}
	for _, pr := range invalid.Problems {
		if pr.Pos.File == "" || pr.Pos.Line == 0 || pr.Pos.Column == 0 || pr.Line == "" {
			t.Errorf("no place: %+v", pr)
		}
	}
}

// TestVectors are the cases of kind policy, as far as the policy decides them.
func TestVectors(t *testing.T) {
	src, err := os.ReadFile("../../vectors/fs/policy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	shipped := p.load().Policy
	builtin := func(t *testing.T, a core.Action, name, entry string) {
		got := shipped.Evaluate(file(a, name))
		if got.Reason.Builtin != entry || (got.Decision == core.Deny) != (entry != "") {
			t.Errorf("%v %s: %v by %q, want %q", a, name, got.Decision, got.Reason.Builtin, entry)
		}
	}
	cases := map[string]func(*testing.T){
		"fs-agent-edits-own-limits": func(t *testing.T) {
			builtin(t, core.FSWrite, ".postern/policy.yaml", "postern")
			builtin(t, core.FSCreate, ".postern/policy.yaml", "postern")
			builtin(t, core.FSWrite, "policy.yaml", "") // the control
		},
		"fs-dot-dirs-leak": func(t *testing.T) {
			for _, a := range []core.Action{core.FSRead, core.FSList, core.FSRename} {
				builtin(t, a, ".env", "dotenv")
			}
			builtin(t, core.FSRead, ".git/config", "")
			builtin(t, core.FSList, ".git/config", "")
			builtin(t, core.FSWrite, ".git/config", "git")
			builtin(t, core.FSRename, ".git/config", "git")
		},
		"fs-blocklist-absolute-path": func(t *testing.T) {
			p, err := config.Parse("P", []byte("version: 1\nrules: { proc.exec: { \"fw\": deny, else: allow } }\n"), false)
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"/t/sbin/fw": `deny "fw" (P:2:23): the general rule`, "/t/sbin/ok": "proc.exec else: allow (P:2:41): the general rule"} {
				got := p.Evaluate(core.Request{Action: core.ProcExec, Resource: core.File("", name)})
				if got.Reason.String() != want {
					t.Errorf("%s: %v", name, got.Reason)
				}
			}
		},
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(src)), "\n") {
		var c struct{ ID string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		run, ok := cases[c.ID]
		if !ok {
			t.Errorf("no test for %s", c.ID)
			continue
		}
		t.Run(c.ID, run)
	}
}

func TestEnvironment(t *testing.T) {
	p := newPlace(t)
	p.opts.Env = nil
	if c := p.load(); len(c.Files) != 0 {
		t.Errorf("files %v", c.Files)
	}
	p.opts.Env = func(key string) string { return map[string]string{"XDG_CONFIG_HOME": p.work}[key] }
	path := p.write(filepath.Join(p.work, "postern/policy.yaml"), "version: 1\n")
	if c := p.load(); !cmp.Equal(c.Files, []string{path}) {
		t.Errorf("files %v", c.Files)
	}
}

// TestSnippetNamesTheFolders: what the error offers for pasting is a policy
// under which the same command line works.
func TestSnippetNamesTheFolders(t *testing.T) {
	p := newPlace(t)
	p.opts.Dirs = []string{"Notes", "papers", "Mein Ordner \u00e4", "x/papers", "file", "\"q\""}
	for _, dir := range p.opts.Dirs {
		if err := os.MkdirAll(filepath.Join(p.work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := config.Load(p.opts)
	_, snippet, ok := strings.Cut(fault.As(err).Hint, "): ")
	if !ok {
		t.Fatalf("%v: %q", err, fault.As(err).Hint)
	}
	p.user("version: 1\n" + snippet + "\n")
	var names []string
	for _, r := range p.load().Roots {
		names = append(names, r.Name)
	}
	if d := cmp.Diff([]string{"notes", "papers", "mein-ordner", "papers-2", "folder-file", "q"}, names); d != "" {
		t.Error(d)
	}
}

// TestExamplesAreAboutSomething: a wrong example can't hold because its
// resource means nothing.
func TestExamplesAreAboutSomething(t *testing.T) {
	tests := map[string]struct{ user, example, want string }{
		"no root":        {example: `fs.write: "src/a.txt"`, want: "policy.yaml:3:24: the name has no root: write project://src/a.txt"},
		"absolute":       {example: `fs.write: "/src/a.txt"`, want: "write project://src/a.txt"},
		"unknown root":   {example: `fs.write: "nope://a"`, want: "no root is called nope: write project://a"},
		"other name":     {user: "roots: { notes: { path: . } }", example: `fs.write: "project://a"`, want: "no root is called project: write notes://a"},
		"not canonical":  {example: `fs.write: "project://a/../b/"`, want: "not canonical: write project://b"},
		"tool":           {example: `tool.call: "github"`, want: "server/tool"},
		"program":        {example: `proc.exec: "make"`, want: "absolute path"},
		"host":           {example: `net.fetch: ""`, want: "a host"},
		"the negative 1": {example: `fs.write: "project://.env"`},
		"the negative 2": {user: "roots: { notes: { path: . } }", example: `fs.write: "notes://.env"`},
		"the negative 3": {user: "roots: { notes: { path: ., alias: res } }", example: `fs.write: "res://.env"`},
		"the negative 4": {example: `fs.write: "project://"`, want: "the policy decides allow"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.user("version: 1\n" + tc.user + "\nexamples: [{ " + tc.example + ", decision: deny }]\n")
			if tc.want == "" {
				p.load()
				return
			}
			p.refused(fault.ConfigInvalid, tc.want)
		})
	}
}

// TestProjectStandsForEachFolder: one policy serves any folders, and a
// project's own any name of its root; a pattern for project:// that would never
// match is refused.
func TestProjectStandsForEachFolder(t *testing.T) {
	p := newPlace(t)
	p.opts.Dirs = []string{"dir", "home"}
	p.user("version: 1\nexamples: [{ fs.delete: \"project://a\", decision: ask }]\n")
	p.load()
	p.project("version: 1\ndeny: [gen]\nexamples: [{ fs.read: \"project://gen/a\", decision: deny }]\n")
	p.load()
	p.user("version: 1\ndeny: [\"home://a\"]\nexamples: [{ fs.delete: \"project://a\", decision: ask }]\n")
	p.refused(fault.ConfigInvalid, "the example says ask, the policy decides deny")
	p.user("version: 1\ndeny: [\"project://a\"]\n")
	p.refused(fault.ConfigInvalid, "no root is called project; leave the scheme out to mean every root, or write one of: dir://, home://")
	p.user("version: 1\nroots: { own: { path: ~/../dir } }\n")
	p.opts.Dirs = nil
	p.load() // the project's example is about own
}

func TestNoNegation(t *testing.T) {
	for name, text := range map[string]string{
		"deny": `deny: ["!a"]`, "allow": `allow: ["**", "!a"]`, "entry": `deny: [{ match: "!a" }]`, "root": `deny: ["project://!a"]`,
		"rule": `rules: { fs.write: { "!a": deny } }`, "agent": `agents: { x: { fs.write: { "!a/**": deny } } }`,
		"program": `rules: { proc.exec: { "!git": deny } }`, "tool": `rules: { tool.call: { "!a/b": deny } }`, "host": `rules: { net.fetch: { "!a.b": deny } }`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.user("version: 1\n" + text + "\n")
			p.refused(fault.ConfigInvalid, `a pattern has no negation`)
			p.user("version: 1\n" + strings.ReplaceAll(text, "!", `\\!`) + "\n")
			p.load()
		})
	}
	p := newPlace(t)
	p.user(`{ version: 1, deny: ["\\!a"] }`)
	if got := p.load().Policy.Evaluate(file(core.FSRead, "!a")); got.Decision != core.Deny {
		t.Errorf("%v", got)
	}
}

// TestStatedInVain: what a person sets and nothing heeds is said, once a file.
func TestStatedInVain(t *testing.T) {
	p := newPlace(t)
	path := p.user("version: 1\nundo: { keep: 1d }\nask: { wait: 1s }\negress: { ports: [443] }\naudit: { reads: deny, keep: 1d, segment: 1MiB, paths: hashed }\n" +
		"agents: { b: { net.fetch: deny }, a: { fs.read: allow } }\nrules: { fs.write: ask, proc.exec: deny, net.fetch: deny }\n")
	c := p.load()
	want := path + ": set but without effect in this release: egress, net.fetch, proc.exec"
	if d := cmp.Diff([]string{want}, c.Warnings); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a", "b"}, c.Agents); d != "" {
		t.Error(d)
	}
	p.user("version: 1\naudit: { reads: deny, paths: plain }\nrules: { fs.write: ask }\nlimits: { call: 1s }\n")
	p.project("version: 1\nrules: { proc.exec: deny }\n") // nobody of ours wrote it
	if c := p.load(); len(c.Warnings)+len(c.Agents) != 0 {
		t.Errorf("%q %q", c.Warnings, c.Agents)
	}
}

func TestBecauseCounts(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nfoo: 1\n")
	because := func(want, next string) {
		t.Helper()
		_, err := config.Load(p.opts)
		if f := fault.As(err); !strings.HasPrefix(f.Because(), want) || f.Next() != next {
			t.Errorf("%q, %q", f.Because(), f.Next())
		}
	}
	const correct = "correct the file; postern status reads it again"
	because(`line 2: unknown key "foo"`, correct)
	p.user("version: 1\nclaude-code: { fs.delete: { a: allow } }\n")
	because(`line 2: unknown key "claude-code" in the policy; an agent's name belongs under agents:`, correct)
	p.user("version: 1\nrules:\n  codex: { fs.delete: deny }\n")
	because(`line 3: unknown key "codex" in rules; an agent's name belongs under agents:`, correct)
	p.user("version: 1\nrequirements: { x: deny }\n")
	because(`line 2: unknown key "requirements" in the policy; known: `, correct)
	p.user("version: 1\nfoo: 1\n")
	p.system("version: 2\nbar: 1\n")
	because("3 problems in 2 files", correct)
	p.system("version: 1\ndeny: [" + strings.Repeat("1, ", 150) + "]\n")
	because("151 problems in 2 files, the first 100 shown", correct)
	for _, many := range []string{"deny:\n" + strings.Repeat(" - 1\n", 20_000), "deny: [" + strings.Repeat("1,", 20_000) + "1]\n"} {
		p.system("version: 1\n" + many) // nobody waits for the rest
		because("at least 301 problems in 2 files, the first 100 shown", correct)
	}
	p.system("version: 1\n")
	p.opts.PolicyFile = "nosuch.yaml"
	because("there is no such file", "create it, or leave --policy out")
}

// TestAuditKeys: what is said of the log is what it is kept by.
func TestAuditKeys(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]config.Audit{
		"{}":               {PlainPaths: true, SegmentSize: 64 << 20, Keep: 90 * day},
		"{ paths: plain }": {PlainPaths: true, SegmentSize: 64 << 20, Keep: 90 * day},
		"{ reads: deny, paths: hashed, segment: 64KiB, keep: 1d }": {DenyReads: true, SegmentSize: 64 << 10, Keep: day},
		"{ keep: forever, segment: 1GiB }":                         {PlainPaths: true, SegmentSize: 1 << 30},
	} {
		p := newPlace(t)
		p.user("version: 1\naudit: " + text + "\n")
		c := p.load()
		if d := cmp.Diff(want, c.Settings.Audit); d != "" || len(c.Warnings) > 0 {
			t.Errorf("%s: %s %q", text, d, c.Warnings)
		}
	}
}
