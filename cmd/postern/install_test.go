// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/postern-gate/postern/internal/testenv"
)

// gitFile is a file of the repository, as it is on disk.
type gitFile struct{ top, name string }

func (f gitFile) Path() string                 { return f.name }
func (f gitFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(f.top, f.name)) }
func (f gitFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(f.top, f.name)) }

// published puts this repository into a folder as a module proxy has it.
func published(t *testing.T, top string, m module.Version) string {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), "git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		testenv.Missing(t, "a clone of the repository, and git: "+err.Error())
	}
	var files []zip.File
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		// Not what was just removed, and no link: a proxy leaves those out.
		if info, err := os.Lstat(filepath.Join(top, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, gitFile{top, name})
		}
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, m, files); err != nil {
		t.Fatalf("this repository is not a module that can be published: %v", err)
	}
	mod, err := os.ReadFile(filepath.Join(top, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"list": []byte(m.Version + "\n"), m.Version + ".info": []byte(`{"Version":"` + m.Version + `"}`),
		m.Version + ".mod": mod, m.Version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proxy
}

// TestGoInstall: go install of a published version, with an empty module cache,
// gives a program that knows that version. The proxy is a folder; the modules
// that it lacks come from what this test was built with.
func TestGoInstall(t *testing.T) {
	top, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	m := module.Version{Path: "github.com/postern-gate/postern", Version: "v0.0.1-install.1"}
	proxy := published(t, top, m)
	out, err := exec.CommandContext(context.Background(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	downloaded := filepath.Join(strings.TrimSpace(string(out)), "cache", "download")
	bin, home := t.TempDir(), t.TempDir()
	// The binary has no name of the place it was built in, so the cache serves.
	cmd := exec.CommandContext(context.Background(), "go", "install", "-trimpath", m.Path+"/cmd/postern@"+m.Version)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+filepath.Join(home, "mod"), "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOPROXY="+folderURL(proxy)+","+folderURL(downloaded)+",off", "GOSUMDB=off", "GONOSUMDB=", "GOPRIVATE=", "GONOPROXY=",
		"CGO_ENABLED=0", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	said, err := exec.CommandContext(context.Background(), filepath.Join(bin, "postern"), "--version").Output()
	if want := "postern " + m.Version + "\n"; err != nil || string(said) != want {
		t.Errorf("%q, %v; want %q", said, err, want)
	}
}

// folderURL is a folder as GOPROXY takes it.
func folderURL(dir string) string {
	dir = filepath.ToSlash(dir)
	if runtime.GOOS == "windows" {
		dir = "/" + dir
	}
	return "file://" + dir
}
