// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// TestFS holds the file system against the standard library's own contract.
func TestFS(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"a.txt": "A", "d/b.txt": "B", "d/deep/c.txt": "C", "empty/": ""})
	if err := fstest.TestFS(w.gate.FS("project"), "a.txt", "d/b.txt", "d/deep/c.txt", "empty"); err != nil {
		t.Fatal(err)
	}
}

func TestFSMutations(t *testing.T) {
	w := newWorld(t, rules{confirm: map[core.Action]bool{core.FSDelete: true}}, nil)
	f := w.gate.FS("project")
	w.must(f.MkdirAll("x/y"))
	w.must(f.WriteFile("x/y/a", []byte("one")))
	w.must(f.AppendFile("x/y/a", []byte(" two")))
	w.must(f.Copy("x", "k"))
	w.must(f.Rename("x/y/a", "moved"))
	if got := w.read("moved") + w.read("k/y/a"); got != "one twoone two" {
		t.Errorf("content %q", got)
	}
	w.must(f.Remove("moved"))
	w.must(f.RemoveAll("k"))
	entries, err := f.ReadDir(".")
	w.must(err)
	if len(entries) != 1 || entries[0].Name() != "x" {
		t.Errorf("left: %v", entries)
	}
}

func TestFSRefusals(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{
		"fs.list project://hidden": core.Deny, "fs.read project://hidden": core.Deny, "fs.write project://kept": core.Deny,
	}}, map[string]string{"hidden": "SECRET", "kept": "K", "out": "-> /etc/passwd", "up": "-> ../outside"})
	w.must(os.WriteFile(w.path("../outside"), []byte("SECRET"), 0o600))
	f := w.gate.FS("project")
	before := w.tree()
	refusals := map[string]func() error{
		"read hidden":    func() error { _, err := f.ReadFile("hidden"); return err },
		"read out":       func() error { _, err := f.ReadFile("out"); return err },
		"read up":        func() error { _, err := f.ReadFile("up"); return err },
		"open up":        func() error { _, err := f.Open("up"); return err },
		"stat up":        func() error { _, err := f.Stat("up"); return err },
		"write kept":     func() error { return f.WriteFile("kept", nil) },
		"write up":       func() error { return f.WriteFile("up", nil) },
		"remove root":    func() error { return f.RemoveAll(".") },
		"rename to root": func() error { return f.Rename("kept", ".") },
	}
	for name, do := range refusals {
		if err := do(); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, do := range map[string]func() error{
		"dots":     func() error { _, err := f.ReadFile("../outside"); return err },
		"absolute": func() error { return f.WriteFile("/kept", nil) },
	} {
		if err := do(); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.unchanged(before)
	if got, _ := os.ReadFile(w.path("../outside")); string(got) != "SECRET" {
		t.Errorf("outside is now %q", got)
	}
	entries, err := f.ReadDir(".")
	w.must(err)
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "hidden" }) {
		t.Error("a denied name is listed")
	}
}

// TestCredentialInNpmrc: a .npmrc is ordinary until it holds a credential;
// neither a read, an edit, a copy nor a move gets at one that does.
func TestCredentialInNpmrc(t *testing.T) {
	for _, content := range []string{"//r.example/:_authToken=SECRET\n", "_AUTH = SECRET\n", "x:_Password=SECRET\n", "registry=https://u:SECRET@r.example/\n", " key = SECRET\n"} {
		w := newWorld(t, rules{}, map[string]string{".npmrc": content, "d/f": ""})
		f := w.gate.FS("project")
		before := w.tree()
		_, readErr := f.ReadFile(".npmrc")
		_, editErr := w.gate.Edit(t.Context(), ".npmrc", func(b []byte) ([]byte, error) { return b, nil }, Call{})
		for name, err := range map[string]error{
			"read": readErr, "edit": editErr,
			"copy": f.Copy(".npmrc", "copy"), "move": f.Rename(".npmrc", "moved"),
		} {
			if fault.CodeOf(err) != fault.PolicyDenied {
				t.Errorf("%s of %q: %v", name, content, err)
			}
		}
		w.unchanged(before)
	}
	w := newWorld(t, rules{}, map[string]string{".npmrc": "registry=https://r.example/\n"})
	if _, err := w.gate.FS("project").ReadFile(".npmrc"); err != nil {
		t.Errorf("an ordinary .npmrc: %v", err)
	}
}

func TestCopyLeavesLinksOut(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"d/a": "A", "d/ln": "-> /etc/passwd", "d/e/": ""})
	out, err := w.gate.Copy(t.Context(), "d", "k", Call{})
	w.must(err)
	if out.SkippedCount != 1 {
		t.Errorf("outcome %+v", out)
	}
	if _, err := os.Lstat(w.path("k/ln")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link was copied")
	}
	if _, err := w.gate.Copy(t.Context(), "d", "d/e/inside", Call{}); fault.CodeOf(err) != fault.RequestInvalid {
		t.Errorf("a directory into itself: %v", err)
	}
}

func TestMakeDirThroughLink(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"real/": "", "ln": "-> real", "out": "-> /tmp", "file": "F"})
	out, err := w.gate.MakeDir(t.Context(), "ln/x/y", Call{})
	w.must(err)
	if info, err := os.Stat(w.path("real/x/y")); err != nil || !info.IsDir() || !out.Created {
		t.Errorf("made %v, %v, %+v", info, err, out)
	}
	again, err := w.gate.MakeDir(t.Context(), "real/x/y", Call{})
	if err != nil || again.Created {
		t.Errorf("one that exists: %+v, %v", again, err)
	}
	before := w.tree()
	for _, name := range []string{"out/postern-x", "file", "file/x", "../x"} {
		if _, err := w.gate.MakeDir(t.Context(), name, Call{}); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	w.unchanged(before)
}

// TestMakeDirHalfway: a directory that can't be made after those above it were
// is told as half done. The attacker takes a name as soon as its folder is
// there.
func TestMakeDirHalfway(t *testing.T) {
	w := newWorld(t, rules{}, nil)
	for i := range 5000 {
		top := fmt.Sprint("x", i)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if os.WriteFile(w.path(top+"/y"), nil, 0o644) == nil {
					return
				}
			}
		}()
		out, err := w.gate.MakeDir(t.Context(), top+"/y/z", Call{})
		close(stop)
		<-done
		if err == nil {
			continue
		}
		if !out.MayHaveApplied || out.AbortedAt == "" {
			t.Errorf("half done and not told: %+v, %v", out, err)
		}
		return
	}
	t.Error("the attacker never came in between: this run proves nothing")
}
