// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/config"
)

func (p *place) link(name, to string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		p.t.Fatal(err)
	}
}

// denials are the entries by which what is asked is denied: "write NAME" or "link
// NAME", one that gets the name.
func denials(d interface {
	Evaluate(core.Request) core.Verdict
}, want map[string]string,
) (wrong []string) {
	for what, entry := range want {
		do, name, _ := strings.Cut(what, " ")
		q := file(map[string]core.Action{"write": core.FSWrite, "link": core.FSCreate, "move": core.FSRename}[do], name)
		q.Link = do == "link"
		if v := d.Evaluate(q); v.Reason.Builtin != entry || (entry == "") != (v.Decision == core.Allow) {
			wrong = append(wrong, fmt.Sprintf("%s: %v by %q, want %q", what, v.Decision, v.Reason.Builtin, entry))
		}
	}
	return wrong
}

// TestLinksAreKnown: what links with names of the lists lead to is denied as they are,
// however they lead there; a link with another name says nothing.
func TestLinksAreKnown(t *testing.T) {
	p := newPlace(t)
	p.link(".vscode", "dot")
	p.link(".claude", "via/claude")
	p.link("via", "real")
	p.link(".git/hooks", "../githooks")
	p.link(".config/zed", p.dir+"/z")
	p.link(".github/skills/x/", "../../skills/x")
	p.link(".husky", "gone/there")
	p.link(".idea", "..")                  // out of the root
	p.link(".zed", ".zed")                 // nowhere
	p.link("deep/a/b/.vscode", "../../dd") // further down
	p.link("latest", "v2")
	p.write(filepath.Join(p.dir, "real/claude/hooks/x"), "")
	p.link("real/claude/agents", "../../agents")
	if wrong := denials(p.load().Policy, map[string]string{
		"write dot/tasks.json": "editors", "write dot/extensions.json": "", "write real/claude/settings.json": "agents", "write via/claude/settings.json": "agents",
		"write real/x": "", "write githooks/pre-commit": "git", "write z/tasks.json": "editors", "write skills/x/SKILL.md": "agents", "write skills/y": "",
		"write gone/there/x": "git", "write gone/x": "", "write agents/x.md": "agents", "write dd/tasks.json": "", "write v2/tasks.json": "", "write idea": "",
		"link dot": "editors", "link via": "agents", "link gone": "git", "link githooks": "git", "link v2": "", "link dd": "",
		"move .vscode": "editors", "move latest": "",
	}); wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
	}
	p.user("version: 1\nallow_sensitive: [editors]\n")
	if wrong := denials(p.load().Policy, map[string]string{"write dot/tasks.json": "", "link dot": "", "write githooks/x": "git"}); wrong != nil {
		t.Errorf("lifted: %s", strings.Join(wrong, "\n"))
	}
}

// TestLinkToWhatHoldsIt: a link to the root, or to a folder that it lies in, says
// nothing about all that is there, and a person is told. Its own name counts.
func TestLinkToWhatHoldsIt(t *testing.T) {
	for link, tc := range map[string]struct{ to, entry, drawn string }{
		".agents":               {".", "agents", "the link .agents leads"},
		".claude/skills/self":   {"../..", "agents", "the link .claude/skills/self leads"},
		".vscode/root":          {"../a/..", "editors", "the link .vscode/root leads"},
		".config/proj":          {"..", "editors", "the link .config/proj leads"}, // .config/*/User
		".zed":                  {"via", "editors", "the link .zed leads"},        // and on to the top
		".claude/skills/a\nb c": {"..", "agents", `the link ".claude/skills/a\u000ab c" leads`},
		".vscode":               {"dot", "editors", ""},
		".idea":                 {"/", "editors", "the link .idea leads"}, // above the root
		".cursor/rules/team":    {"../../docs", "agents", ""},
	} {
		p := newPlace(t)
		p.link("via", ".")
		p.write(filepath.Join(p.dir, "a/x"), "")
		p.link(link, tc.to)
		c := p.load()
		name := filepath.ToSlash(filepath.Clean(link))
		if wrong := denials(c.Policy, map[string]string{
			"write main.go": "", "write a/settings.json": "", "write src/a/b.go": "", "write .claude/settings.json": "agents",
			"write dot/tasks.json": map[bool]string{true: "editors"}[tc.to == "dot"], "move " + name: tc.entry,
		}); wrong != nil {
			t.Errorf("%s: %s", link, strings.Join(wrong, "\n"))
		}
		if len(c.Warnings) != map[bool]int{true: 1}[tc.drawn != ""] || !strings.Contains(strings.Join(c.Warnings, ""), tc.drawn) {
			t.Errorf("%s: %q, want %q", link, c.Warnings, tc.drawn)
		}
	}
}

// TestLinkToAnotherRoot: one that the link isn't in is judged as a whole.
func TestLinkToAnotherRoot(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(p.work, "other")
	p.write(filepath.Join(other, "x"), "")
	p.opts.Dirs = append(p.opts.Dirs, other)
	p.link(".vscode", other)
	p.link(".agents", ".")
	p.link(".claude/skills/self", "../..")
	c := p.load()
	q := core.Request{Action: core.FSWrite, Resource: core.File(c.Roots[1].Name, "tasks.json")}
	if v := c.Policy.Evaluate(q); v.Reason.Builtin != "editors" {
		t.Errorf("%+v", v)
	}
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "so its name protects nothing there; 1 more do") {
		t.Errorf("%q", c.Warnings)
	}
}

// TestLinksToThePolicy: each link on the way to a policy file or the state directory
// stays, and no other one gets into it, be there a file or not.
func TestLinksToThePolicy(t *testing.T) {
	for _, file := range []bool{true, false} {
		p := newPlace(t)
		p.dir = p.home
		p.opts.Dirs = []string{p.home}
		env := map[string]string{"HOME": p.home, "XDG_CONFIG_HOME": filepath.Join(p.home, "a/x/y/z/b/cfg")}
		p.opts.Env = func(key string) string { return env[key] }
		p.opts.StateDir = filepath.Join(p.home, "st/postern")
		p.link("a/x/y/z/b", "../../../../q/../c")
		p.link("c", "d/../e")
		p.write(filepath.Join(p.home, "d/x"), "")
		p.write(filepath.Join(p.home, "q/x"), "")
		p.link("st", "disk/state")
		p.write(filepath.Join(p.home, "e/x"), "")
		if file {
			p.write(filepath.Join(p.home, "e/cfg/postern/policy.yaml"), "version: 1\n")
		}
		if wrong := denials(p.load().Policy, map[string]string{
			"move a/x/y/z/b": "postern", "move c": "postern", "move st": "postern-state", "move a": "", "move e": "", "move x": "",
			"link a": "postern", "link a/x/y/z/b/cfg": "postern", "link a/x": "postern", "link c": "postern", "link e": "postern", "link e/cfg": "postern", "link e/cfg/postern": "postern",
			"link disk": "postern-state", "link a/v": "", "link x": "",
			"move d": "postern", "move q": "postern", "link q": "postern", "link d": "postern", "write d/x": "", // left by a ..
			"write e/cfg/postern/policy.yaml": "postern", "write c/cfg/postern/policy.yaml": "postern", "write e/cfg/x": "", "write a/v": "", "write disk/state/postern/x": "postern-state",
		}); wrong != nil {
			t.Errorf("a file: %v\n%s", file, strings.Join(wrong, "\n"))
		}
	}
}

// TestLinksAreBounded: beyond what is looked at a person is told.
func TestLinksAreBounded(t *testing.T) {
	p := newPlace(t)
	p.link(".vscode", "dot")
	for i := range 600 {
		p.link(fmt.Sprintf(".claude/skills/s%d", i), "../../skills")
	}
	c := p.load()
	if wrong := denials(c.Policy, map[string]string{"write dot/tasks.json": "editors"}); wrong != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "not every link") {
		t.Errorf("%v, warnings %q", wrong, c.Warnings)
	}
}

// TestLiveLinks: a link that somebody makes while a server runs counts as soon as a
// change of a policy file does.
func TestLiveLinks(t *testing.T) {
	p := newPlace(t)
	c := &clock{now: time.Now()}
	live, err := config.OpenLive(p.opts, c.read, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	first := live.Version()
	p.link("latest", "v2")
	c.pass(time.Second)
	if wrong := denials(live, map[string]string{"write dot/tasks.json": ""}); wrong != nil || live.Version() != first {
		t.Errorf("before: %v", wrong)
	}
	p.link(".vscode", "dot")
	c.pass(time.Second)
	if wrong := denials(live, map[string]string{"write dot/tasks.json": "editors", "link dot": "editors"}); wrong != nil || live.Version() != first {
		t.Errorf("after: %v", wrong)
	}
}

// TestLooksAreCheap: a name is judged once, not at each look, and what is followed of
// links that lead nowhere is bounded too.
func TestLooksAreCheap(t *testing.T) {
	p := newPlace(t)
	for i := range 30 {
		p.write(filepath.Join(p.dir, fmt.Sprintf("d%d/f", i)), "")
	}
	p.link("d0/l", "../d1")
	look := config.Looks(p.dir)
	for i, step := range []struct {
		do   func()
		want int
	}{
		{func() {}, 31}, // the files are neither links nor folders
		{func() {}, 0},
		{func() { p.link("d0/m", "../d2") }, 1},
		{func() { p.write(filepath.Join(p.dir, "d31/e/f"), "") }, 2},
		{func() { p.link("d31/e/m", "f") }, 1},
		{func() {}, 0},
	} {
		step.do()
		if got, warnings := look(); got != step.want || warnings != nil {
			t.Errorf("look %d: %d names judged, want %d; %q", i, got, step.want, warnings)
		}
	}
	for i := range 1001 {
		p.link(fmt.Sprintf("d3/l%d", i), "/nowhere")
	}
	if _, warnings := look(); len(warnings) != 1 || !strings.Contains(warnings[0], "not every link") {
		t.Errorf("%q", warnings)
	}
}

// TestNamesAreBounded: links that lead a long way cost no more together than many do.
func TestNamesAreBounded(t *testing.T) {
	for n, warned := range map[int]bool{10: false, 100: true} {
		p := newPlace(t)
		p.write(filepath.Join(p.dir, ".claude/d/f"), "")
		for i := range n {
			p.link(fmt.Sprintf(".claude/l%d", i), strings.Repeat("d/../", 800)+"../e")
		}
		look := config.Looks(p.dir)
		if _, warnings := look(); (warnings != nil) != warned {
			t.Errorf("%d: %q", n, warnings)
		}
	}
}
