// SPDX-License-Identifier: Apache-2.0

//go:build unix

package pathguard

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(dir+"/a/b", 0o755)
	os.WriteFile(dir+"/a/b/f", []byte("hello"), 0o750)
	os.Symlink("a/b", dir+"/l")
	os.Symlink("/etc", dir+"/out")
	r, err := OpenRoot(dir, Options{Name: "project"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := NewWorkspace(r)
	if err != nil {
		t.Fatal(err)
	}
	n, err := w.Parse("a/b/f")
	if err != nil {
		t.Fatal(err)
	}
	f, err := n[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(f)
	if string(b) != "hello" || err != nil {
		t.Fatal(string(b), err)
	}
	f.Close()
	n, _ = w.Parse("l/f")
	_, err = n[0].Open()
	var le *LinkError
	if !errors.As(err, &le) || le.To.String() != "project://a/b/f" {
		t.Fatal(err)
	}
	n, _ = w.Parse("out/passwd")
	_, err = n[0].Open()
	t.Log(err)
	tg, err := le.To.Pin()
	if err != nil {
		t.Fatal(err)
	}
	wr, err := tg.Replace(strings.NewReader("bye"), WriteOptions{})
	t.Logf("%+v %v", wr, err)
	tg.Close()
	b, _ = os.ReadFile(filepath.Join(dir, "a/b/f"))
	if string(b) != "bye" {
		t.Fatal(string(b))
	}
	tg, _ = le.To.PinEntry()
	nn, _ := w.Parse("new")
	td, err := nn[0].PinEntry()
	if err != nil {
		t.Fatal(err)
	}
	if err := Rename(tg, td, WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	tg.Close()
	td.Close()
	td, _ = nn[0].PinEntry()
	if err := td.Remove(WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := r.innermost("").OpenDir()
	es, err := d.Entries(10)
	t.Log(es, err)
}

func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	os.MkdirAll(dir+"/a/b/c/d", 0o755)
	os.WriteFile(dir+"/a/b/c/d/f", make([]byte, 4096), 0o750)
	r, _ := OpenRoot(dir, Options{Name: "project"})
	w, _ := NewWorkspace(r)
	buf := make([]byte, 8192)
	b.Run("guard", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n, _ := w.Parse("a/b/c/d/f")
			f, err := n[0].Open()
			if err != nil {
				b.Fatal(err)
			}
			f.Read(buf)
			f.Close()
		}
	})
	b.Run("os", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			os.ReadFile(dir + "/a/b/c/d/f")
		}
	})
}
