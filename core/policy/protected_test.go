// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/postern-gate/postern/core"
)

// TestPartOfAPlace: of a place only what the pattern says is held, the root's top too,
// and the place's name is no pattern.
func TestPartOfAPlace(t *testing.T) {
	d := Default()
	c := Config{
		Fallback: &d, Roots: []Root{{Name: "r"}, {Name: "top"}, {Name: "other"}},
		Protected: []Protected{{Root: "r", Path: "x[d]g", Entry: "editors", Below: "*/User/**"}, {Root: "top", Entry: "editors", Below: "*/User/**"}},
	}
	p, err := Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[[2]string]core.Decision{
		{"r", "x[d]g/Kode/User/tasks.json"}: core.Deny, {"r", "x[d]g/Kode/User"}: core.Deny, {"r", "x[d]g/kode/user/a"}: core.Deny,
		{"r", "x[d]g/Kode/tasks.json"}: core.Allow, {"r", "x[d]g/User/x"}: core.Allow, {"r", "xdg/Kode/User/x"}: core.Allow, {"r", "Kode/User/x"}: core.Allow,
		{"top", "Kode/User/x"}: core.Deny, {"top", "a/Kode/User/x"}: core.Allow, {"other", "Kode/User/x"}: core.Allow,
	} {
		if got := p.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File(name[0], name[1])}); got.Decision != want || want == core.Deny && got.Reason.Builtin != "editors" {
			t.Errorf("%s: %v by %q", name, got.Decision, got.Reason.Builtin)
		}
	}
	c.Lift = []string{"editors"}
	if p, err = Compile(c); err != nil || p.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File("top", "Kode/User/x")}).Decision != core.Allow {
		t.Errorf("lifted: %v", err)
	}
}
