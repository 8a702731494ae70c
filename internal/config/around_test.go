// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/links"
)

// warned counts the warnings that have the text.
func warned(told []error, text string) (n int) {
	for _, err := range told {
		if w := config.Warning(""); errors.As(err, &w) && strings.Contains(w.Error(), text) {
			n++
		}
	}
	return n
}

// TestFolderIsAnother: whatever lies now where a root was opened, its project's policy
// and its links hold as they were, and a person is told once; when it is there again
// they are read again.
func TestFolderIsAnother(t *testing.T) {
	for how, move := range map[string]func(p *place, away string) error{
		"renamed": func(p *place, away string) error { return os.Rename(p.dir, away) },
		"replaced": func(p *place, away string) error {
			return errors.Join(os.Rename(p.dir, away), os.Mkdir(p.dir, 0o755))
		},
		"its link leads elsewhere": func(p *place, away string) error {
			at := filepath.Join(p.work, "at")
			return errors.Join(os.Remove(at), os.Mkdir(away+"2", 0o755), os.Symlink(away+"2", at))
		},
	} {
		p := newPlace(t)
		root := p.dir
		if strings.HasPrefix(how, "its link") {
			root = filepath.Join(p.work, "at")
			p.must(os.Symlink(p.dir, root))
			p.opts.Dirs = []string{root}
		}
		p.project("version: 1\ndeny: [\"hid/**\"]\n")
		p.link(".vscode", "dot")
		var told []error
		live, c := p.live(func(err error) { told = append(told, err) })
		away := filepath.Join(p.work, "away")
		p.must(move(p, away))
		holds := func(when string, want map[string]core.Decision) {
			t.Helper()
			for range 2 {
				c.pass(time.Second)
				for name, d := range want {
					if got := live.Evaluate(file(core.FSWrite, name)).Decision; got != d {
						t.Errorf("%s, %s: %s: %v", how, when, name, got)
					}
				}
			}
		}
		want := map[string]core.Decision{"hid/x": core.Deny, "dot/tasks.json": core.Deny, "x": core.Allow}
		holds("moved", want)
		p.user("version: 1\ndeny: [x]\n")
		want["x"] = core.Deny
		holds("with another policy", want)
		if len(told) != 1 || warned(told, "isn't at "+root) != 1 {
			t.Errorf("%s: told %q", how, told)
		}
		if how != "renamed" {
			continue
		}
		p.must(os.Rename(away, p.dir))
		p.project("version: 1\n")
		p.must(os.Remove(filepath.Join(p.dir, ".vscode")))
		holds("there again", map[string]core.Decision{"hid/x": core.Allow, "dot/tasks.json": core.Allow, "x": core.Deny})
	}
}

// TestLinksBesideAnInvalidPolicy: a link that comes while a policy file is invalid
// counts, and so does what else is held by now.
func TestLinksBesideAnInvalidPolicy(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nrules: { fs.write: allow }\n")
	var now config.Entrusted
	p.opts.Entrusted = func(*links.Look) config.Entrusted { return now }
	var told []error
	live, c := p.live(func(err error) { told = append(told, err) })
	p.user("version: 1\nrules: { fs.write: maybe }\n")
	c.pass(time.Second)
	known := map[string]string{"write dot/tasks.json": "", "write cfg/x": "", "move up": "", "write x": ""}
	if wrong := denials(live, known); wrong != nil || len(told) != 1 {
		t.Errorf("before: %v, told %q", wrong, told)
	}
	p.link(".vscode", "dot")
	p.link(".claude/skills", "../..")
	now = config.Entrusted{Places: map[string][]string{"agents": {filepath.Join(p.dir, "cfg")}}, Over: map[string][]string{"shell": {filepath.Join(p.dir, "up"), "/elsewhere"}}}
	known = map[string]string{"write dot/tasks.json": "editors", "write cfg/x": "agents", "move up": "shell", "link up": "shell", "write up/x": "", "write x": "", "move x": ""}
	for range 2 {
		c.pass(time.Second)
		if wrong := denials(live, known); wrong != nil || len(told) != 2 || warned(told, ".claude/skills") != 1 {
			t.Errorf("while it is invalid: %v, told %q", wrong, told)
		}
	}
	if fault.CodeOf(live.Problem()) != fault.ConfigInvalid {
		t.Errorf("problem %v", live.Problem())
	}
	p.user("version: 1\nallow_sensitive: [shell]\n")
	known["move up"], known["link up"] = "", ""
	c.pass(time.Second)
	if wrong := denials(live, known); wrong != nil || live.Problem() != nil {
		t.Errorf("after, with one lifted: %v, %v", wrong, live.Problem())
	}
}

// TestLinkAboveARoot: what a link leads to above another root gives that root a name;
// one to what is above its own is told.
func TestLinkAboveARoot(t *testing.T) {
	p := newPlace(t)
	other := filepath.Join(p.work, "o/p/bb")
	p.write(filepath.Join(other, "x"), "")
	p.opts.Dirs = append(p.opts.Dirs, other)
	p.link(".claude/plugins", p.work+"/o")
	live, c := p.live(func(error) {})
	q := core.Request{Action: core.FSWrite, Resource: core.File("bb", "hooks.json")}
	for range 2 {
		v := live.Evaluate(q)
		if v.Reason.Builtin != "agents" || !strings.Contains(v.Reason.Why, `".claude/plugins/p/bb"`) {
			t.Errorf("%+v", v)
		}
		p.must(os.Remove(filepath.Join(p.dir, ".claude/plugins")))
		p.link(".claude/plugins", p.work+"/elsewhere") // where it led stays known
		c.pass(time.Second)
	}
	p.must(os.Remove(filepath.Join(p.dir, ".claude/plugins")))
	p.link(".claude/other", "../..") // both roots lie there
	c.pass(time.Second)
	for _, r := range []core.Resource{core.File("bb", "hooks.json"), core.File("dir", "x")} {
		if v := live.Evaluate(core.Request{Action: core.FSWrite, Resource: r}); v.Decision != core.Allow {
			t.Errorf("after it is removed: %v: %+v", r, v)
		}
	}
	if w := live.Current().Warnings; len(w) != 1 || !strings.Contains(w[0], "the link .claude/other leads to a folder that it lies in") {
		t.Errorf("%q", w)
	}
}

// TestDeepWaysAreBounded: links that lead a long way down cost no more together than
// many do, and what was known stays so, however long its way is made.
func TestDeepWaysAreBounded(t *testing.T) {
	p := newPlace(t)
	deep := strings.Repeat("a/", 900)
	p.write(filepath.Join(p.dir, deep, "x"), "")
	p.link("way", "b")
	for i := range 100 {
		p.link(fmt.Sprintf(".idea/l%02d", i), fmt.Sprintf("../way/z%d", i))
	}
	var told []error
	live, c := p.live(func(err error) { told = append(told, err) })
	p.must(os.Remove(filepath.Join(p.dir, "way")))
	p.link("way", deep)
	c.pass(time.Second)
	if wrong := denials(live, map[string]string{"write b/z0": "editors", "write b/z99": "editors", "write b/x": ""}); wrong != nil || len(told) != 1 || warned(told, "the first is .idea/l") != 1 {
		t.Errorf("%v, told %q", wrong, told)
	}
}

// TestWhatStaysIsBounded: beyond what each decision compares with a person is told.
func TestWhatStaysIsBounded(t *testing.T) {
	for n, bound := range map[int]int{512: 512, 600: 512} {
		p := newPlace(t)
		p.opts.Entrusted = func(*links.Look) config.Entrusted {
			var over []string
			for i := range n {
				over = append(over, filepath.Join(p.dir, fmt.Sprintf("d%03d", i)))
			}
			return config.Entrusted{Over: map[string][]string{"shell": over}}
		}
		c := p.load()
		if wrong := denials(c.Policy, map[string]string{"move d000": "shell", fmt.Sprintf("move d%03d", bound-1): "shell", fmt.Sprintf("move d%03d", bound): ""}); wrong != nil || len(c.Warnings) != min(1, n-bound) {
			t.Errorf("%d: %v, warned %q", n, wrong, c.Warnings)
		}
	}
}
