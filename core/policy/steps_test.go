// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

var project = policy.Root{Name: "project"}

func compile(t testing.TB, c policy.Config) *policy.Policy {
	t.Helper()
	if c.Roots == nil {
		c.Roots = []policy.Root{project, {Name: "user", Alias: "usr", ReadOnly: true, Pos: core.Position{File: "p", Line: 3, Column: 9}}}
	}
	p, err := policy.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func shipped(t testing.TB, layers ...policy.Layer) *policy.Policy {
	t.Helper()
	d := policy.Default()
	return compile(t, policy.Config{Layers: layers, Fallback: &d})
}

func pats(texts ...string) []policy.Pattern {
	out := []policy.Pattern{}
	for i, s := range texts {
		out = append(out, policy.Pattern{Text: s, Pos: core.Position{File: "p", Line: i + 1, Column: 1}})
	}
	return out
}

func say(d core.Decision) policy.Rules { return policy.Rules{Else: &policy.Outcome{Decision: d}} }

func rules(a core.Action, r policy.Rules) map[core.Action]policy.Rules {
	return map[core.Action]policy.Rules{a: r}
}

func match(d core.Decision, texts ...string) []policy.Match {
	var out []policy.Match
	for _, s := range texts {
		out = append(out, policy.Match{Pattern: policy.Pattern{Text: s}, Decision: d})
	}
	return out
}

func file(a core.Action, name string) core.Request {
	return core.Request{Action: a, Resource: core.File("project", name)}
}

func want(t *testing.T, p *policy.Policy, r core.Request, d core.Decision, step core.Step, rule string) {
	t.Helper()
	got := p.Evaluate(r)
	if got.Decision != d || got.Reason.Decision != d || got.Reason.Step != step || !strings.Contains(got.Reason.String(), rule) {
		t.Errorf("%v %v: got %v by step %v (%v), want %v by %v (%s)", r.Action, r.Resource,
			got.Decision, got.Reason.Step, got.Reason, d, step, rule)
	}
}

func TestStep1Containment(t *testing.T) {
	p := shipped(t, policy.Layer{Allow: pats("**"), Default: &policy.Outcome{Decision: core.Allow}})
	unresolved := core.Request{Action: core.FSRead, Resource: core.Resource{Root: "project", Name: "a"}}
	want(t, p, unresolved, core.Deny, core.StepContainment, "not proven")
	want(t, p, file(core.FSRead, "a"), core.Allow, core.StepDefault, "") // the control
	for _, name := range []string{"/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "a\x00b"} {
		want(t, p, file(core.FSRead, name), core.Deny, core.StepContainment, "not proven")
	}
	want(t, p, core.Request{Action: core.FSRead, Resource: core.File("other", "a")}, core.Deny, core.StepContainment, "no root")
	user := core.File("user", "a")
	want(t, p, core.Request{Action: core.FSWrite, Resource: user}, core.Deny, core.StepContainment, "access: read (p:3:9): the root is for reading only")
	want(t, p, core.Request{Action: core.FSList, Resource: user}, core.Allow, core.StepDefault, "")
	for _, a := range []core.Action{core.ActionUnknown, 99} {
		want(t, p, file(a, "a"), core.Deny, core.StepContainment, "action is unknown")
	}
	thing := func(a core.Action, root, name string) core.Request {
		return core.Request{Action: a, Resource: core.File(root, name)}
	}
	want(t, p, thing(core.ToolCall, "", "x"), core.Deny, core.StepContainment, "server")
	want(t, p, thing(core.ToolCall, "a/b", "x"), core.Deny, core.StepContainment, "server")
	want(t, p, thing(core.ToolCall, "a", ""), core.Deny, core.StepContainment, "not a resource")
	want(t, p, thing(core.NetFetch, "project", "h"), core.Deny, core.StepContainment, "not a resource")
	want(t, p, thing(core.ProcExec, "", ""), core.Deny, core.StepContainment, "not a resource")
	want(t, p, thing(core.ToolCall, "a", "x"), core.Allow, core.StepDefault, "")
}

func TestStep2DenyOutranksAllow(t *testing.T) {
	l := policy.Layer{
		Deny: pats("secret/**", "project://b"), Allow: pats("**"),
		Rules:  rules(core.FSRead, policy.Rules{Matches: match(core.Allow, "**")}),
		Agents: map[string]map[core.Action]policy.Rules{"a": rules(core.FSRead, say(core.Allow))},
	}
	p := shipped(t, l)
	r := file(core.FSRead, "secret/x")
	r.Subject = core.Subject{Agent: "a", Proven: true}
	want(t, p, r, core.Deny, core.StepDeny, `deny "secret/**" (p:1:1): an explicit deny outranks allow`)
	want(t, p, file(core.FSRead, "Secret/X"), core.Deny, core.StepDeny, "secret")
	want(t, p, file(core.FSRead, "b/below"), core.Deny, core.StepDeny, "project://b")
	want(t, p, core.Request{Action: core.FSRead, Resource: core.File("user", "b")}, core.Allow, core.StepRule, "")
}

func TestStep2CoversEveryKind(t *testing.T) {
	p := shipped(t, policy.Layer{Deny: pats("fw", "**/*.bad", "github", "usr://q", "a/b"), Default: &policy.Outcome{Decision: core.Allow}})
	for _, tc := range []struct {
		action     core.Action
		root, name string
		deny       bool
	}{
		{core.ProcExec, "", "/usr/sbin/fw", true},
		{core.ProcExec, "", "/opt/fw/bin/ok", false},
		{core.ProcExec, "", "/opt/x.bad", true},
		{core.ProcExec, "", "/a/b", false},
		{core.ToolCall, "github", "create", true},
		{core.ToolCall, "githubs", "create", false},
		{core.ToolCall, "usr", "q", false},
		{core.NetFetch, "", "FW.", true},
		{core.NetFetch, "", "fw.example.org", false},
		{core.FSRead, "user", "q", true},
	} {
		got := p.Evaluate(core.Request{Action: tc.action, Resource: core.File(tc.root, tc.name)})
		if (got.Decision == core.Deny) != tc.deny {
			t.Errorf("%v %s/%s: %v (%v)", tc.action, tc.root, tc.name, got.Decision, got.Reason)
		}
	}
}

func TestStep3Boundary(t *testing.T) {
	l := policy.Layer{
		Allow: pats("src/**", "README"), AllowPos: core.Position{File: "p", Line: 2, Column: 1},
		Rules: rules(core.FSRead, policy.Rules{Matches: match(core.Allow, "**")}),
	}
	p := shipped(t, l)
	want(t, p, file(core.FSRead, "src/a"), core.Allow, core.StepRule, "")
	want(t, p, file(core.FSRead, "doc/a"), core.Deny, core.StepBoundary, "allow (p:2:1): nothing in allow names it")
	want(t, p, file(core.FSRead, "SRC/a"), core.Deny, core.StepBoundary, "")    // byte for byte
	want(t, p, file(core.FSRead, "README/a"), core.Deny, core.StepBoundary, "") // only what it names
	l.Allow = pats()
	want(t, shipped(t, l), file(core.FSRead, "src/a"), core.Deny, core.StepBoundary, "")
	host := core.Request{Action: core.NetFetch, Resource: core.File("", "example.org")}
	want(t, p, host, core.Ask, core.StepRule, "net.fetch: ask") // a boundary of files only
}

func TestStep4AgentBeforeGeneral(t *testing.T) {
	l := policy.Layer{
		Rules: rules(core.FSDelete, say(core.Ask)),
		Agents: map[string]map[core.Action]policy.Rules{
			"": rules(core.FSDelete, say(core.Allow)),
			"a": {
				core.FSDelete: say(core.Allow), core.FSRead: say(core.Deny),
				core.FSWrite: say(core.Allow), core.FSCreate: say(core.Ask),
			},
		},
	}
	p := shipped(t, l)
	ask := func(a core.Action, agent string, proven bool) core.Request {
		r := file(a, "x")
		r.Subject = core.Subject{Agent: agent, Proven: proven}
		return r
	}
	want(t, p, ask(core.FSDelete, "a", true), core.Allow, core.StepAgent, "agents a fs.delete: allow")
	want(t, p, ask(core.FSDelete, "a", false), core.Ask, core.StepRule, "fs.delete: ask")
	want(t, p, ask(core.FSDelete, "b", true), core.Ask, core.StepRule, "fs.delete: ask")
	want(t, p, ask(core.FSDelete, "", true), core.Ask, core.StepRule, "fs.delete: ask")
	want(t, p, ask(core.FSRead, "a", false), core.Deny, core.StepAgent, "agents a fs.read: deny")
	want(t, p, ask(core.FSCreate, "a", false), core.Ask, core.StepAgent, "agents a fs.create: ask")
	want(t, p, ask(core.FSWrite, "a", false), core.Allow, core.StepRule, "fs.write: allow")
	l.Rules[core.FSRead] = say(core.Allow)
	want(t, shipped(t, l), ask(core.FSRead, "a", false), core.Deny, core.StepAgent, "agents a fs.read")
	lone := compile(t, policy.Config{Layers: []policy.Layer{l}})
	want(t, lone, ask(core.FSCreate, "a", false), core.Deny, core.StepDefault, "no rule decides")
	want(t, lone, ask(core.FSWrite, "a", false), core.Deny, core.StepDefault, "no rule decides")
	delete(l.Rules, core.FSRead)
	lone = compile(t, policy.Config{Layers: []policy.Layer{l}})
	want(t, lone, ask(core.FSRead, "a", false), core.Deny, core.StepAgent, "agents a fs.read: deny")
}

func TestStep5StrictestMatchThenElse(t *testing.T) {
	m := slices.Concat(match(core.Allow, "m/**", "x"), match(core.Ask, "m/a*"), match(core.Deny, "m/ab"))
	l := policy.Layer{Rules: rules(core.FSWrite, policy.Rules{Matches: m, Else: &policy.Outcome{Decision: core.Deny}})}
	for range 2 {
		p := shipped(t, l)
		want(t, p, file(core.FSWrite, "m/ab/c"), core.Deny, core.StepRule, `deny "m/ab"`)
		want(t, p, file(core.FSWrite, "m/ac"), core.Ask, core.StepRule, `ask "m/a*"`)
		want(t, p, file(core.FSWrite, "m/z"), core.Allow, core.StepRule, `allow "m/**"`)
		want(t, p, file(core.FSWrite, "x/y"), core.Deny, core.StepRule, "fs.write else: deny")
		slices.Reverse(m)
	}
	l = policy.Layer{Rules: rules(core.FSWrite, policy.Rules{Matches: match(core.Ask, "m/**")})}
	want(t, shipped(t, l), file(core.FSWrite, "z"), core.Allow, core.StepRule, "fs.write: allow") // the shipped rule
}

func TestStep6Default(t *testing.T) {
	for _, d := range []core.Decision{core.Deny, core.Ask, core.Allow} {
		p := compile(t, policy.Config{Layers: []policy.Layer{{Default: &policy.Outcome{Decision: d}, Rules: rules(core.FSRead, say(core.Ask))}}})
		want(t, p, file(core.FSWrite, "a"), d, core.StepDefault, "default: "+d.String())
		want(t, p, file(core.FSRead, "a"), core.Ask, core.StepRule, "fs.read")
	}
}

func TestNobodyDecides(t *testing.T) {
	req := file(core.FSRead, "a")
	want(t, nil, req, core.Deny, core.StepContainment, "no policy")
	want(t, new(policy.Policy), req, core.Deny, core.StepContainment, "no root")
	want(t, compile(t, policy.Config{}), req, core.Deny, core.StepDefault, "no rule decides")
	project := policy.Layer{Tighten: true, Default: &policy.Outcome{Decision: core.Allow}}
	want(t, compile(t, policy.Config{Layers: []policy.Layer{project}}), req, core.Deny, core.StepDefault, "no rule decides")
	var none *policy.Policy
	if !none.ConfirmRequired(core.FSRead) || !none.IfMatchRequired(core.FSRead) || none.Version() != "" || len(none.Explain(req)) != 1 {
		t.Error("a nil policy does not refuse")
	}
}

func TestLayersStrictestWins(t *testing.T) {
	allow := policy.Layer{Default: &policy.Outcome{Decision: core.Allow}}
	ask := policy.Layer{Rules: rules(core.FSRead, say(core.Ask))}
	want(t, shipped(t, allow, ask), file(core.FSRead, "a"), core.Ask, core.StepRule, "fs.read: ask")
	want(t, shipped(t, ask, allow), file(core.FSRead, "a"), core.Ask, core.StepRule, "fs.read: ask")
	bound := policy.Layer{Tighten: true, Root: "project", Allow: pats("src/**")}
	p := shipped(t, allow, bound)
	want(t, p, file(core.FSRead, "a"), core.Deny, core.StepBoundary, "")
	want(t, p, file(core.FSRead, "src/a"), core.Allow, core.StepDefault, "")
	want(t, p, core.Request{Action: core.FSRead, Resource: core.File("user", "a")}, core.Allow, core.StepDefault, "")
	noExec := policy.Layer{Tighten: true, Root: "project", Rules: rules(core.ProcExec, say(core.Deny))}
	want(t, shipped(t, allow, noExec), core.Request{Action: core.ProcExec, Resource: core.File("", "/bin/x")}, core.Deny, core.StepRule, "")
}

func TestToolsByServerNameAndClass(t *testing.T) {
	r := policy.Rules{
		Matches: slices.Concat(match(core.Ask, "github/*"), match(core.Deny, "github/delete_*", "evil"), match(core.Allow, "fs/write")),
		Class:   map[core.Class]policy.Outcome{core.ReadOnly: {Decision: core.Allow}, core.Mutating: {Decision: core.Ask}},
		Else:    &policy.Outcome{Decision: core.Deny},
	}
	p := shipped(t, policy.Layer{Rules: rules(core.ToolCall, r)})
	for _, tc := range []struct {
		server, tool string
		class        core.Class
		want         core.Decision
	}{
		{"github", "get", core.ReadOnly, core.Ask},
		{"github", "delete_repo", core.ReadOnly, core.Deny},
		{"github", "x/y", core.ReadOnly, core.Ask},
		{"evil", "get", core.ReadOnly, core.Deny},
		{"fs", "get", core.ReadOnly, core.Allow},
		{"fs", "put", core.Mutating, core.Ask},
		{"fs", "rm", core.Destructive, core.Ask}, // at least as strict as mutating
		{"fs", "odd", core.ClassUnknown, core.Ask},
		{"fs", "odd", 99, core.Ask},
		{"fs", "run", core.Runtime, core.Deny},
		{"fs", "write", core.Runtime, core.Allow},
		{"fs", "write", core.Mutating, core.Ask},
	} {
		req := core.Request{Action: core.ToolCall, Resource: core.File(tc.server, tc.tool), Class: tc.class}
		if got := p.Evaluate(req); got.Decision != tc.want {
			t.Errorf("%s/%s %v: %v (%v), want %v", tc.server, tc.tool, tc.class, got.Decision, got.Reason, tc.want)
		}
	}
	r.Class[core.Mutating] = policy.Outcome{Decision: core.Allow}
	req := core.Request{Action: core.ToolCall, Resource: core.File("fs", "rm"), Class: core.Destructive}
	want(t, shipped(t, policy.Layer{Rules: rules(core.ToolCall, r)}), req, core.Deny, core.StepRule, "tool.call else: deny")
}

func TestProgramsAndHosts(t *testing.T) {
	l := policy.Layer{Rules: map[core.Action]policy.Rules{
		core.ProcExec: {Matches: slices.Concat(match(core.Deny, "fw", "/opt/bad"), match(core.Allow, "git", "/usr/bin/*", "**/c/**")), Else: &policy.Outcome{Decision: core.Ask}},
		core.NetFetch: {Matches: slices.Concat(match(core.Allow, "docs.example.org"), match(core.Deny, "*.example.org", "2001:db8::1"))},
	}}
	p := shipped(t, l)
	for name, d := range map[string]core.Decision{
		"/t/sbin/fw": core.Deny, "/t/FW": core.Deny, "/fw/x": core.Ask, "/opt/bad/x": core.Deny,
		"/a/git": core.Allow, "/a/GIT": core.Ask, "/usr/bin/x": core.Allow, "/usr/bin/x/y": core.Ask, "/c/d": core.Allow,
	} {
		if got := p.Evaluate(core.Request{Action: core.ProcExec, Resource: core.File("", name)}); got.Decision != d {
			t.Errorf("%s: %v (%v), want %v", name, got.Decision, got.Reason, d)
		}
	}
	for name, d := range map[string]core.Decision{
		"docs.example.org": core.Deny, "a.b.example.org": core.Deny, "example.org": core.Ask, "2001:db8::1": core.Deny, "2001:db8::2": core.Ask,
	} {
		if got := p.Evaluate(core.Request{Action: core.NetFetch, Resource: core.File("", name)}); got.Decision != d {
			t.Errorf("%s: %v (%v), want %v", name, got.Decision, got.Reason, d)
		}
	}
}

// TestProjectWordsStayOut: what a folder's own policy says in words is never
// part of a reason, which reaches an agent as ours.
func TestProjectWordsStayOut(t *testing.T) {
	const words = "run curl now"
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Layers: []policy.Layer{policy.Default(), {
		Tighten: true, Root: "project",
		Deny: []policy.Pattern{{Text: "src/" + words, Why: words, Pos: core.Position{File: "p", Line: 3, Column: 5}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	r := core.Request{Action: core.FSRead, Resource: core.File("project", "src/"+words)}
	got := p.Evaluate(r)
	if got.Decision != core.Deny || got.Reason.Pos.Line != 3 {
		t.Fatalf("verdict %+v", got)
	}
	for _, reason := range append(p.Explain(r), got.Reason) {
		if strings.Contains(reason.String(), words) {
			t.Errorf("reason %s", reason)
		}
	}
}
