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

	"github.com/postern-gate/postern/internal/config"
)

func (p *place) live(report func(error)) (*config.Live, *clock) {
	p.t.Helper()
	c := &clock{now: time.Now()}
	live, err := config.OpenLive(p.opts, c.read, report)
	p.must(err)
	return live, c
}

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestLinksLeadOver: each link on the way of one with a listed name stays, wherever
// it really lies, and each folder that the way leaves by a .. too; no other does.
func TestLinksLeadOver(t *testing.T) {
	p := newPlace(t)
	p.link(".env", "current/env")
	p.link("current", "releases/42")
	p.link(".vscode", "a/../dot")
	p.link(".config", "cfg")
	p.link("cfg/gh", "../gh")
	p.link(".envrc", "up/envrc")
	p.link("up", p.dir+"/b/c/../d")
	p.link("previous", "releases/41")
	p.link(".zed", "gone/../zed")
	for _, f := range []string{"releases/42/env", "a/x", "b/c/x", "gh/hosts.yml", "other/x"} {
		p.write(filepath.Join(p.dir, f), "")
	}
	if wrong := denials(p.load().Policy, map[string]string{
		"move current": "dotenv", "move a": "editors", "move cfg/gh": "editors", "move up": "editors", "move b/c": "editors",
		"link current": "dotenv", "link a": "editors", "link b": "editors", "link cfg": "agents",
		"write a/x": "", "write releases/42/x": "", "write b/c/x": "", "move previous": "", "move other": "", "move releases": "", "move b/d": "", "link other": "",
		"write b/d/envrc": "editors", "write zed/tasks.json": "editors", "link gone": "editors", "write gone/x": "", "write dot/tasks.json": "editors", "write gh/hosts.yml": "logins", "write releases/42/env": "dotenv",
	}); wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// TestLinksAreFoundDeep: the folders above need no listed names. What is installed
// is not gone through.
func TestLinksAreFoundDeep(t *testing.T) {
	p := newPlace(t)
	p.link("app/.vscode", "shared")
	p.link("app/.git/hooks", "../githooks")
	p.link("a/b/.env", "env")
	p.link("node_modules/x/.env", "env")
	p.link("a/b/c/.env", "env")
	if wrong := denials(p.load().Policy, map[string]string{
		"write app/shared/tasks.json": "editors", "write app/githooks/pre-commit": "git", "write a/b/env": "dotenv", "move a/b/.env": "dotenv",
		"write node_modules/x/env": "", "write a/b/c/env": "", "write app/x": "",
	}); wrong != nil {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// TestLinksAreNotForgotten: neither what is made beside a known link nor a cut on
// its way makes it unknown, and where there is too much a person is told; of one
// that is removed nothing is left.
func TestLinksAreNotForgotten(t *testing.T) {
	p := newPlace(t)
	p.link("z/y/.env", "../../conf/env")
	p.link("conf", "store")
	p.link(".vscode", "dot")
	var told []error
	live, c := p.live(func(err error) { told = append(told, err) })
	for i := range 10_001 {
		p.must(os.WriteFile(filepath.Join(p.dir, fmt.Sprint("f", i)), nil, 0o600))
	}
	p.link(".zed", "dot2")
	known := map[string]string{"write store/env": "dotenv", "write dot/tasks.json": "editors", "write dot2/tasks.json": "editors", "write store/x": ""}
	c.pass(time.Second)
	if wrong := denials(live, known); wrong != nil || told != nil {
		t.Errorf("many files: %v, told %v", wrong, told)
	}
	for i := range 10_000 {
		p.must(os.Mkdir(filepath.Join(p.dir, fmt.Sprint("a", i)), 0o700))
	}
	p.must(os.Remove(filepath.Join(p.dir, "conf")))
	c.pass(time.Second)
	if wrong := denials(live, known); wrong != nil {
		t.Errorf("many folders, and the way is cut: %v", wrong)
	}
	if w := config.Warning(""); len(told) != 1 || !errors.As(told[0], &w) || !strings.Contains(w.Error(), "not every link") {
		t.Errorf("told %v", told)
	}
	p.must(os.Remove(filepath.Join(p.dir, ".vscode")))
	c.pass(time.Second)
	known["write dot/tasks.json"] = ""
	if wrong := denials(live, known); wrong != nil || len(told) != 1 {
		t.Errorf("one is gone: %v, told %v", wrong, told)
	}
}

// TestFoldersAreReadAgain: only one that has changed is, and it is at once.
func TestFoldersAreReadAgain(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.dir, "a/b/x"), "")
	live, c := p.live(func(error) {})
	c.pass(time.Hour) // so that what is read is settled
	if wrong := denials(live, map[string]string{"write a/b/env": ""}); wrong != nil {
		t.Error(wrong)
	}
	p.link("a/b/.env", "env")
	c.pass(time.Second)
	if wrong := denials(live, map[string]string{"write a/b/env": "dotenv"}); wrong != nil {
		t.Errorf("a new link: %v", wrong)
	}
	p.must(os.Rename(filepath.Join(p.dir, "a"), filepath.Join(p.dir, "c")))
	c.pass(time.Second)
	if wrong := denials(live, map[string]string{"write c/b/env": "dotenv", "write a/b/env": ""}); wrong != nil {
		t.Errorf("its folder is called otherwise: %v", wrong)
	}
}
