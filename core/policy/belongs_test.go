// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

// TestBelongs: what a person is asked about is known to be of a built-in list, be
// the entry lifted, and so is whatever else is done to such a file; an ordinary one
// is of none. Only of a secret no record spells the name.
func TestBelongs(t *testing.T) {
	lists := map[string][2]string{ // the list, the class
		".git/hooks/pre-commit": {"git", ""}, ".envrc": {"editors", ""}, ".mcp.json": {"agents", ""}, "x/own": {"agents", ""},
		"home/ann/.bashrc": {"shell", ""}, ".env": {"dotenv", "dotenv"}, "a/.ENV": {"dotenv", "dotenv"},
		"main.go": {}, ".env.example": {}, ".git/description": {}, "home/.bashrc": {}, "": {},
	}
	for _, lift := range [][]string{nil, policy.Entries()} {
		for _, decision := range []core.Decision{core.Ask, core.Allow, core.Deny} {
			p, err := policy.Compile(policy.Config{
				Roots: []policy.Root{{Name: "r", Homes: []string{"home/*"}}}, Lift: lift,
				Protected: []policy.Protected{{Root: "r", Path: "x/own", Entry: "agents"}},
				Layers:    []policy.Layer{{Default: &policy.Outcome{Decision: decision}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range []core.Action{core.FSRead, core.FSList, core.FSWatch, core.FSWrite, core.FSCreate, core.FSRename, core.FSDelete} {
				for name, want := range lists {
					v := p.Evaluate(core.Request{Action: a, Resource: core.File("r", name)})
					if !a.Mutates() && decision != core.Ask && lift == nil && want[1] == "" {
						want[0] = "" // nobody is asked, so nobody wants to know
					}
					if got := [2]string{v.List, v.Class}; got != want {
						t.Errorf("lifted %v, %v: %v %q belongs to %q, want %q", lift, decision, a, name, got, want)
					}
				}
			}
		}
	}
}
