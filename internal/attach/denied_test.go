// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"path/filepath"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

// TestEntriesAreOutOfReach: an agent whose root is the project, or the home
// folder, can neither change nor make any file that an entry may be written to,
// on any system: else it could take postern out again, or start what it likes.
func TestEntriesAreOutOfReach(t *testing.T) {
	fallback := policy.Default()
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "root"}}, Fallback: &fallback})
	if err != nil {
		t.Fatal(err)
	}
	decide := func(a core.Action, name string) core.Decision {
		return p.Evaluate(core.Request{Action: a, Resource: core.File("root", filepath.ToSlash(name))}).Decision
	}
	var n int
	for _, system := range []string{"linux", "darwin", "windows"} {
		w := World{Home: "/home/you", Project: "/src/app", GOOS: system, Getenv: func(string) string { return "" }}
		for _, c := range Clients() {
			for _, f := range c.files(w) {
				root := w.Home
				if f.project {
					root = w.Project
				}
				name, err := filepath.Rel(root, f.path)
				if err != nil {
					t.Fatal(err)
				}
				n++
				for _, a := range []core.Action{core.FSWrite, core.FSCreate, core.FSRename, core.FSDelete} {
					if got := decide(a, name); got != core.Deny {
						t.Errorf("%s on %s: %v of %s is %v", c.ID, system, a, name, got)
					}
				}
				if got := decide(core.FSWrite, "x"+name); f.project && got != core.Allow {
					t.Errorf("control: %s: x%s is %v", c.ID, name, got)
				}
			}
		}
	}
	if n < 3*(len(Clients())+8) {
		t.Errorf("only %d files", n)
	}
}
