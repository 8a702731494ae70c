// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/state/live"
)

// TestOtherProgram: a process that has the state directory open and runs
// another program is told; one of this program is counted.
func TestOtherProgram(t *testing.T) {
	m := newMachine(t)
	file, err := os.Create(filepath.Join(m.open(), "held"))
	m.must(err)
	defer file.Close()
	cmd := exec.Command("sleep", "60")
	cmd.ExtraFiles = []*os.File{file}
	m.must(cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	found := m.of("processes")
	if !slices.ContainsFunc(found, func(r Result) bool {
		return r.Status == Warn && strings.Contains(r.Text, "runs another program") && strings.Contains(r.Text, "sleep")
	}) {
		t.Errorf("%+v", found)
	}
	program, err := exec.LookPath("sleep")
	m.must(err)
	m.o.Self = program
	if found := m.of("processes"); len(found) != 1 || found[0].Status != Pass || !strings.HasPrefix(found[0].Text, "1 other") {
		t.Errorf("%+v", found)
	}
}

// TestUnsigned: records that stay unsigned while a process lives are told.
func TestUnsigned(t *testing.T) {
	m := newMachine(t)
	dir := m.open()
	segment, signed := filepath.Join(dir, "audit", "000001.jsonl"), filepath.Join(dir, "checkpoint")
	m.put(segment, "{}\n", 0o600)
	m.put(signed, "{}", 0o600)
	at := func(path string, ago time.Duration) {
		then := time.Now().Add(-ago)
		m.must(os.Chtimes(path, then, then))
	}
	status := func(want Status, what string) {
		t.Helper()
		if found := m.of("signed"); len(found) != 1 || found[0].Status != want {
			t.Errorf("%s: %+v", what, found)
		}
	}
	at(signed, 2*time.Hour)
	at(segment, time.Hour)
	status(Pass, "nobody lives")
	p, err := live.Open(dir).Announce("aa", nil)
	m.must(err)
	defer func() { m.must(p.Close()) }()
	status(Warn, "somebody lives, and an hour is long")
	at(segment, time.Second)
	status(Pass, "it was written just now")
	at(segment, 3*time.Hour)
	status(Pass, "all of it is signed")
}

// TestShellLine: what a shell would read otherwise is not offered for pasting.
func TestShellLine(t *testing.T) {
	for want, args := range map[string][]string{
		"run it in a shell: /p serve --agent=x ./a":                        {"serve", "--agent=x", "./a"},
		"run the line of the entry in a shell, once you have looked at it": {"serve", "$(rm -rf ~)"},
	} {
		if got := shellLine("/p", args); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, bad := range []string{"", "a b", "`x`", ";", "a\nb", "~", "*", "é"} {
		if !strings.Contains(shellLine("/p", []string{bad}), "once you have looked at it") {
			t.Errorf("%q is offered", bad)
		}
	}
}
