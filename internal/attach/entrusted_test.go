// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postern-gate/postern/internal/links"
)

func entrust(w World, stateDir string) Entrusted { return Entrust(new(links.Look), w, stateDir) }

// TestEntrust: what no agent may change is known by today's surroundings, by the
// defaults, by what init did, and by where links lead.
func TestEntrust(t *testing.T) {
	p := newPlace(t)
	elsewhere := filepath.Join(filepath.Dir(p.w.Home), "elsewhere")
	env := map[string]string{}
	p.w.Getenv = func(name string) string { return env[name] }
	holds := func(list []string, path string, want bool) {
		t.Helper()
		if slices.Contains(list, path) != want {
			t.Errorf("%s is entrusted: %v, want %v, in %q", path, !want, want, list)
		}
	}
	moved := filepath.Join(elsewhere, "config.toml")
	holds(entrust(p.w, p.state).Places[agents], moved, false) // control
	env["CODEX_HOME"] = elsewhere
	now := entrust(p.w, p.state)
	holds(now.Places[agents], moved, true)
	holds(now.Places[agents], elsewhere, true)
	holds(now.Places[agents], p.home(".codex/config.toml"), true)
	for _, c := range Clients() {
		holds(now.Places[agents], c.userFile(p.w), true)
	}

	// What init did is known without the variable.
	plan, err := NewPlan(p.w, Server{Command: program}, []Client{client(t, "codex")}, []File{{Path: filepath.Join(elsewhere, "policy.yaml"), Text: []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	p.apply(plan)
	delete(env, "CODEX_HOME")
	now = entrust(p.w, p.state)
	holds(now.Places[agents], moved, true)
	holds(now.Places[policies], filepath.Join(elsewhere, "policy.yaml"), true)
	if err := os.Symlink(elsewhere, p.home(".codex")); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	holds(entrust(p.w, t.TempDir()).Places[agents], filepath.Join(real, "config.toml"), true) // by the link alone
	if len(now.Unread) != 0 {
		t.Error(now.Unread)
	}
	p.put(journalPath(p.state, p.w.Project), "{")
	now = entrust(p.w, p.state)
	if len(now.Unread) != 1 || now.Unread[0] != journalPath(p.state, p.w.Project) {
		t.Errorf("%q", now.Unread)
	}
}
