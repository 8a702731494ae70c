// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
)

func hold(t *testing.T, d Dir, folders ...string) *Held {
	t.Helper()
	h, err := d.Hold(t.Context(), folders)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func save(t *testing.T, h *Held, address string) (token string) {
	t.Helper()
	token = h.Token(address, false)
	if err := h.Save(address, token, false); err != nil {
		t.Fatal(err)
	}
	return token
}

func TestKept(t *testing.T) {
	dir := t.TempDir()
	d := Open(dir)
	h := hold(t, d, "/b", "/a", "/b")
	if h.Last.Address != "" {
		t.Errorf("new folders have %+v", h.Last)
	}
	token := save(t, h, "127.0.0.1:4000")
	if len(token) != 43 {
		t.Errorf("token %q", token)
	}
	h.Release()
	info, err := os.Stat(h.File())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	folder, err := os.Stat(filepath.Dir(h.File()))
	if err != nil || folder.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", folder, err)
	}

	// The same folders in another order: the same endpoint.
	again := hold(t, d, "/a", "/b")
	want := Endpoint{"127.0.0.1:4000", token, []string{"/a", "/b"}, os.Getpid(), false}
	if diff := cmp.Diff(want, again.Last); diff != "" {
		t.Error(diff)
	}
	if again.Token("127.0.0.1:4000", false) != token {
		t.Error("the token has changed")
	}
	if again.Token("127.0.0.1:4001", false) == token {
		t.Error("another address has the same token")
	}
	if again.Token("127.0.0.1:4000", true) == token {
		t.Error("the token goes over a network")
	}
	if err := again.Save("127.0.0.1:4000", token, true); err != nil {
		t.Fatal(err)
	}
	again.Release()
	if again = hold(t, d, "/a", "/b"); again.Token("127.0.0.1:4000", false) == token || again.Token("127.0.0.1:4000", true) != token {
		t.Error("the token of before is not that of the exposed endpoint alone")
	}
	if err := again.Forget(); err != nil || again.Last.Address != "127.0.0.1:4000" {
		t.Errorf("%v %+v", err, again.Last)
	}
	again.Release()
	if again = hold(t, d, "/a", "/b"); again.Last.Address != "127.0.0.1:4000" || again.Token("127.0.0.1:4000", true) == token {
		t.Error("the token is not forgotten")
	}
	again.Release()

	// Other folders, another endpoint; names can't be joined to the same set.
	for _, folders := range [][]string{{"/a"}, {"/a/b"}, {"/a", "/b", "/c"}, {"/a, /b"}} {
		other := hold(t, d, folders...)
		if other.Last.Address != "" {
			t.Errorf("%q: %+v", folders, other.Last)
		}
		other.Release()
	}
	left, err := filepath.Glob(filepath.Join(dir, "endpoints", ".endpoint-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestHeldOnce(t *testing.T) {
	d := Open(t.TempDir())
	h := hold(t, d, "/a")
	save(t, h, "127.0.0.1:4000")
	_, err := d.Hold(t.Context(), []string{"/a"})
	var in *InUse
	if fault.CodeOf(err) != fault.LockHeld || !errors.As(err, &in) || in.PID != os.Getpid() || in.Address != "127.0.0.1:4000" {
		t.Errorf("%v %+v", err, in)
	}
	other := hold(t, d, "/b") // other folders are free
	defer other.Release()
	if _, ok := h.Holder(t.Context(), "4000"); ok {
		t.Error("it stands in its own way")
	}
	if e, ok := other.Holder(t.Context(), "4000"); !ok || e.Folders[0] != "/a" {
		t.Errorf("holder %+v %v", e, ok)
	}
	for _, port := range []string{"400", "000", "4001", ""} {
		if e, ok := other.Holder(t.Context(), port); ok {
			t.Errorf("port %q is held by %+v", port, e)
		}
	}
	h.Release()
	if e, ok := other.Holder(t.Context(), "4000"); ok {
		t.Errorf("released, and held by %+v", e)
	}
	hold(t, d, "/a").Release()
}

// A process that is killed has the endpoint no longer.
func TestKilledHolder(t *testing.T) {
	if dir := os.Getenv("POSTERN_TEST_ENDPOINT"); dir != "" {
		h, err := Open(dir).Hold(context.Background(), []string{"/a"})
		if err == nil && h.Save("127.0.0.1:4000", "t", false) == nil {
			fmt.Println("held")
			time.Sleep(time.Minute) // until the test kills it
		}
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHolder$")
	cmd.Env = append(os.Environ(), "POSTERN_TEST_ENDPOINT="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	scan := bufio.NewScanner(out)
	for scan.Scan() && scan.Text() != "held" {
	}
	d := Open(dir)
	_, err = d.Hold(t.Context(), []string{"/a"})
	var in *InUse
	if !errors.As(err, &in) || in.PID != cmd.Process.Pid {
		t.Errorf("%v %+v", err, in)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		h, err := d.Hold(t.Context(), []string{"/a"})
		if err == nil {
			h.Release()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	d := Open(dir)
	h := hold(t, d, "/a")
	h.Release()
	if err := os.WriteFile(h.File(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Hold(t.Context(), []string{"/a"}); fault.CodeOf(err) != fault.ConfigInvalid || !strings.Contains(fault.As(err).Resource, h.File()) {
		t.Errorf("%v", err)
	}
	if err := os.Remove(h.File()); err != nil {
		t.Fatal(err)
	}
	hold(t, d, "/a").Release() // nothing is left held by the refusal
	if _, err := Open(filepath.Join(dir, "missing")).Hold(t.Context(), []string{"/a"}); fault.CodeOf(err) != fault.IOFailed || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	h = hold(t, d, "/a")
	defer h.Release()
	if err := os.RemoveAll(filepath.Join(dir, "endpoints")); err != nil {
		t.Fatal(err)
	}
	if err := h.Save("127.0.0.1:1", "t", false); fault.CodeOf(err) != fault.IOFailed {
		t.Errorf("%v", err)
	}
}

// TestList: what is kept is told, and whether a process has it now.
func TestList(t *testing.T) {
	dir := t.TempDir()
	d := Open(dir)
	if all := d.List(t.Context()); len(all) != 0 {
		t.Errorf("%v", all)
	}
	if made, _ := os.ReadDir(dir); len(made) != 0 {
		t.Errorf("a look made %v", made)
	}
	h, err := d.Hold(t.Context(), []string{"/a"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Save("127.0.0.1:1", "token", true); err != nil {
		t.Fatal(err)
	}
	for _, held := range []bool{true, false} {
		all := d.List(t.Context())
		if len(all) != 1 || all[0].Held != held || !all[0].Exposed || all[0].File != h.File() {
			t.Errorf("held %v: %+v", held, all)
		}
		if held {
			h.Release()
		}
	}
}

// TestLeftovers: an unfinished file, which holds a token, is removed by a later
// start, and one that may still be written is not.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	d := Open(dir)
	h, err := d.Hold(t.Context(), []string{"/a"})
	if err != nil {
		t.Fatal(err)
	}
	h.Release()
	folder := filepath.Join(dir, "endpoints")
	old, fresh, other := filepath.Join(folder, ".endpoint-1"), filepath.Join(folder, ".endpoint-2"), filepath.Join(folder, ".else")
	for _, path := range []string{old, fresh, other} {
		if err := os.WriteFile(path, []byte("token"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-2 * leftover)
	for _, path := range []string{old, other} {
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if h, err = d.Hold(t.Context(), []string{"/b"}); err != nil {
		t.Fatal(err)
	}
	defer h.Release()
	for path, stays := range map[string]bool{old: false, fresh: true, other: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v", path, err)
		}
	}
}
