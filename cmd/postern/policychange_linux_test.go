// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// says runs a command and returns what it prints and how it ends.
func says(t *testing.T, env []string, args ...string) (text string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir, cmd.Env = t.TempDir(), append(env, asPostern+"=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestPolicyEdited: an edit of the policy ends what was asked and answered before it
// in a server that nobody calls, and who answers, waits or asks anew is told so.
func TestPolicyEdited(t *testing.T) {
	env, dir := desk(t)
	policy := filepath.Join(filepath.Dir(dir), ".config", "postern", "policy.yaml")
	edit := func(text string) {
		t.Helper()
		if err := os.WriteFile(policy, []byte("version: 1\nrules: { fs.write: ask }\nask: { wait: 2m }\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	place(t, dir, "a.txt", "one\n")
	place(t, dir, "b.txt", "one\n")
	a := newAgent(t, env, dir)
	ask := func(name string) string {
		t.Helper()
		got := a.call("write_file", map[string]any{"path": name, "content": "two\n"})()
		m := regexp.MustCompile(`postern approve ([0-9a-z]{8})`).FindStringSubmatch(got)
		if m == nil {
			t.Fatalf("%s: nobody is asked: %s", name, got)
		}
		return m[1]
	}
	waits, given := ask("a.txt"), ask("b.txt")
	if text, code := says(t, env, "approve", "--yes", "--session", given); code != 0 {
		t.Fatal(text)
	}
	time.Sleep(2 * time.Second)
	if text, _ := says(t, env, "pending"); !strings.Contains(text, waits) {
		t.Fatalf("it is over without an edit: %s", text)
	}
	edit("deny: [\"elsewhere/**\"]\n")
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if text, _ := says(t, env, "pending"); strings.Contains(text, "nothing is asked") {
			break
		} else if time.Now().After(late) {
			t.Fatalf("it is asked still: %s", text)
		}
	}
	text, code := says(t, env, "approve", "--yes", waits)
	if code != 4 || !strings.Contains(text, "because: the question is over: the policy changed\nnext: let the agent call again, which asks anew\n") {
		t.Errorf("%d: %s", code, text)
	}
	if text, _ := says(t, env, "grants"); !strings.Contains(text, "nothing is approved") {
		t.Errorf("in force: %s", text)
	}
	anew := ask("b.txt")
	if text, _ := says(t, env, "explain"); !regexp.MustCompile(`to let it through: postern approve ` + anew + `; postern pending shows all that waits; the yes ` + given + ` ended at [-0-9: ]{19}: the policy changed\n`).MatchString(text) {
		t.Errorf("explained: %s", text)
	}

	p := sit(t, env, 60, "pending", "--watch")
	p.sees(anew)
	p.types("n\r")
	p.sees("denied " + anew)
	last := a.call("write_file", map[string]any{"path": "a.txt", "content": "three\n"})
	p.sees("fs.write project://a.txt")
	edit("")
	if got := last(); !strings.Contains(got, `"code":"grant.mismatch"`) || !strings.Contains(got, "because: the policy changed while the call waited") {
		t.Errorf("the call that waited: %s", got)
	}
	p.sees("because: the question is over: the policy changed")
}
