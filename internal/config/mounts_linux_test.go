// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/testenv"
)

// dead mounts a file system that never answers, as that of a server that is away.
func (p *place) dead(rel string) {
	p.t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(p.t, "root, to mount a file system")
	}
	at := filepath.Join(p.dir, rel)
	p.must(os.MkdirAll(at, 0o755))
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("away", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if err != nil {
		testenv.Missing(p.t, "a FUSE mount: "+err.Error())
	}
	p.t.Cleanup(func() {
		_ = unix.Unmount(at, unix.MNT_DETACH)
		_ = unix.Close(fd) // which ends whoever waits
	})
}

// ordinary mounts one that answers.
func (p *place) ordinary(rel string) {
	p.t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(p.t, "root, to mount a file system")
	}
	at := filepath.Join(p.dir, rel)
	p.must(os.MkdirAll(at, 0o755))
	if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
		testenv.Missing(p.t, "a mount: "+err.Error())
	}
	p.t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

// soon fails where it takes long.
func (p *place) soon(do func()) {
	p.t.Helper()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		do()
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		p.t.Fatal("it waits for the mount")
	}
}

// TestDeadMount: nothing waits for a mount that doesn't answer, however a link leads
// there: it stays, is told of, and what is beside it is known.
func TestDeadMount(t *testing.T) {
	for way, make := range map[string]func(p *place) (told string){
		"text":              func(p *place) string { p.link(".idea", "a b/away/idea"); return ".idea" },
		"absolute, outside": func(p *place) string { p.dead("../away"); p.link(".idea", p.work+"/away/x/y"); return ".idea" },
		"two steps":         func(p *place) string { p.link(".idea", "l"); p.link("l", "a b/away/x"); return ".idea" },
		"past a link": func(p *place) string {
			p.link("l", "a b/c")
			p.link(".idea", "l/../away/x")
			p.write(p.dir+"/a b/c/x", "")
			return ".idea"
		},
		"over it": func(p *place) string { p.link(".idea", "a b/away/../x"); return ".idea" },
		"itself":  func(p *place) string { p.link(".idea", "a b/away"); return ".idea" },
		"in a linked folder": func(p *place) string {
			p.link(".claude", "c")
			p.dead("c/skills")
			return ""
		},
		"with a name of the lists": func(p *place) string { p.dead(".claude"); return "" },
	} {
		p := newPlace(t)
		p.link(".vscode", "dot")
		var told []error
		live, c := p.live(func(err error) { told = append(told, err) })
		p.dead("a b/away")
		link := make(p)
		p.link(".husky", "hooks")
		p.soon(func() {
			cfg, err := config.Load(p.opts)
			p.must(err)
			c.pass(2 * time.Second)
			want := map[string]string{"write dot/tasks.json": "editors", "write hooks/x": "git", "write c/x": map[bool]string{true: "agents"}[way == "in a linked folder"]}
			if link != "" {
				want["move "+link] = "editors"
			}
			wrong := denials(live, want)
			text := "the link " + link + " leads to a mount that may not answer"
			if n := len(told); wrong != nil || n != len(cfg.Warnings) || (link == "") != (n == 0) || n > 0 && warned(told, text) != 1 {
				t.Errorf("%s: %v, told %q, at a start %q", way, wrong, told, cfg.Warnings)
			}
		})
	}
}

// TestPolicyOnADeadMount: a project's policy that can't be asked for is not taken for
// absent.
func TestPolicyOnADeadMount(t *testing.T) {
	p := newPlace(t)
	p.project("version: 1\ndeny: [x]\n")
	var told []error
	live, c := p.live(func(err error) { told = append(told, err) })
	looks := 0
	live.OnLook(func(files []string) { // as one that protects them does
		for looks++; len(files) > 0; files = files[1:] {
			_, _ = os.Stat(files[0])
		}
	})
	p.dead(".postern")
	p.soon(func() {
		c.pass(time.Second)
		c.pass(time.Second)
		if live.Evaluate(file(core.FSWrite, "x")).Decision != core.Deny || len(told) != 1 || fault.CodeOf(told[0]) != fault.ConfigInvalid {
			t.Errorf("while it serves: told %q", told)
		}
		if _, err := config.Load(p.opts); fault.CodeOf(err) != fault.ConfigInvalid {
			t.Errorf("at a start: %v", err)
		}
	})
	must(t, unix.Unmount(filepath.Join(p.dir, ".postern"), unix.MNT_DETACH))
	c.pass(time.Second)
	if live.Evaluate(file(core.FSWrite, "x")).Decision != core.Deny || live.Problem() != nil || looks != 1 {
		t.Errorf("when it is gone: %v, looked at %d times", live.Problem(), looks)
	}
}

// TestOrdinaryMounts: ways through file systems that the kernel alone answers for are
// followed, listed or not, and what led there stays known.
func TestOrdinaryMounts(t *testing.T) {
	p := newPlace(t)
	p.ordinary("mnt")
	p.write(filepath.Join(p.dir, "a/b/x"), "")
	p.link("lnk", "a/b")
	p.link(".vscode", "lnk/../mnt/x")
	p.link(".idea", "mnt/x")
	p.link("mnt/x", p.dir+"/conf")
	p.link(".husky", "ca")
	live, c := p.live(func(err error) { t.Error(err) })
	p.ordinary("ca")
	c.pass(time.Second)
	if wrong := denials(live, map[string]string{"write a/mnt/x/tasks.json": "editors", "write conf/x": "editors", "write ca/x": "git", "write mnt/y": "", "move lnk": "editors"}); wrong != nil {
		t.Error(wrong)
	}
}
