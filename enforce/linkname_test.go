// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/state/grant"
)

func shippedWith(t *testing.T, c policy.Config) *policy.Policy {
	t.Helper()
	d := policy.Default()
	c.Roots, c.Fallback = []policy.Root{{Name: "project"}}, &d
	p, err := policy.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// guarding denies what a rule of a person, a place of ours and the lists do.
func guarding(t *testing.T) *policy.Policy {
	return shippedWith(t, policy.Config{
		Layers: []policy.Layer{{Rules: map[core.Action]policy.Rules{core.FSWrite: {
			Matches: []policy.Match{{Pattern: policy.Pattern{Text: "asked/*.sql"}, Decision: core.Ask}}, Else: &policy.Outcome{Decision: core.Allow},
		}}}},
		Protected: []policy.Protected{{Root: "project", Path: "cfg/postern/policy.yaml", Entry: "postern"}},
	})
}

var withLinks = map[string]string{
	"latest": "-> v2", "v2/settings.json": "{}", "nothing": "-> gone", "loop": "-> loop", "tofile": "-> v2/settings.json", "real/x.md": "",
	"pkg/conf": "-> ../v2", "pkg/inner/.vscode": "-> ../../v2", "plain/conf": "-> ../v2", "db/a": "", "rules/rules": "-> ../v2",
}

// TestLinkName: no link gets a name that would give what it leads to one that the
// policy protects, alone or with its folder.
func TestLinkName(t *testing.T) {
	refused := map[[2]string]string{ // the move and the name that is refused
		{"latest", ".claude"}: ".claude", {"latest", "db/.cursor"}: "db/.cursor", {"latest", ".config"}: ".config", {"nothing", ".vscode"}: ".vscode",
		{"loop", ".vscode"}: ".vscode", {"tofile", ".vscode"}: ".vscode", {"latest", "cfg"}: "cfg", {"latest", "asked"}: "asked",
		{"pkg", "web"}: "web/inner/.vscode", {"rules", ".claude"}: ".claude/rules",
	}
	for names, at := range refused {
		w := newWorld(t, guarding(t), withLinks)
		before := w.tree()
		_, err := w.gate.Move(t.Context(), names[0], names[1], Call{})
		f := fault.As(err)
		if f == nil || f.Code != fault.PolicyDenied || f.Resource != "project://"+at {
			t.Errorf("%v: %+v, want a refusal of %s", names, f, at)
			continue
		}
		if f.Hint == "" || !strings.Contains(f.Rule, "a link of this name") {
			t.Errorf("%v: %q, next %q", names, f.Rule, f.Hint)
		}
		w.unchanged(before)
	}
}

// TestLinkOtherName: the link gets every other name, and a file or folder that one
// where it may.
func TestLinkOtherName(t *testing.T) {
	for _, names := range [][2]string{
		{"latest", "stable"},
		{"latest", "db/a2"},
		{"nothing", "x"},
		{"loop", "x"},
		{"tofile", "v2/other.json"},
		{"plain", "web"},
		{"plain", ".github"},
		{"real", "cfg"},
		{"real", "asked"},
		{"real", ".config"},
		{"real", ".claude"},
		{"db/a", "cfg"},
		{"v2/settings.json", "real/settings.json"},
	} {
		w := newWorld(t, guarding(t), withLinks)
		if _, err := w.gate.Move(t.Context(), names[0], names[1], Call{}); err != nil {
			t.Errorf("%v: %v", names, err)
		}
		if _, err := os.Lstat(w.path(names[1])); err != nil {
			t.Error(err)
		}
	}
}

// TestLinkReturns: a person who takes back the move of a folder gives nothing that
// came into it since a name that the policy protects.
func TestLinkReturns(t *testing.T) {
	came := map[string]func(w *undoWorld){
		"":                   func(*undoWorld) {},
		"a link":             func(w *undoWorld) { w.must(os.Symlink("../v2", w.path("tmp/rules"))) },
		"a file":             func(w *undoWorld) { w.put("tmp/settings.json", "{}") },
		"a deeper link":      func(w *undoWorld) { w.put("tmp/rules/a/b", "-> ../../../v2") },
		"a file of the kind": func(w *undoWorld) { w.put("tmp/NOTES.md", "") },
	}
	for name, change := range came {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{".claude/CLAUDE.md": "", "v2/settings.json": ""})
		out, err := w.gate.Move(t.Context(), ".claude", "tmp", Call{Confirm: true})
		w.must(err)
		change(w)
		plan, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: out.UndoID}, person())
		w.must(err)
		_, err = w.state.Undo(t.Context(), plan, Person{Decider: guarding(t)})
		w.must(err)
		_, err = os.Lstat(w.path(".claude"))
		harmless := name == "" || name == "a file of the kind"
		if (err == nil) != harmless || (plan.Problems() == 0) != harmless || !harmless && plan.Steps[0].Problem != UndoConflict {
			t.Errorf("%s: it is back: %v, %+v", name, err == nil, plan.Steps)
		}
	}
}

// TestLinkHeld: a link that leads to protected names is not moved or removed, with
// its folder neither, and what it leads to is written under neither name.
func TestLinkHeld(t *testing.T) {
	d := shippedWith(t, policy.Config{
		Layers:    []policy.Layer{{Rules: map[core.Action]policy.Rules{core.FSDelete: {Else: &policy.Outcome{Decision: core.Allow}}}}},
		Links:     []policy.Link{{Root: "project", Path: "a/cfg", ToRoot: "project", To: "dot"}, {Root: "project", Path: ".vscode", ToRoot: "project", To: "dot"}},
		Protected: []policy.Protected{{Root: "project", Path: "a/cfg/policy.yaml", Entry: "postern"}},
	})
	spec := map[string]string{"a/cfg": "-> ../dot", ".vscode": "-> dot", "dot/x": "", "latest": "-> v2", "v2/x": "", "b/link": "-> ../v2"}
	calls := map[string]func(g *Gate) (Outcome, error){
		"move":       func(g *Gate) (Outcome, error) { return g.Move(t.Context(), "a/cfg", "x", Call{}) },
		"move all":   func(g *Gate) (Outcome, error) { return g.Move(t.Context(), "a", "x", Call{}) },
		"delete":     func(g *Gate) (Outcome, error) { return g.Delete(t.Context(), ".vscode", false, Call{Confirm: true}) },
		"delete all": func(g *Gate) (Outcome, error) { return g.Delete(t.Context(), "a", true, Call{Confirm: true}) },
		"write":      func(g *Gate) (Outcome, error) { return g.Write(t.Context(), "dot/tasks.json", nil, Call{}) },
		"write over": func(g *Gate) (Outcome, error) { return g.Write(t.Context(), "a/cfg/policy.yaml", nil, Call{}) },
		"copy":       func(g *Gate) (Outcome, error) { return g.Copy(t.Context(), "v2/x", "dot/launch.json", Call{}) },
		"dir":        func(g *Gate) (Outcome, error) { return g.MakeDir(t.Context(), "dot/settings.json", Call{}) },
	}
	for name, call := range calls {
		w := newWorld(t, d, spec)
		before := w.tree()
		if _, err := call(w.gate); fault.CodeOf(err) != fault.PolicyDenied {
			t.Errorf("%s: %v", name, err)
		}
		w.unchanged(before)
	}
	w := newWorld(t, d, spec)
	_, err := w.gate.Delete(t.Context(), "latest", false, Call{Confirm: true})
	_, err2 := w.gate.Delete(t.Context(), "b", true, Call{Confirm: true})
	_, err3 := w.gate.Write(t.Context(), "dot/extensions.json", nil, Call{})
	if err != nil || err2 != nil || err3 != nil {
		t.Errorf("other links and names: %v, %v, %v", err, err2, err3)
	}
}

// TestYesAfterLink: a yes, which a link that somebody makes doesn't void, lets
// nothing through that the lists know by that link.
func TestYesAfterLink(t *testing.T) {
	asks := []policy.Layer{{Rules: map[core.Action]policy.Rules{core.FSWrite: {Else: &policy.Outcome{Decision: core.Ask}}}}}
	known := policy.Link{Root: "project", Path: ".vscode", ToRoot: "project", To: "dot"}
	before, after := shippedWith(t, policy.Config{Layers: asks}), shippedWith(t, policy.Config{Layers: asks, Links: []policy.Link{known}})
	for _, k := range []grant.Kind{grant.Once, grant.Session, grant.Pattern, grant.Until, grant.Always} {
		for _, name := range []string{"dot/tasks.json", "v2/tasks.json"} {
			d := newDesk(t, nil, map[string]string{"dot/tasks.json": "", "v2/tasks.json": ""})
			write := func(p *policy.Policy) error {
				_, err := d.call(func(o *Options) { o.Decider = p }).Write(t.Context(), name, []byte("new"), Call{})
				return err
			}
			if err := write(before); fault.CodeOf(err) != fault.PolicyAsk {
				t.Fatal(err)
			}
			_, err := d.person.Decide(t.Context(), d.person.Pending()[0].ID, grant.Answer{Kind: k, Approver: "terminal", Life: time.Hour, Pattern: "project://**"})
			d.must(err)
			want := fault.OK
			if name == "dot/tasks.json" {
				want = fault.PolicyDenied
			}
			if err := write(after); fault.CodeOf(err) != want {
				t.Errorf("%s for %s: %v", k, name, err)
			}
		}
	}
}
