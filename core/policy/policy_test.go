// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
)

func TestRequire(t *testing.T) {
	get := func(p *policy.Policy) (out []string) {
		for _, a := range core.Actions() {
			if p.ConfirmRequired(a) {
				out = append(out, "confirm "+a.String())
			}
			if p.IfMatchRequired(a) {
				out = append(out, "ifMatch "+a.String())
			}
		}
		return out
	}
	none := policy.Layer{Confirm: []core.Action{}}
	move := policy.Layer{Confirm: []core.Action{core.FSRename}, IfMatch: []core.Action{core.FSWrite}}
	tight := move
	tight.Tighten = true
	for name, tc := range map[string]struct {
		p    *policy.Policy
		want []string
	}{
		"default":       {shipped(t), []string{"confirm fs.delete"}},
		"none":          {shipped(t, none), nil},
		"stated":        {shipped(t, move, none), []string{"ifMatch fs.write", "confirm fs.rename"}},
		"project adds":  {shipped(t, tight), []string{"ifMatch fs.write", "confirm fs.rename", "confirm fs.delete"}},
		"project empty": {shipped(t, policy.Layer{Tighten: true, Confirm: []core.Action{}}), []string{"confirm fs.delete"}},
		"no fallback":   {compile(t, policy.Config{}), nil},
	} {
		if d := cmp.Diff(tc.want, get(tc.p)); d != "" {
			t.Errorf("%s: -want +got\n%s", name, d)
		}
	}
}

func TestExplainListsEveryMatch(t *testing.T) {
	l := policy.Layer{
		Deny: pats("a/**"), Allow: pats("**", "a/b"),
		Rules:   rules(core.FSWrite, policy.Rules{Matches: slices.Concat(match(core.Ask, "a/b"), match(core.Allow, "**"))}),
		Agents:  map[string]map[core.Action]policy.Rules{"x": rules(core.FSWrite, say(core.Ask))},
		Default: &policy.Outcome{Decision: core.Deny},
	}
	far := policy.Layer{Tighten: true, Root: "user", Deny: pats("**")}
	near := policy.Layer{Tighten: true, Root: "project", Allow: pats("c")}
	r := file(core.FSWrite, "a/b")
	r.Subject = core.Subject{Agent: "x", Proven: true}
	texts := func(p *policy.Policy, r core.Request) (out []string) {
		for _, reason := range p.Explain(r) {
			out = append(out, reason.Step.String()+": "+reason.Rule)
		}
		return out
	}
	got := texts(shipped(t, l, far, near), r)
	wantTexts := []string{
		`explicit deny: deny "a/**"`,
		`allowed boundary: allow "**"`, `allowed boundary: allow "a/b"`, `allowed boundary: allow`, `allowed boundary: allow "**"`,
		`agent rule: agents x fs.write: ask`,
		`general rule: ask "a/b"`, `general rule: allow "**"`, `general rule: fs.write: allow`,
		`default: default: deny`, `default: default: deny`,
	}
	if d := cmp.Diff(dedupe(wantTexts), dedupe(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := texts(shipped(t), file(core.FSWrite, ".git/hooks/x")); got[0] != `explicit deny: deny "**/.git/hooks/**"` || len(got) != 5 {
		t.Errorf("built-in: %q", got)
	}
	if got := texts(shipped(t), file(core.FSRead, "/x")); len(got) != 1 {
		t.Errorf("containment: %q", got)
	}
	tool := core.Request{Action: core.ToolCall, Resource: core.File("s", "t"), Class: core.Mutating}
	if got := texts(shipped(t), tool); !slices.Equal(got, []string{"general rule: tool.call class mutating: ask", "default: default: deny"}) {
		t.Errorf("tool: %q", got)
	}
}

func dedupe(in []string) []string { slices.Sort(in); return slices.Compact(in) }

func TestVersionIsOfWhatDecides(t *testing.T) {
	base := func() policy.Layer {
		return policy.Layer{
			Deny: pats("a", "b"), Allow: pats("**"), Default: &policy.Outcome{Decision: core.Ask},
			Rules: map[core.Action]policy.Rules{
				core.FSWrite:  {Matches: match(core.Ask, "m", "n"), Else: &policy.Outcome{Decision: core.Allow}},
				core.ToolCall: {Class: map[core.Class]policy.Outcome{core.ReadOnly: {Decision: core.Allow}}},
			},
			Agents: map[string]map[core.Action]policy.Rules{"x": rules(core.FSRead, say(core.Ask)), "y": rules(core.FSRead, say(core.Deny))},
		}
	}
	first := shipped(t, base()).Version()
	moved := base()
	slices.Reverse(moved.Deny)
	slices.Reverse(moved.Rules[core.FSWrite].Matches)
	moved.Deny[0].Pos, moved.Deny[1].Why = core.Position{Line: 9}, "words"
	if got := shipped(t, moved).Version(); got != first || len(got) != 64 {
		t.Errorf("order, place or words changed the version: %s", got)
	}
	if got := shipped(t, base(), policy.Layer{Tighten: true, Root: "project"}).Version(); got != first {
		t.Errorf("a layer that says nothing changed the version: %s", got)
	}
	seen := map[string]string{first: "base"}
	for name, change := range map[string]func(*policy.Layer){
		"deny":     func(l *policy.Layer) { l.Deny = pats("a") },
		"allow":    func(l *policy.Layer) { l.Allow = nil },
		"default":  func(l *policy.Layer) { l.Default = nil },
		"rule":     func(l *policy.Layer) { l.Rules[core.FSRead] = say(core.Ask) },
		"class":    func(l *policy.Layer) { l.Rules[core.ToolCall].Class[core.ReadOnly] = policy.Outcome{} },
		"agent":    func(l *policy.Layer) { delete(l.Agents, "x") },
		"require":  func(l *policy.Layer) { l.IfMatch = []core.Action{core.FSWrite} },
		"tighten":  func(l *policy.Layer) { l.Tighten = true },
		"its root": func(l *policy.Layer) { l.Root = "project" },
	} {
		l := base()
		change(&l)
		v := shipped(t, l).Version()
		if other, dup := seen[v]; dup {
			t.Errorf("%s has the version of %s", name, other)
		}
		seen[v] = name
	}
}

func TestCompileRefuses(t *testing.T) {
	pos := core.Position{File: "p", Line: 4, Column: 2}
	one := func(s string) []policy.Pattern { return []policy.Pattern{{Text: s, Pos: pos}} }
	m := func(a core.Action, d core.Decision, s string) policy.Layer {
		return policy.Layer{Rules: rules(a, policy.Rules{Matches: []policy.Match{{Pattern: one(s)[0], Decision: d}}})}
	}
	for want, l := range map[string]policy.Layer{
		"p:4:2: the pattern ends in a slash":        {Deny: one("a/")},
		"p:4:2: no root is called nope":             {Deny: one("nope://a")},
		"write project://** for the whole root":     {Deny: one("project://")},
		"without the leading slash":                 {Allow: one("/a")},
		"braces":                                    {Agents: map[string]map[core.Action]policy.Rules{"x": m(core.FSRead, core.Ask, "{a}").Rules}},
		"only a pattern for files has a scheme":     m(core.NetFetch, core.Ask, "http://a"),
		"a host has no slash":                       m(core.NetFetch, core.Ask, "a/b"),
		"a tool is named server/tool":               m(core.ToolCall, core.Allow, "github"),
		"named by its base name or its absolute":    m(core.ProcExec, core.Ask, "bin/x"),
		"p:4:2: an empty class":                     m(core.ProcExec, core.Ask, "[]"),
		"longer than 4096":                          {Deny: one("**/" + strings.Repeat("a", 4092))},
		"** must be a whole segment":                {Deny: one("**x")},
		"a range that runs backwards holds nothing": {Allow: one("[b-a]")},
	} {
		for _, c := range []policy.Config{{Roots: []policy.Root{project}, Layers: []policy.Layer{l}}, {Roots: []policy.Root{project}, Fallback: &l}} {
			p, err := policy.Compile(c)
			var e *fault.Error
			if p != nil || !errors.As(err, &e) || e.Code != fault.ConfigInvalid || !strings.Contains(e.Rule, want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
	}
	for _, name := range []string{"nope", "postern", "postern-state"} {
		if _, err := policy.Compile(policy.Config{Lift: []string{name}}); fault.CodeOf(err) != fault.ConfigInvalid {
			t.Errorf("lifting %q: %v", name, err)
		}
	}
	if err := policy.Check(core.ActionUnknown, core.Deny, "project://a", []policy.Root{project}); err != nil {
		t.Error(err)
	}
	if err := policy.Check(core.ProcExec, core.Deny, "C:/x/**", nil); err != nil {
		t.Error(err)
	}
	if err := policy.Check(core.FSRead, core.Allow, "x://a", nil); err == nil {
		t.Error("an unknown root passes")
	}
}

// TestAgents: a policy names the agents of all its layers, each once.
func TestAgents(t *testing.T) {
	of := func(names ...string) policy.Layer {
		l := policy.Layer{Agents: map[string]map[core.Action]policy.Rules{}}
		for _, n := range names {
			l.Agents[n] = nil
		}
		return l
	}
	last := of("c")
	p, err := policy.Compile(policy.Config{Layers: []policy.Layer{of("b", "a"), {Tighten: true}, of("b")}, Fallback: &last})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Agents(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Error(got)
	}
	if got := (*policy.Policy)(nil).Agents(); got != nil {
		t.Error(got)
	}
}
