// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
)

// TestFifoInAPolicysPlace: whoever can write the project can't hold up the
// start, nor a later look.
func TestFifoInAPolicysPlace(t *testing.T) {
	p := newPlace(t)
	path := p.project("version: 1\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
	p.refused(fault.ConfigInvalid, "not a regular file")
}

func TestPolicyOfSomebodyElse(t *testing.T) {
	p := newPlace(t)
	path := p.user("version: 1\n")
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
	} else { // root's own files are fine, so another's can't be made here
		p.load()
		return
	}
	p.refused(fault.ConfigInvalid, "belongs to somebody else")
}

// TestFolderThatCantBeEntered is said of the folder, not of the policy file
// that might lie in it.
func TestFolderThatCantBeEntered(t *testing.T) {
	if dir := os.Getenv("POSTERN_TEST_CLOSED"); dir != "" {
		_, err := config.Load(config.Options{Dirs: []string{dir}, WorkDir: "/", SystemFile: "/nowhere/policy.yaml"})
		if f := fault.As(err); f == nil || f.Code != fault.RequestInvalid || f.Resource != dir || f.Rule != "the folder can't be entered by this user" {
			t.Errorf("%v", err)
		}
		return
	}
	p := newPlace(t)
	p.load() // the negative control
	if err := os.Chmod(p.dir, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 {
		p.refused(fault.RequestInvalid, "can't be entered")
		return
	}
	// Root may enter anything, so an ordinary user looks.
	if err := errors.Join(os.Chmod(filepath.Dir(p.work), 0o755), os.Chmod(p.work, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestFolderThatCantBeEntered$")
	cmd.Env = append(os.Environ(), "POSTERN_TEST_CLOSED="+p.dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
