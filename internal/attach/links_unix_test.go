// SPDX-License-Identifier: Apache-2.0

//go:build unix

package attach

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestLinksWaitForNothing: a FIFO in a client's folder, or as one, is opened by
// nobody, and what is beside it is found.
func TestLinksWaitForNothing(t *testing.T) {
	d := newDotfiles(t)
	d.put(d.home(".config/x"), "")
	d.link(d.home(".codex/config.toml"), d.at("codex"))
	d.link(d.home(".codex/b"), d.at("pipe"))
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.home(".codex/a"), d.home(".kiro"), d.home(".config/pipe"), d.at("pipe")} {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan Entrusted)
	go func() { done <- entrust(d.w, d.state) }()
	select {
	case e := <-done:
		if !slices.Contains(e.Places[agents], d.at("codex")) || e.Beyond != nil {
			t.Errorf("%q", e)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

// TestLinksOfOthers: a folder that can't be read is told.
func TestLinksOfOthers(t *testing.T) {
	d := newDotfiles(t)
	d.put(d.home(".codex/sub/x"), "")
	if err := os.Chmod(d.home(".codex/sub"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(d.home(".codex/sub"), 0o700) })
	_, err := os.ReadDir(d.home(".codex/sub"))
	if got := entrust(d.w, d.state).Beyond; errors.Is(err, os.ErrPermission) != (len(got) == 1) {
		t.Errorf("%q, %v", got, err)
	}
}
