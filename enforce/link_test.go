// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"context"
	"maps"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// beneathPrivate denies everything in the directory private.
func beneathPrivate() rules {
	deny := map[string]core.Decision{}
	for _, a := range []core.Action{core.FSRead, core.FSList, core.FSWrite, core.FSCreate, core.FSRename, core.FSDelete} {
		deny[a.String()+" project://private/"] = core.Deny
	}
	return rules{deny: deny}
}

// TestLinkToDenied: through a link into a denied directory nothing tells what is
// there, and each name on the way is judged, also the one of a link in it that
// leads out again.
func TestLinkToDenied(t *testing.T) {
	spec := map[string]string{
		"private/x": "X", "private/ln": "-> ../pub", "private/d/e": "E", "pub/y": "Y", "l": "-> private",
		"deep/l": "-> ../private/", "to": "-> l", "f": "F",
	}
	ways := map[string]func(ctx context.Context, g *Gate, name string) error{
		"open": func(ctx context.Context, g *Gate, name string) error { _, err := g.Open(ctx, name); return err },
		"stat": func(ctx context.Context, g *Gate, name string) error { _, _, err := g.Stat(ctx, name); return err },
		"walk": func(ctx context.Context, g *Gate, name string) error {
			return g.Walk(ctx, name, 10, func(*Walk, pathguard.Name) error { return nil })
		},
		"write": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Write(ctx, name, nil, Call{})
			return err
		},
		"append": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Append(ctx, name, nil, Call{})
			return err
		},
		"mkdir": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.MakeDir(ctx, name, Call{})
			return err
		},
		"delete": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Delete(ctx, name, true, Call{})
			return err
		},
		"move": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Move(ctx, name, "n", Call{})
			return err
		},
		"move to": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Move(ctx, "f", name, Call{})
			return err
		},
		"copy": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Copy(ctx, name, "n", Call{})
			return err
		},
	}
	for way, do := range ways {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, beneathPrivate(), spec)
			before := w.tree()
			for _, l := range []string{"l/", "deep/l/", "to/"} {
				for _, name := range []string{"x", "nope", "x/z", "nope/z", "ln/y", "ln/nope", "d/e", "d/e/z"} {
					err := do(t.Context(), w.gate, l+name)
					f := fault.As(err)
					if f == nil || f.Code != fault.PolicyDenied || f.Resource != "project://private/"+name {
						t.Errorf("%s: %v", l+name, err)
					}
				}
			}
			w.unchanged(before)
		})
	}
	// Without the rule each of them is what it is.
	w := newWorld(t, rules{}, spec)
	for name, want := range map[string]fault.Code{"l/x": fault.OK, "to/nope": fault.PathMissing, "l/x/z": fault.PathMissing, "deep/l/ln/y": fault.OK} {
		if _, err := w.gate.Open(t.Context(), name); fault.CodeOf(err) != want {
			t.Errorf("without the rule, %s: %v", name, err)
		}
	}
}

// TestRuleOfALinksName: a rule about the name of a link holds for what is done through
// it, be it a folder on the way or the file itself, be there something or not, and be
// one of writing and creating ruled or both; without the rule it is done.
func TestRuleOfALinksName(t *testing.T) {
	spec := map[string]string{"releases/12/run.sh": "v1", "deploy/current": "-> ../releases/12", "deploy/run": "-> ../releases/12/run.sh", "deploy/hop": "-> current"}
	ways := map[string]func(ctx context.Context, g *Gate, name string) error{
		"write": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Write(ctx, name, []byte("new"), Call{})
			return err
		},
		"append": func(ctx context.Context, g *Gate, name string) error {
			_, err := g.Append(ctx, name, []byte("new"), Call{})
			return err
		},
	}
	handler := func(context.Context, ToolCall) (any, error) { return nil, nil }
	for name, missing := range map[string]bool{"deploy/current/run.sh": false, "deploy/run": false, "deploy/hop/run.sh": false, "deploy/current/new": true, "deploy/hop/new": true} {
		for _, action := range []core.Action{core.FSWrite, core.FSCreate} {
			for d, code := range map[core.Decision]fault.Code{core.Deny: fault.PolicyDenied, core.Ask: fault.PolicyAsk, core.Allow: fault.OK} {
				if (action == core.FSCreate) != missing {
					code = fault.OK
				}
				for way, do := range ways {
					w := newWorld(t, rules{deny: map[string]core.Decision{action.String() + " project://deploy/": d}}, spec)
					before := w.tree()
					err := do(t.Context(), w.gate, name)
					if fault.CodeOf(err) != code || code == fault.OK && err != nil {
						t.Errorf("%s, %s %s, %s: %v", name, action, d, way, err)
					}
					if changed := !maps.Equal(before, w.tree()); changed != (err == nil) {
						t.Errorf("%s, %s %s, %s: changed %v", name, action, d, way, changed)
					}
				}
			}
		}
	}
	for d, code := range map[core.Decision]fault.Code{core.Deny: fault.PolicyDenied, core.Ask: fault.PolicyAsk, core.Allow: fault.OK} {
		w := newWorld(t, rules{deny: map[string]core.Decision{"fs.create project://deploy/": d}}, spec)
		h := w.gate.Guard(Tool{Server: "s", Name: "t", Class: core.Mutating, Params: []Param{Project("from", core.FSRename), Project("to", core.FSRename)}}, handler)
		_, err := h(t.Context(), ToolCall{Args: map[string]any{"from": "releases/12/run.sh", "to": "deploy/current/new"}})
		if fault.CodeOf(err) != code || code == fault.OK && err != nil {
			t.Errorf("a declared rename, %s: %v", d, err)
		}
	}
}
