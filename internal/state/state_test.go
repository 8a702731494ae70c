// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

func TestLocate(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want string
		bad  string
	}{
		"own variable": {env: map[string]string{"POSTERN_STATE": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"}, want: "/s"},
		"xdg":          {env: map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, want: "/x/postern"},
		"home":         {env: map[string]string{"HOME": "/h"}, want: "/h/.local/state/postern"},
		"nothing":      {bad: "failed: postern\nbecause: neither POSTERN_STATE, XDG_STATE_HOME nor HOME is set\nnext: set POSTERN_STATE"},
		"relative":     {env: map[string]string{"POSTERN_STATE": "here"}, bad: "set POSTERN_STATE"},
		"relative xdg": {env: map[string]string{"XDG_STATE_HOME": "here", "HOME": "/h"}, want: "/h/.local/state/postern"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Locate(func(k string) string { return tc.env[k] })
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if (tc.bad != "") != (err != nil) || err != nil && (fault.CodeOf(err).Exit() != fault.ExitUsage || !strings.Contains(fault.As(err).Lines(), tc.bad)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "state")
	for range 2 { // made, then found
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(d.Path()); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("directory %v, %v", info, err)
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 1 || entries[0].Name() != "version" {
		t.Errorf("entries %v, %v", entries, err)
	}
}

func TestRefused(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		text    string
	}{
		"open to others": {func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o750)) }, "open to other users"},
		"newer layout": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("9\n"), 0o600))
		}, `layout "9"`},
		"bytes of another program": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "version"), bytes.Repeat([]byte{0xfe, 0x9b}, 1<<20), 0o600))
		}, `has layout "\xfe`},
		"a folder for a version": {func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "version"), 0o700)) }, "version can't be read"},
		"a file": {func(t *testing.T, dir string) {
			must(t, os.Remove(dir))
			must(t, os.WriteFile(dir, nil, 0o600))
		}, "can't be made"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			must(t, os.Mkdir(dir, 0o700))
			tc.prepare(t, dir)
			before := Check(dir)
			if fault.CodeOf(before) != fault.ConfigInvalid {
				t.Errorf("a reader's error %v", before)
			}
			_, err := Open(dir)
			if fault.CodeOf(err) != fault.ConfigInvalid || !strings.Contains(fault.As(err).Lines(), tc.text) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestCheckMakesNothing: what only reads finds no fault with a directory that is
// absent, that a power cut left without a version, or of an earlier layout, and
// leaves it as it is.
func TestCheckMakesNothing(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "state")
	must(t, Check(absent))
	if _, err := os.Lstat(absent); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	for name, version := range map[string]*string{"no version": nil, "empty": new(string), "earlier": new("1\n"), "this": new(Version + "\n")} {
		dir := filepath.Join(t.TempDir(), "state")
		must(t, os.Mkdir(dir, 0o700))
		if version != nil {
			must(t, os.WriteFile(filepath.Join(dir, "version"), []byte(*version), 0o600))
		}
		before := contents(t, dir)
		if err := Check(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !maps.Equal(before, contents(t, dir)) {
			t.Errorf("%s: it was changed", name)
		}
	}
}

// TestUpgrade: the unsigned log of layout 1 is put aside, byte for byte, and
// a process that still writes to it does so there.
func TestUpgrade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.MkdirAll(filepath.Join(dir, "audit"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("1\n"), 0o600))
	old, err := os.Create(filepath.Join(dir, "audit", "000001.jsonl"))
	must(t, err)
	defer old.Close()
	_, err = old.WriteString("before\n")
	must(t, err)
	for range 2 {
		if _, err := Open(dir); err != nil {
			t.Fatal(err)
		}
	}
	_, err = old.WriteString("after\n")
	must(t, err)
	got, err := os.ReadFile(filepath.Join(dir, "audit", "unsigned-000001.jsonl"))
	if err != nil || string(got) != "before\nafter\n" {
		t.Errorf("put aside: %q, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "audit", "000001.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the old log is still in the new one's place: %v", err)
	}
	if err := CheckVersion(dir); err != nil {
		t.Error(err)
	}
}

// TestUpgradeResumed: an upgrade that was killed between any two of its steps
// is gone on with, and no record of the old log is lost, nor one that a process
// of the old layout began meanwhile.
func TestUpgradeResumed(t *testing.T) {
	tests := map[string]struct {
		before map[string]string // beneath audit
		linked bool              // the old log has both names
		want   map[string]string
	}{
		"nothing done":   {before: map[string]string{"000001.jsonl": "a"}, want: map[string]string{"unsigned-000001.jsonl": "a"}},
		"linked":         {before: map[string]string{"000001.jsonl": "a"}, linked: true, want: map[string]string{"unsigned-000001.jsonl": "a"}},
		"removed":        {before: map[string]string{"unsigned-000001.jsonl": "a"}, want: map[string]string{"unsigned-000001.jsonl": "a"}},
		"nothing logged": {want: map[string]string{}},
		"another log begun meanwhile": {
			before: map[string]string{"unsigned-000001.jsonl": "a", "000001.jsonl": "b"},
			want:   map[string]string{"unsigned-000001.jsonl": "a", "unsigned-000002.jsonl": "b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			audit := filepath.Join(dir, "audit")
			must(t, os.MkdirAll(audit, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("1\n"), 0o600))
			for file, text := range tc.before {
				must(t, os.WriteFile(filepath.Join(audit, file), []byte(text), 0o600))
			}
			if tc.linked {
				must(t, os.Link(filepath.Join(audit, "000001.jsonl"), filepath.Join(audit, "unsigned-000001.jsonl")))
			}
			for range 2 {
				if _, err := Open(dir); err != nil {
					t.Fatal(err)
				}
			}
			if got := contents(t, audit); !maps.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
			must(t, CheckVersion(dir))
		})
	}
}

// TestUpgradeAtOnce: of many that start at once on an old layout each finds the
// new one, and the old log is put aside once.
func TestUpgradeAtOnce(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "state")
		must(t, os.MkdirAll(filepath.Join(dir, "audit"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("1\n"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "audit", "000001.jsonl"), []byte("a"), 0o600))
		var wg sync.WaitGroup
		for range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if _, err := Open(dir); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		want := map[string]string{"unsigned-000001.jsonl": "a"}
		if got := contents(t, filepath.Join(dir, "audit")); !maps.Equal(got, want) {
			t.Errorf("%v", got)
		}
		must(t, CheckVersion(dir))
	}
}

// TestNewerUntouched: a directory of a newer layout is refused with the next
// step, and left exactly as it is.
func TestNewerUntouched(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.MkdirAll(filepath.Join(dir, "audit"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("99\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "audit", "000001.jsonl"), []byte("of the future"), 0o600))
	before, beneath := contents(t, dir), contents(t, filepath.Join(dir, "audit"))
	_, err := Open(dir)
	if fault.CodeOf(err).Exit() != fault.ExitConfig || !strings.Contains(fault.As(err).Lines(), "next: use the postern that made it") {
		t.Errorf("%v", err)
	}
	if !maps.Equal(before, contents(t, dir)) || !maps.Equal(beneath, contents(t, filepath.Join(dir, "audit"))) {
		t.Error("it was changed")
	}
}

// contents are the files of a folder, folders with an empty text.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := map[string]string{}
	for _, e := range entries {
		text := []byte(nil)
		if !e.IsDir() {
			text, err = os.ReadFile(filepath.Join(dir, e.Name()))
			must(t, err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
