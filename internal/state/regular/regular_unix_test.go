// SPDX-License-Identifier: Apache-2.0

//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestFIFO: what is no regular file is refused whatever it is opened for, and
// nobody waits for its other end.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*os.File, error){
		"read":  Open,
		"write": func(p string) (*os.File, error) { return OpenFile(p, os.O_WRONLY|os.O_CREATE, 0o600) },
		"both":  func(p string) (*os.File, error) { return OpenFile(p, os.O_RDWR|os.O_APPEND, 0) },
		"folder": func(p string) (*os.File, error) {
			if p == dir {
				p = fifo
			}
			return OpenDir(p)
		},
		"whole": func(p string) (*os.File, error) { _, err := Read(p); return nil, err },
	} {
		for _, path := range []string{fifo, dir} {
			ended := make(chan error, 1)
			go func() {
				_, err := open(path)
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s of %s: %v", name, filepath.Base(path), err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s of %s waits", name, filepath.Base(path))
			}
		}
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(path); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
}
