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
	p.link(".idea", "..")                // out of the root
	p.link(".zed", ".zed")               // nowhere
	p.link("deep/a/.vscode", "../../dd") // further down
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

// TestLinkToTheTop: a root that is a client's folder by a link is that folder.
func TestLinkToTheTop(t *testing.T) {
	p := newPlace(t)
	p.link(".claude", ".")
	if wrong := denials(p.load().Policy, map[string]string{"write settings.json": "agents", "write CLAUDE.md": "", "write a/settings.json": "agents"}); wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
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
		p.link("a/x/y/z/b", "../../../../c")
		p.link("c", "d/../e")
		p.write(filepath.Join(p.home, "d/x"), "")
		p.link("st", "disk/state")
		p.write(filepath.Join(p.home, "e/x"), "")
		if file {
			p.write(filepath.Join(p.home, "e/cfg/postern/policy.yaml"), "version: 1\n")
		}
		if wrong := denials(p.load().Policy, map[string]string{
			"move a/x/y/z/b": "postern", "move c": "postern", "move st": "postern-state", "move a": "", "move e": "", "move x": "",
			"link a": "postern", "link a/x/y/z/b/cfg": "postern", "link a/x": "postern", "link c": "postern", "link e": "postern", "link e/cfg": "postern", "link e/cfg/postern": "postern",
			"link disk": "postern-state", "link a/v": "", "link x": "", "link d": "",
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
	for i := range 300 {
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
