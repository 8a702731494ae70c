// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// section is a point as docs/deploy.md has it.
type section struct{ Title, Command, ByHand string }

// documented reads the sections of the page.
func documented(t *testing.T, page string) (all []section) {
	t.Helper()
	for i, part := range strings.Split(page, "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		number := fmt.Sprintf("%d. ", i+1)
		if !strings.HasPrefix(title, number) {
			t.Errorf("section %d is %q", i+1, title)
		}
		s := section{Title: strings.TrimPrefix(title, number)}
		for line := range strings.Lines(text) {
			if c, ok := strings.CutPrefix(line, "Command: `"); ok {
				s.Command = strings.TrimSuffix(strings.TrimSpace(c), "`")
			}
			if c, ok := strings.CutPrefix(line, "By hand: "); ok {
				s.ByHand = strings.TrimSuffix(strings.TrimSpace(c), ".")
			}
		}
		all = append(all, s)
	}
	return all
}

// TestDeployPage: the page and the command have the same points, in the same
// order, with the same commands and the same work for a person.
func TestDeployPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want []section
	for _, p := range points() {
		want = append(want, section{p.title, p.command, p.byHand})
	}
	if d := cmp.Diff(want, documented(t, string(page))); d != "" {
		t.Error(d)
	}
	if len(want) != 9 {
		t.Errorf("%d points", len(want))
	}
}

// TestDeploy: what is wrong at each point is found; the first row of each is
// its control.
func TestDeploy(t *testing.T) {
	tests := []struct {
		number int
		make   func(*machine)
		status Status
		text   string
	}{
		{1, func(*machine) {}, Skipped, "no agent is found here"},
		{1, func(m *machine) { m.put(filepath.Join(m.project, ".cursor/rules"), "", 0o600) }, Skipped, "how each is set can't be seen from here: Cursor"},
		{2, func(m *machine) { m.put(filepath.Join(m.project, "f"), "", 0o600) }, Pass, "none by its name"},
		{2, func(m *machine) { m.put(filepath.Join(m.project, "sub/.env"), "", 0o600) }, Warn, "1 file that holds secrets by its name lies there: "},
		{2, func(m *machine) {
			m.put(filepath.Join(m.project, "sub/.env"), "", 0o600)
			m.put(filepath.Join(m.project, ".env"), "", 0o600)
		}, Warn, "2 files that hold secrets by their names lie there, the first is "},
		{2, func(m *machine) {
			m.put(filepath.Join(m.project, ".env"), "", 0o600)
			m.policy("version: 1\nallow_sensitive: [dotenv]\nrules: { fs.read: allow }\n")
		}, Fail, "lets agents read it"},
		{3, func(m *machine) {
			m.put(filepath.Join(m.project, ".cursor/rules"), "", 0o600)
		}, Warn, "not attached: Cursor"},
		{3, func(m *machine) { m.mcp(m.o.Self, "serve", "--agent", "claude-code", m.project) }, Skipped, "can't be seen from here"},
		{4, func(*machine) {}, Pass, "deleting asks a person: postern approve, or the page"},
		{4, func(m *machine) { m.policy("version: 1\nrules: { fs.delete: deny }\n") }, Pass, "outside is always refused, and so is deleting"},
		{4, func(m *machine) { m.policy("version: 1\nrules: { fs.delete: allow }\n") }, Warn, "deleting is allowed"},
		{5, func(*machine) {}, Skipped, "no hook"},
		{5, func(m *machine) { m.policy("version: 1\nrules: { proc.exec: allow }\n") }, Warn, "the policy allows it"},
		{7, func(*machine) {}, Pass, "no agent writes them"},
		{7, func(m *machine) {
			m.policy("version: 1\nallow_sensitive: [git]\nrules: { fs.write: allow }\n")
		}, Fail, "agents may write project://.git/hooks/pre-commit"},
		{8, func(*machine) {}, Skipped, "nothing is recorded yet"},
		{8, func(m *machine) { m.open() }, Skipped, "nothing is recorded yet"},
		{8, func(m *machine) { m.record(3) }, Pass, "is as it was signed; records never hold"},
		{8, func(m *machine) { m.tamper(m.record(3)) }, Fail, "audit.broken: "},
		{8, func(m *machine) { m.put(filepath.Join(m.open(), "audit", "000001.jsonl"), "{}\n", 0o600) }, Fail, "the key of the log is gone; postern log verify tells more"},
		{9, func(*machine) {}, Skipped, "was not run"},
		{9, func(m *machine) { m.o.Selftest = func(context.Context) error { return nil } }, Pass, "every mechanism holds"},
		{9, func(m *machine) { m.o.Selftest = func(context.Context) error { return errors.New("no") } }, Fail, ""},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprint(tc.number, " ", tc.text), func(t *testing.T) {
			m := newMachine(t)
			tc.make(m)
			p := Deploy(t.Context(), m.o)[tc.number-1]
			if p.Number != tc.number || p.Status != tc.status || !strings.Contains(p.Text, tc.text) || p.Checked == (tc.status == Skipped) {
				t.Errorf("%+v, want %v %q", p, tc.status, tc.text)
			}
		})
	}
}
