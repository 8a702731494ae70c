// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// TestExpandedNames: a folder whose name a client would read as something else is
// refused for it, in its words, and an entry that has one is doubted.
func TestExpandedNames(t *testing.T) {
	dollar := []string{"claude-code", "cursor", "vscode", "gemini-cli", "windsurf", "copilot-cli", "kiro"}
	for name, by := range map[string][]string{
		"plain": nil, "a$": nil, "100%": nil, "{}": nil, "~": nil, "$": nil, "env:HOME": nil, // the controls
		"${HOME}": dollar, "${X:-..}": dollar, "a${userHome}b": dollar, "${open": dollar,
		"$HOME": {"gemini-cli", "copilot-cli"}, "%VAR%": {"gemini-cli"},
		"{env:HOME}": {"opencode"}, "{file:x}": {"opencode"},
	} {
		p := newPlace(t)
		p.w.Project = filepath.Join(p.w.Project, name)
		if err := os.MkdirAll(p.w.Project, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, c := range Clients() {
			refused := strings.Contains(" "+strings.Join(by, " ")+" ", " "+c.ID+" ")
			plan, err := NewPlan(p.w, Server{Command: program}, []Client{c}, nil)
			if err == nil {
				plan.Close()
			}
			if (fault.CodeOf(err) == fault.RequestInvalid) != refused {
				t.Errorf("%s, %s: %v", name, c.ID, err)
			}
			if refused && (!strings.Contains(fault.As(err).Because(), c.Name) || !strings.Contains(fault.As(err).Next(), "rename") || fault.As(err).Resource != p.w.Project) {
				t.Errorf("%s, %s: %v", name, c.ID, err)
			}
			a := Attachment{Client: c, Command: program, Args: []string{"serve", "--agent", c.ID, p.w.Project}, InProject: true}
			if doubt := a.Doubt(p.w.Project); (doubt != "") != refused {
				t.Errorf("%s, %s: %q", name, c.ID, doubt)
			}
		}
	}
}

// TestExpandedProgram: the program's path is in the entry too.
func TestExpandedProgram(t *testing.T) {
	p := newPlace(t)
	_, err := NewPlan(p.w, Server{Command: "/opt/${X}/postern"}, []Client{client(t, "cursor")}, nil)
	if fault.CodeOf(err) != fault.RequestInvalid || fault.As(err).Resource != "/opt/${X}/postern" {
		t.Errorf("%v", err)
	}
	_, err = NewPlan(p.w, Server{Command: "/opt/${X}/postern"}, []Client{client(t, "codex")}, nil) // control
	if err != nil {
		t.Error(err)
	}
}
