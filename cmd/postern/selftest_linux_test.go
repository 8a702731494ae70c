// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/testenv"
)

// TestSelftestOrdinaryUser: it needs no right, no HOME and no state directory.
func TestSelftestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		testenv.Missing(t, "root, to become another user")
	}
	box, err := os.MkdirTemp("", "selftest") //nolint:usetesting // others can enter it, unlike that of a test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(box) })
	program, dir := filepath.Join(box, "postern"), filepath.Join(box, "dir")
	if err := errors.Join(copyProgram(program), os.Chmod(box, 0o755), os.Mkdir(dir, 0o755), os.Chown(dir, testenv.Nobody, testenv.Nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "selftest", dir)
	cmd.Dir, cmd.Env = "/", []string{asPostern + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testenv.Nobody, Gid: testenv.Nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "mechanisms hold") {
		t.Errorf("%v: %s", err, out)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSelftestInterrupted: ctrl-c ends it, and nothing is left behind.
func TestSelftestInterrupted(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "selftest", dir)
	cmd.Env = []string{asPostern + "=1"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // until it has begun
		if made, _ := os.ReadDir(dir); len(made) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // how it ended is asked of ProcessState
	if code := cmd.ProcessState.ExitCode(); code != fault.ExitInterrupted {
		t.Errorf("exit %d", code)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
