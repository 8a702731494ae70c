// SPDX-License-Identifier: Apache-2.0

//go:build linux

package enforce

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
)

// BenchmarkRead is one guarded read of 4 KiB five levels deep (resolve,
// decide, open, read, buffered record) beside the same file read bare and
// through os.Root.
func BenchmarkRead(b *testing.B) {
	const name = "a/b/c/d/e.txt"
	g, dir := benchGate(b)
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, 4096), 0o644); err != nil {
		b.Fatal(err)
	}
	b.Run("guarded", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 4096)
		for b.Loop() {
			f, err := g.Open(b.Context(), name)
			if err != nil {
				b.Fatal(err)
			}
			if n, err := f.ReadAt(buf, 0); n != 4096 || err != nil {
				b.Fatal(n, err)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os.ReadFile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if data, err := os.ReadFile(path); len(data) != 4096 || err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os.Root", func(b *testing.B) {
		b.ReportAllocs()
		root, err := os.OpenRoot(dir)
		if err != nil {
			b.Fatal(err)
		}
		defer root.Close()
		for b.Loop() {
			if data, err := root.ReadFile(name); len(data) != 4096 || err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOverwrite is one guarded overwrite of 8 KiB, with undo, audit, journal
// and content synced, beside temp, fdatasync and rename by hand.
func BenchmarkOverwrite(b *testing.B) {
	g, dir := benchGate(b)
	content := bytes.Repeat([]byte("overwrite\n"), 820)
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Run("guarded", func(b *testing.B) {
		for b.Loop() {
			if _, err := g.Write(b.Context(), "f", content, Call{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("temp+fdatasync+rename", func(b *testing.B) {
		for b.Loop() {
			byHand(b, path, content)
		}
	})
}

func byHand(b *testing.B, path string, content []byte) {
	f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.Write(content); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		b.Fatal(err)
	}
}

func benchGate(b *testing.B) (*Gate, string) {
	b.Helper()
	box := b.TempDir()
	dir := filepath.Join(box, "root")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = root.Close() })
	ws, err := pathguard.NewWorkspace(root)
	if err != nil {
		b.Fatal(err)
	}
	state, err := OpenState(filepath.Join(box, "state"), StateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = state.Close() })
	g, err := New(Options{Workspace: ws, Decider: rules{}, Recorder: state, Locker: state, Keeper: state})
	if err != nil {
		b.Fatal(err)
	}
	return g, dir
}
