// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postern-gate/postern/core/fault"
)

func announce(t *testing.T, d Dir, prefix string, roots map[string]string) *Process {
	t.Helper()
	p, err := d.Announce(prefix, roots)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func list(t *testing.T, d Dir) []Entry {
	t.Helper()
	all, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNothingYet(t *testing.T) {
	dir := t.TempDir()
	if all := list(t, Open(dir)); len(all) != 0 {
		t.Errorf("%v", all)
	}
	if made, _ := os.ReadDir(dir); len(made) != 0 {
		t.Errorf("a look made %v", made)
	}
}

// TestAlive: a process is alive until it closes, also to itself, and its file
// is then gone; two of one process are kept apart.
func TestAlive(t *testing.T) {
	dir := t.TempDir()
	d := Open(dir)
	a, b := announce(t, d, "aa", map[string]string{"r": "/r"}), announce(t, d, "aa", nil)
	for range 2 {
		all := list(t, d)
		if len(all) != 2 || !all[0].Alive || !all[1].Alive || all[0].Prefix != "aa" {
			t.Fatalf("%+v", all)
		}
	}
	if info, err := os.Stat(a.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "live")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	if err := errors.Join(a.Update(map[string]string{"x": "/x"}), a.Close()); err != nil {
		t.Fatal(err)
	}
	if all := list(t, d); len(all) != 1 || !all[0].Alive {
		t.Errorf("%+v", all)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if all := list(t, d); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// TestKilled: a process that was killed is dead and leaves its roots.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("POSTERN_TEST_LIVE"); dir != "" {
		p, err := Open(dir).Announce("bb", map[string]string{"r": "/old"})
		if err == nil {
			err = p.Update(map[string]string{"r": "/r", "s": "/s"})
		}
		fmt.Println("here", err)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "POSTERN_TEST_LIVE="+dir)
	_, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	if !scan.Scan() || scan.Text() != "here <nil>" {
		t.Fatalf("child: %q", scan.Text())
	}
	d := Open(dir)
	if all := list(t, d); len(all) != 1 || !all[0].Alive || all[0].Roots != nil {
		t.Errorf("while it lives: %+v", all)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	all := list(t, d)
	want := []Entry{{Prefix: "bb", Roots: map[string]string{"r": "/r", "s": "/s"}}}
	if diff := cmp.Diff(want, all, cmpopts.IgnoreUnexported(Entry{})); diff != "" {
		t.Fatal(diff)
	}
	if err := os.WriteFile(all[0].path, []byte(`{"r":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if all := list(t, d); len(all) != 1 || all[0].Alive || all[0].Roots != nil {
		t.Errorf("cut short: %+v", all)
	}
	if err := d.Remove(t.Context(), all[0]); err != nil || len(list(t, d)) != 0 {
		t.Errorf("removed: %v", err)
	}
}

// TestNeverSeenDead: however processes come and go, none that has not ended is
// taken for dead.
func TestNeverSeenDead(t *testing.T) {
	d := Open(t.TempDir())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				p, err := d.Announce(fmt.Sprint("p", i), map[string]string{"r": "/r"})
				if err == nil {
					err = p.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	seen := 0
	enough, late := time.Now().Add(300*time.Millisecond), time.Now().Add(time.Minute)
	for now := time.Now(); now.Before(enough) || seen == 0 && now.Before(late); now = time.Now() {
		for _, e := range list(t, d) {
			seen++
			if !e.Alive {
				t.Errorf("%s was taken for dead", e.Prefix)
			}
		}
	}
	close(stop)
	wg.Wait()
	if seen == 0 {
		t.Error("no process was seen: this run proves nothing")
	}
}

func TestAlone(t *testing.T) {
	d := Open(t.TempDir())
	done, err := d.Alone(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Alone(ctx); fault.CodeOf(err) != fault.LockHeld {
		t.Errorf("a second one: %v", err)
	}
	done()
	if done, err = d.Alone(t.Context()); err != nil {
		t.Fatal(err)
	}
	done()
}

func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "live"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir).Announce("p", nil); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Errorf("%v", err)
	}
}
