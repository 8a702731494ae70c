// SPDX-License-Identifier: Apache-2.0

//go:build unix

package config_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/postern-gate/postern/core/fault"
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
