// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
)

// FS is one root as a file system for Go programs: io/fs for reading and the
// usual mutations, each of which crosses the gate. Names are as in io/fs:
// slash-separated, relative to the root, without "." or "..".
//
// A denied call leaves the tree as it was. Errors are *fs.PathError around a
// fault, so that errors.Is(err, fs.ErrPermission) holds for refusals.
type FS struct {
	gate   *Gate
	prefix string
}

var (
	_ fs.ReadDirFS  = FS{}
	_ fs.ReadFileFS = FS{}
	_ fs.StatFS     = FS{}
)

// FS returns the file system of the named root.
func (g *Gate) FS(root string) FS { return FS{g, root + "://"} }

func (f FS) spelling(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return f.prefix, nil
	}
	return f.prefix + name, nil
}

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open opens a file or directory for reading.
func (f FS) Open(name string) (fs.File, error) {
	info, err := f.stat("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		entries, err := f.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &openDir{info: info, entries: entries}, nil
	}
	spelling, _ := f.spelling("open", name) // valid: stat has checked it
	file, err := f.gate.Open(context.Background(), spelling)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &openFile{file, fileInfo{file.Info(), base(name)}}, nil
}

// ReadFile returns the whole content.
func (f FS) ReadFile(name string) ([]byte, error) {
	spelling, err := f.spelling("read", name)
	if err != nil {
		return nil, err
	}
	file, err := f.gate.Open(context.Background(), spelling)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	defer file.Close()
	buf := make([]byte, 0, file.Info().Size+1)
	for {
		n, err := file.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, pathError("read", name, err)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// ReadDir returns the entries in the order of their names, without those that
// the policy hides.
func (f FS) ReadDir(name string) ([]fs.DirEntry, error) {
	spelling, err := f.spelling("readdir", name)
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	err = f.gate.Walk(context.Background(), spelling, maxDirEntries, func(w *Walk, top pathguard.Name) error {
		items, _, err := w.Entries(top, true)
		for _, e := range items {
			entries = append(entries, fs.FileInfoToDirEntry(fileInfo{e.Info, e.Name}))
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
		return err
	})
	return entries, pathError("readdir", name, err)
}

// maxDirEntries bounds one directory listing in memory.
const maxDirEntries = 1_000_000

// Stat returns facts about what the name leads to beneath the roots.
func (f FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name) }

func (f FS) stat(op, name string) (fs.FileInfo, error) {
	spelling, err := f.spelling(op, name)
	if err != nil {
		return nil, err
	}
	_, info, err := f.gate.Stat(context.Background(), spelling)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return fileInfo{info, base(name)}, nil
}

func (f FS) mutate(op, name string, do func(ctx context.Context, spelling string) (Outcome, error)) error {
	spelling, err := f.spelling(op, name)
	if err != nil {
		return err
	}
	_, err = do(context.Background(), spelling)
	return pathError(op, name, err)
}

// confirmed is the call of a Go program: its own code is what decides to act.
var confirmed = Call{Confirm: true}

// WriteFile replaces the content of a file or makes it.
func (f FS) WriteFile(name string, content []byte) error {
	return f.mutate("write", name, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.Write(ctx, s, content, confirmed)
	})
}

// AppendFile adds to the end of a file or makes it.
func (f FS) AppendFile(name string, content []byte) error {
	return f.mutate("append", name, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.Append(ctx, s, content, confirmed)
	})
}

// MkdirAll makes a directory and those above it that are missing.
func (f FS) MkdirAll(name string) error {
	return f.mutate("mkdir", name, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.MakeDir(ctx, s, confirmed)
	})
}

// Remove removes a file, a link or an empty directory.
func (f FS) Remove(name string) error {
	return f.mutate("remove", name, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.Delete(ctx, s, false, confirmed)
	})
}

// RemoveAll removes an entry and everything beneath it.
func (f FS) RemoveAll(name string) error {
	return f.mutate("remove", name, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.Delete(ctx, s, true, confirmed)
	})
}

// Rename moves an entry to a name that is free; unlike os.Rename it never
// replaces what is there.
func (f FS) Rename(oldName, newName string) error {
	to, err := f.spelling("rename", newName)
	if err != nil {
		return err
	}
	return f.mutate("rename", oldName, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.Move(ctx, s, to, confirmed)
	})
}

// Copy copies a file or directory to a name that is free.
func (f FS) Copy(oldName, newName string) error {
	to, err := f.spelling("copy", newName)
	if err != nil {
		return err
	}
	return f.mutate("copy", oldName, func(ctx context.Context, s string) (Outcome, error) {
		return f.gate.Copy(ctx, s, to, confirmed)
	})
}

func base(name string) string {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[i+1:]
		}
	}
	return name
}

// fileInfo is pathguard's Info as io/fs has it.
type fileInfo struct {
	info pathguard.Info
	name string
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.info.Size }
func (i fileInfo) Mode() fs.FileMode  { return i.info.Mode }
func (i fileInfo) ModTime() time.Time { return i.info.ModTime }
func (i fileInfo) IsDir() bool        { return i.info.Kind == pathguard.KindDir }
func (i fileInfo) Sys() any           { return i.info }

type openFile struct {
	*pathguard.File
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// openDir hands out what ReadDir has read, in portions.
type openDir struct {
	info    fs.FileInfo
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: errors.New("is a directory")}
}

func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 || n > len(d.entries) {
		if n > 0 && len(d.entries) == 0 {
			return nil, io.EOF
		}
		n = len(d.entries)
	}
	head := d.entries[:n]
	d.entries = d.entries[n:]
	return head, nil
}
