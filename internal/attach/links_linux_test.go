// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/links"
	"github.com/postern-gate/postern/internal/testenv"
)

// dead mounts a file system that never answers.
func (d dotfiles) dead(name string) {
	d.t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(d.t, "root, to mount a file system")
	}
	at := d.at(name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		d.t.Fatal(err)
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("away", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if err != nil {
		testenv.Missing(d.t, "a FUSE mount: "+err.Error())
	}
	d.t.Cleanup(func() {
		_ = unix.Unmount(at, unix.MNT_DETACH)
		_ = unix.Close(fd) // which ends whoever waits
	})
}

// variable says that it leads there.
func (d *dotfiles) variable(name, to string) string {
	d.w.Getenv = func(asked string) string { return map[string]string{name: d.at(to)}[asked] }
	return d.at(to)
}

// TestDeadMount: nothing waits for a mount that doesn't answer, whatever leads there,
// and that it does is told once.
func TestDeadMount(t *testing.T) {
	for way, leads := range map[string]func(d *dotfiles) string{
		"a link":             func(d *dotfiles) string { d.link(d.home(".vim"), d.at("away/x/y")); return d.home(".vim") },
		"a link in a folder": func(d *dotfiles) string { d.link(d.home(".codex/x"), d.at("away/x")); return d.home(".codex/x") },
		"an editor of many": func(d *dotfiles) string {
			d.link(d.home(".config/Code"), d.at("away"))
			return d.home(".config/Code/User")
		},
		"a variable":              func(d *dotfiles) string { return d.variable("CLAUDE_CONFIG_DIR", "away/c") },
		"the folder of settings":  func(d *dotfiles) string { return d.variable("XDG_CONFIG_HOME", "away") },
		"a folder in one of ours": func(d *dotfiles) string { d.link(d.home(".codex"), d.at("over")); return "" },
	} {
		d := newDotfiles(t)
		d.link(d.home(".bashrc"), d.at("bashrc"))
		d.dead("away")
		d.dead("over/away")
		told := leads(&d)
		done := make(chan Entrusted, 1)
		go func() { done <- Entrust(links.NewLook(time.Hour, d.w.Home), d.w, d.state) }()
		select {
		case e := <-done:
			if !slices.Contains(e.Places["shell"], d.at("bashrc")) || told != "" && !slices.Equal(e.Away, []string{filepath.Clean(told)}) || told == "" && len(e.Beyond) != 1 {
				t.Errorf("%s: told %q and %q, want %q", way, e.Away, e.Beyond, told)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it waits", way)
		}
	}
}
