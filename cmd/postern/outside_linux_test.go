// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runs runs a verb of postern in dir.
func runs(t *testing.T, home, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = dir, []string{asPostern + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

type outsideList struct {
	Entries []struct {
		Names   []string
		Session string
	}
	Outside struct {
		Files           int
		Watched, Missed bool
		Since           time.Time
	}
}

func listed(t *testing.T, home, dir string) (l outsideList) {
	t.Helper()
	if err := json.Unmarshal([]byte(runs(t, home, dir, "undo", "list", "--json")), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// TestUpCountsOutside is und-01: up watches, an agent changes a file through the
// server that its client started, and another program changes three.
func TestUpCountsOutside(t *testing.T) {
	home, dir := folder(t, map[string]string{"a.txt": "A", "1": "x", "d/2": "x", "3": "x"})
	began := time.Now()
	before := runs(t, home, dir, "undo", "list")
	up := exec.Command(os.Args[0], "up", dir)
	up.Env = []string{asPostern + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}
	var out, err said
	up.Stdout, up.Stderr = &out, &err
	if e := up.Start(); e != nil {
		t.Fatal(e)
	}
	t.Cleanup(func() { _ = up.Process.Kill(); _ = up.Wait() })
	p := launch(t, home, dir, nil, "--agent", "coder")
	p.eventually("the watch", func() bool {
		return strings.Contains(err.String(), "what other programs change in 1 folder is counted: postern undo list\n")
	})
	if code, text := p.call("write_file", args{"path": "a.txt", "content": "agent"}); code != "ok" {
		t.Fatal(text)
	}
	other := exec.CommandContext(t.Context(), "sh", "-c", "echo outside >1; echo outside >d/2; echo outside >new; mv new 3")
	other.Dir = dir
	if e := other.Run(); e != nil {
		t.Fatal(e)
	}
	var l outsideList
	p.eventually("three files", func() bool { l = listed(t, home, dir); return l.Outside.Files == 3 })
	if len(l.Entries) != 1 || l.Entries[0].Names[0] != "project://a.txt" || !l.Outside.Watched || l.Outside.Missed || l.Outside.Since.Before(began) {
		t.Errorf("%+v", l)
	}
	runs(t, home, dir, "undo", "--session", l.Entries[0].Session, "--yes")
	time.Sleep(2 * time.Second) // in which an undo would be taken for somebody's
	for name, want := range map[string]string{"a.txt": "A", "1": "outside\n", "d/2": "outside\n", "3": "outside\n"} {
		if got, e := os.ReadFile(filepath.Join(dir, name)); e != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, e)
		}
	}
	if e := up.Process.Signal(syscall.SIGINT); e != nil {
		t.Fatal(e)
	}
	if e := up.Wait(); e != nil {
		t.Errorf("%v: %s", e, &err)
	}
	text := runs(t, home, dir, "undo", "list")
	if !strings.Contains(text, "\n3 files changed outside the guard, in all folders, since ") || strings.Contains(before, "outside") {
		t.Errorf("%s\nbefore: %s", text, before)
	}
	if strings.Contains(out.String(), "watcher") || strings.Contains(out.String(), "outside") {
		t.Errorf("up shows what is no decision: %s", &out)
	}
	log := runs(t, home, dir, "log", "--source", "watcher")
	if strings.Count(log, " outside ") != 3 || !strings.Contains(log, "fs.write  project://d/2") || !strings.Contains(log, "watching") {
		t.Error(log)
	}
	runs(t, home, dir, "log", "verify")
}
