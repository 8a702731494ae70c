// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/internal/testenv"
)

// TestDeadMount: a file system beneath a root that never answers is not waited for,
// and said; what is beside it is found. The control: without it nothing is skipped.
func TestDeadMount(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to mount a file system")
	}
	m := newMachine(t)
	m.put(filepath.Join(m.project, "z", ".postern-tmp-0123456789abcdef"), "", 0o600)
	now := time.Now().Add(time.Hour)
	m.o.Now = func() time.Time { return now }
	if found := m.of("litter"); len(found) != 1 || found[0].Status != Warn {
		t.Errorf("%+v", found)
	}
	at := filepath.Join(m.project, "away")
	m.must(os.Mkdir(at, 0o755))
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Mount("away", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if err != nil {
		testenv.Missing(t, "a FUSE mount: "+err.Error())
	}
	t.Cleanup(func() {
		_ = unix.Unmount(at, unix.MNT_DETACH)
		_ = unix.Close(fd) // which ends whoever waits
	})
	found := m.of("litter")
	if len(found) != 2 || found[0].Status != Skipped || !strings.HasSuffix(found[0].Text, "which no call enters: away") || found[1].Status != Warn {
		t.Errorf("%+v", found)
	}
}

// TestForeignFolder: no mode helps against who owns a folder above a file. The
// control is one that is open to others.
func TestForeignFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root, to give a folder away")
	}
	for hint, do := range map[string]func(string) error{
		"or ask user 12345 for ": func(dir string) error { return os.Chown(dir, 12345, -1) },
		"chmod go-w ":            func(dir string) error { return os.Chmod(dir, 0o777) },
	} {
		m := newMachine(t)
		m.policy("version: 1\n")
		m.must(do(filepath.Join(m.home, ".config")))
		if found := m.of("policy"); len(found) != 1 || found[0].Status != Warn || !strings.Contains(found[0].Hint, hint) {
			t.Errorf("%q: %+v", hint, found)
		}
	}
}
