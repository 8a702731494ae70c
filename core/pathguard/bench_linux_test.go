// SPDX-License-Identifier: Apache-2.0

package pathguard_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/postern-gate/postern/core/pathguard"
)

// BenchmarkRead reads 4 KiB five levels deep: guarded, by os.ReadFile, by
// os.Root, and guarded with the walk that serves without openat2.
func BenchmarkRead(b *testing.B) {
	x := newBox(b, []string{"a/b/c/d/"})
	must(b, os.WriteFile(x.R()+"/a/b/c/d/f", make([]byte, 4096), 0o644))
	guarded := func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			names, err := x.ws.Parse("a/b/c/d/f")
			must(b, err)
			f, err := names[0].Open()
			must(b, err)
			buf := make([]byte, f.Size())
			if _, err := io.ReadFull(f, buf); err != nil {
				b.Fatal(err)
			}
			must(b, f.Close())
		}
	}
	b.Run("guarded", guarded)
	b.Run("os.ReadFile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := os.ReadFile(x.R() + "/a/b/c/d/f")
			must(b, err)
		}
	})
	root, err := os.OpenRoot(x.R())
	must(b, err)
	defer root.Close()
	b.Run("os.Root", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := root.ReadFile("a/b/c/d/f")
			must(b, err)
		}
	})
	pathguard.WithoutOpenat2(x.root, unix.ENOSYS)
	b.Run("walk", guarded)
}

// BenchmarkOverwrite replaces 8 KiB: guarded and synced like the plain way
// beside it, which makes a temporary file, syncs its content and renames it.
func BenchmarkOverwrite(b *testing.B) {
	content := bytes.Repeat([]byte("x"), 8192)
	x := newBox(b, []string{"a/b/c/d/", "a/b/c/d/f=old"})
	path := x.R() + "/a/b/c/d/f"
	b.Run("guarded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			names, err := x.ws.Parse("a/b/c/d/f")
			must(b, err)
			t, err := names[0].Pin()
			must(b, err)
			_, err = t.Replace(bytes.NewReader(content), pathguard.WriteOptions{})
			must(b, err)
			must(b, t.Close())
		}
	})
	b.Run("temp+rename+fdatasync", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			must(b, err)
			_, err = f.Write(content)
			must(b, err)
			must(b, unix.Fdatasync(int(f.Fd())))
			must(b, f.Close())
			must(b, os.Rename(path+".tmp", path))
		}
	})
	b.Run("guarded-unsynced", func(b *testing.B) {
		pathguard.Unsynced(x.root)
		b.ReportAllocs()
		for b.Loop() {
			_, err := writeName(x.name("a/b/c/d/f"), string(content), pathguard.WriteOptions{})
			must(b, err)
		}
	})
}

// BenchmarkList lists 10,000 entries, beside os.ReadDir.
func BenchmarkList(b *testing.B) {
	x := newBox(b, nil)
	for i := range 10_000 {
		x.make("file" + decimal(int64(i)) + "=")
	}
	b.Run("guarded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d, err := x.name(".").OpenDir()
			must(b, err)
			for {
				if _, err := d.Entries(512); err == io.EOF {
					break
				}
			}
			must(b, d.Close())
		}
	})
	b.Run("os.ReadDir", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := os.ReadDir(x.R())
			must(b, err)
		}
	})
}
