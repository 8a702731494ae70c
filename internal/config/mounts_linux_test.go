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

// TestDeadMount: nothing waits for a mount that doesn't answer, and what is beside
// it is known.
func TestDeadMount(t *testing.T) {
	p := newPlace(t)
	p.link(".vscode", "dot")
	live, c := p.live(func(error) {})
	p.dead("a b/away")
	p.link(".idea", "a b/away/idea")
	p.link(".husky", "hooks")
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_, err := config.Load(p.opts)
		if err != nil {
			t.Error(err)
		}
		c.pass(2 * time.Second)
		for name, want := range map[string]core.Decision{"dot/tasks.json": core.Deny, "hooks/x": core.Deny, "c": core.Allow} {
			if got := live.Evaluate(file(core.FSWrite, name)).Decision; got != want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it waits for the mount")
	}
}
