// SPDX-License-Identifier: Apache-2.0

//go:build unix

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkedPolicy: a link to a policy is as good as its owner, its folder and those
// above, which a start doesn't refuse.
func TestLinkedPolicy(t *testing.T) {
	for what, tc := range map[string]struct {
		spoil  func(m *machine, link string)
		status Status
		text   string
	}{
		"mine":                 {func(*machine, string) {}, Pass, "nobody else can change it"},
		"in a sticky one":      {func(m *machine, link string) { m.must(os.Chmod(filepath.Dir(link), 0o777|os.ModeSticky)) }, Pass, "nobody else can change it"},
		"further up, sticky":   {func(m *machine, link string) { m.must(os.Chmod(filepath.Dir(filepath.Dir(link)), 0o777|os.ModeSticky)) }, Pass, "nobody else can change it"},
		"further up":           {func(m *machine, link string) { m.must(os.Chmod(filepath.Dir(filepath.Dir(link)), 0o777)) }, Warn, "somebody else can replace it, in "},
		"to nothing":           {func(m *machine, link string) { m.must(os.Remove(link)) }, Fail, "leads to nothing"},
		"another's":            {func(m *machine, link string) { m.must(os.Lchown(link, 65534, -1)) }, Fail, "belongs to somebody else"},
		"another's further up": {func(m *machine, link string) { m.must(os.Lchown(filepath.Dir(filepath.Dir(link)), 65534, -1)) }, Warn, "somebody else can replace it, in "},
	} {
		if os.Geteuid() != 0 && strings.HasPrefix(what, "another's") {
			continue // only root can give it away
		}
		m := newMachine(t)
		m.policy("version: 1\n")
		file, link := filepath.Join(m.home, ".config/postern/policy.yaml"), filepath.Join(m.box, "up/in/link")
		m.must(os.MkdirAll(filepath.Dir(link), 0o755), os.Rename(file, file+"x"), os.Symlink(file+"x", link), os.Symlink(link, file))
		tc.spoil(m, link)
		if got := m.of("policy"); len(got) != 1 || got[0].Status != tc.status || !strings.Contains(got[0].Text, tc.text) {
			t.Errorf("%s: %+v, want %v %q", what, got, tc.status, tc.text)
		}
	}
}

// TestLinkedProgram: so is a link to the program.
func TestLinkedProgram(t *testing.T) {
	m := newMachine(t)
	link := filepath.Join(m.box, "tmp/postern")
	m.must(os.Mkdir(filepath.Dir(link), 0o755), os.Chmod(filepath.Dir(link), 0o777|os.ModeSticky), os.Symlink(m.o.Self, link))
	m.o.Self = link
	if got := m.of("program"); len(got) != 1 || got[0].Status != Pass {
		t.Errorf("mine: %+v", got)
	}
	if os.Geteuid() != 0 {
		return // only root can give it away
	}
	m.must(os.Lchown(link, 65534, -1))
	if got := m.of("program"); len(got) != 1 || got[0].Status != Fail || !strings.Contains(got[0].Text, "belongs to another user") {
		t.Errorf("another's: %+v", got)
	}
}
