// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// build makes another program from this tree.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "postern")
	cmd := exec.Command("go", append(append([]string{"build", "-o", program}, flags...), ".")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// another starts that program instead of this one.
func another(program string) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) { cmd.Path = program }
}

// verb runs a verb of a program and returns its exit code and all that it said.
func verb(t *testing.T, program, home string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = []string{asPostern + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH")}
	out, _ := cmd.CombinedOutput() // how it ended is asked of ProcessState
	return cmd.ProcessState.ExitCode(), string(out)
}

func (p *process) hangUp() int {
	p.Helper()
	_ = p.in.Close()
	return p.ends()
}

// TestTwoBuilds: two builds of one layout share a state directory: what both
// record is one log that either verifies.
func TestTwoBuilds(t *testing.T) {
	home, dir := folder(t, nil)
	other := build(t, "-ldflags=-s -w")
	a, b := launch(t, home, dir, nil), launch(t, home, dir, another(other))
	for _, p := range []*process{a, b, a, b} {
		p.until("ok", "write_file", map[string]any{"path": "shared", "content": "x"})
	}
	for _, p := range []*process{b, a} {
		if code := p.hangUp(); code != 0 {
			t.Errorf("exit %d: %s", code, &p.said)
		}
	}
	if n := strings.Count(a.log(), `"event":"intent"`); n != 4 {
		t.Errorf("%d intents, want 4", n)
	}
	for _, program := range []string{os.Args[0], other} {
		if code, said := verb(t, program, home, "log", "verify"); code != 0 || !strings.Contains(said, "ok: ") {
			t.Errorf("%s: exit %d: %s", program, code, said)
		}
	}
}

// TestNewerLayout: a postern that changes the layout takes the state directory
// over, also beside one that runs. That one changes nothing any more and says
// why; one that starts is refused. Neither touches what it doesn't know.
func TestNewerLayout(t *testing.T) {
	home, dir := folder(t, map[string]string{"f": "old"})
	newer := build(t, "-tags", "postern_next_layout")
	version := filepath.Join(home, ".local/state/postern/version")
	write := map[string]any{"path": "f", "content": "new"}

	running := launch(t, home, dir, nil)
	running.until("ok", "write_file", write)
	next := launch(t, home, dir, another(newer))
	next.until("ok", "write_file", write)
	if got, err := os.ReadFile(version); err != nil || string(got) != "3\n" {
		t.Fatalf("version %q, %v", got, err)
	}

	code, text := running.call("write_file", map[string]any{"path": "f", "content": "of the old one"})
	if code != fault.AuditUnwritable.String() {
		t.Errorf("the running one: %s: %s", code, text)
	}
	for _, want := range []string{"another version of postern has taken over", `layout "3", this program knows "2"`, "start it again"} {
		if !strings.Contains(text, want) {
			t.Errorf("it doesn't say %q: %s", want, text)
		}
	}
	if code, text := running.call("read_text_file", map[string]any{"path": "f"}); code != "ok" || !strings.Contains(text, "new") {
		t.Errorf("a read by the running one: %s: %s", code, text)
	}
	before := running.log()
	running.hangUp()
	if after := running.log(); after != before {
		t.Error("the running one still wrote to the log")
	}

	for _, args := range [][]string{{"serve", dir}, {"log", "anchor"}, {"log", "prune", "--keep", "30d"}} {
		code, said := verb(t, os.Args[0], home, args...)
		if code == 0 || !strings.Contains(said, "layout") || !strings.Contains(said, "next: ") {
			t.Errorf("%v by the older: exit %d: %s", args, code, said)
		}
	}
	if code, said := verb(t, os.Args[0], home, "serve", dir); code != fault.ExitConfig || !strings.Contains(said, "next: use the postern that made it") {
		t.Errorf("a start of the older: exit %d: %s", code, said)
	}
	if got, err := os.ReadFile(version); err != nil || string(got) != "3\n" {
		t.Errorf("version %q, %v", got, err)
	}

	next.until("ok", "write_file", write)
	if code := next.hangUp(); code != 0 {
		t.Errorf("exit %d: %s", code, &next.said)
	}
	if code, said := verb(t, newer, home, "log", "verify"); code != 0 {
		t.Errorf("verify by the newer: exit %d: %s", code, said)
	}
}
