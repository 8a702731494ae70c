// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/glob"
	"github.com/postern-gate/postern/core/policy"
	"pgregory.net/rapid"
)

// naive decides a request about a file from the written policy, rule by rule,
// with no index, no early exit and no compiled form: the oracle. Built-in
// lists are left out; the generated names meet none of them.
func naive(c policy.Config, r core.Request) core.Decision {
	var root *policy.Root
	for i := range c.Roots {
		if c.Roots[i].Name == r.Resource.Root {
			root = &c.Roots[i]
		}
	}
	if root == nil || !r.Resource.Resolved || root.ReadOnly && r.Action.Mutates() {
		return core.Deny
	}
	matches := func(text string, d core.Decision) bool {
		if scheme, rest, ok := cut(text); ok {
			if scheme != root.Name {
				return false
			}
			text = rest
		}
		if d == core.Allow {
			p, _ := glob.Compile(text)
			return p.Match(r.Resource.Name)
		}
		p, _ := glob.CompileFolded(text)
		return p.MatchBeneath(r.Resource.Name)
	}
	judge := func(rules map[core.Action]policy.Rules) (best core.Decision, ok bool) {
		in, best := rules[r.Action], core.Allow
		for _, m := range in.Matches {
			if matches(m.Text, m.Decision) {
				best, ok = min(best, m.Decision), true
			}
		}
		if !ok && in.Else != nil {
			return in.Else.Decision, true
		}
		return best, ok
	}
	layer := func(l policy.Layer) (d core.Decision, ok, firm bool) {
		for _, p := range l.Deny {
			if matches(p.Text, core.Deny) {
				return core.Deny, true, true
			}
		}
		if l.Allow != nil && !slices.ContainsFunc(l.Allow, func(p policy.Pattern) bool { return matches(p.Text, core.Allow) }) {
			return core.Deny, true, true
		}
		general, ok := judge(l.Rules)
		if !ok && l.Default != nil {
			general, ok = l.Default.Decision, true
		}
		agent, said := judge(l.Agents[r.Subject.Agent])
		switch {
		case !said || r.Subject.Agent == "":
			return general, ok, ok
		case r.Subject.Proven:
			return agent, true, true
		case !ok:
			return agent, true, false
		default:
			return min(agent, general), true, true
		}
	}
	result, decided := core.Allow, false
	for _, l := range c.Layers {
		d, ok, firm := layer(l)
		if ok {
			result, decided = min(result, d), decided || firm && !l.Tighten
		}
	}
	if !decided && c.Fallback != nil {
		if d, ok, firm := layer(*c.Fallback); ok {
			result, decided = min(result, d), firm // an agent that is not proven decides nothing
		}
	}
	if !decided {
		return core.Deny
	}
	return result
}

func cut(s string) (string, string, bool) {
	for i := range s {
		if len(s) > i+2 && s[i:i+3] == "://" {
			return s[:i], s[i+3:], true
		}
	}
	return "", s, false
}

var (
	genText = rapid.SampledFrom([]string{"**", "a", "a/**", "**/b", "project://a/b", "user://**", "[a-b]", "B", "a/?", "*/*/c", "ß", "project://c*"})
	genName = rapid.SampledFrom([]string{"", "a", "A", "b", "a/b", "a/B", "c", "a/b/c", "SS", "ß", "c1/b", "x/y/z"})
	genDec  = rapid.SampledFrom([]core.Decision{core.Deny, core.Ask, core.Allow})
	genAct  = rapid.SampledFrom([]core.Action{core.FSRead, core.FSWrite, core.FSDelete})
	genWho  = rapid.SampledFrom([]string{"", "a", "b"})
)

func genPatterns(t *rapid.T, label string) []policy.Pattern {
	if rapid.Bool().Draw(t, label+" unspoken") {
		return nil
	}
	out := []policy.Pattern{}
	for _, s := range rapid.SliceOfN(genText, 0, 4).Draw(t, label) {
		out = append(out, policy.Pattern{Text: s})
	}
	return out
}

func genTable(t *rapid.T, label string) map[core.Action]policy.Rules {
	out := map[core.Action]policy.Rules{}
	for _, a := range rapid.SliceOfN(genAct, 0, 3).Draw(t, label) {
		var r policy.Rules
		for _, s := range rapid.SliceOfN(genText, 0, 12).Draw(t, label+" matches") {
			r.Matches = append(r.Matches, policy.Match{Pattern: policy.Pattern{Text: s}, Decision: genDec.Draw(t, "decision")})
		}
		if rapid.Bool().Draw(t, "else") {
			r.Else = &policy.Outcome{Decision: genDec.Draw(t, "else is")}
		}
		out[a] = r
	}
	return out
}

func genLayer(t *rapid.T, tighten bool) policy.Layer {
	l := policy.Layer{
		Tighten: tighten, Deny: genPatterns(t, "deny"), Allow: genPatterns(t, "allow"), Rules: genTable(t, "rules"),
		Agents: map[string]map[core.Action]policy.Rules{"": genTable(t, "no agent"), "a": genTable(t, "agent")},
	}
	if rapid.Bool().Draw(t, "default") {
		l.Default = &policy.Outcome{Decision: genDec.Draw(t, "default is")}
	}
	return l
}

func genConfig(t *rapid.T) policy.Config {
	c := policy.Config{Roots: []policy.Root{{Name: "project"}, {Name: "user", ReadOnly: rapid.Bool().Draw(t, "read only")}}}
	for range rapid.IntRange(0, 2).Draw(t, "layers") {
		c.Layers = append(c.Layers, genLayer(t, rapid.Bool().Draw(t, "tighten")))
	}
	if rapid.Bool().Draw(t, "fallback") {
		d := genLayer(t, false)
		c.Fallback = &d
	}
	return c
}

func genRequest(t *rapid.T) core.Request {
	root := rapid.SampledFrom([]string{"project", "user", "none"}).Draw(t, "root")
	return core.Request{
		Subject: core.Subject{Agent: genWho.Draw(t, "who"), Proven: rapid.Bool().Draw(t, "proven")},
		Action:  genAct.Draw(t, "action"),
		Resource: core.Resource{
			Root: root, Name: genName.Draw(t, "name"),
			Resolved: rapid.IntRange(0, 9).Draw(t, "resolved") > 0,
		},
	}
}

func mustCompile(t *rapid.T, c policy.Config) *policy.Policy {
	p, err := policy.Compile(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOracleAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, r := genConfig(t), genRequest(t)
		p := mustCompile(t, c)
		got := p.Evaluate(r)
		if want := naive(c, r); got.Decision != want {
			t.Fatalf("%+v: %v (%v), the oracle says %v", r, got.Decision, got.Reason, want)
		}
		why := p.Explain(r)
		if why[0] != got.Reason {
			t.Fatalf("Explain starts with %v, not with %v", why[0], got.Reason)
		}
	})
}

// TestRuled: what is decided for an agent is what is decided for none, where it has no
// rules of its own.
func TestRuled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, r := genConfig(t), genRequest(t)
		r.Link = rapid.Bool().Draw(t, "link")
		p, nobody := mustCompile(t, c), r
		nobody.Subject = core.Subject{}
		if got, want := p.Evaluate(r), p.Evaluate(nobody); got != want && !p.Ruled(r.Subject.Agent, r.Action) {
			t.Fatalf("%+v: %v, for no agent %v", r, got, want)
		}
	})
	write := map[string]map[core.Action]policy.Rules{"a": {core.FSWrite: {Matches: []policy.Match{{Pattern: policy.Pattern{Text: "x"}, Decision: core.Ask}}}}}
	p, err := policy.Compile(policy.Config{Layers: []policy.Layer{{}, {Agents: write}}})
	if err != nil || !p.Ruled("a", core.FSWrite) || p.Ruled("a", core.FSRead) || p.Ruled("b", core.FSWrite) || (*policy.Policy)(nil).Ruled("a", core.FSWrite) {
		t.Error(err)
	}
}

// TestNothingLoosens: what tightens a policy as written never loosens a decision.
func TestNothingLoosens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, r := genConfig(t), genRequest(t)
		before := mustCompile(t, c).Evaluate(r).Decision
		changed := c
		changed.Layers = slices.Clone(c.Layers)
		what := rapid.SampledFrom([]string{"add a deny", "remove an allow", "add a project layer"}).Draw(t, "what")
		switch {
		case what == "add a project layer":
			changed.Layers = append(changed.Layers, genLayer(t, true))
		case len(c.Layers) == 0:
			return
		case what == "add a deny":
			l := &changed.Layers[0]
			l.Deny = append(slices.Clone(l.Deny), policy.Pattern{Text: genText.Draw(t, "new deny")})
		case len(c.Layers[0].Allow) > 0:
			l := &changed.Layers[0]
			l.Allow = slices.Delete(slices.Clone(l.Allow), 0, 1)
		}
		if after := mustCompile(t, changed).Evaluate(r).Decision; after > before {
			t.Fatalf("%s turned %v into %v", what, before, after)
		}
	})
}

func TestOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, r := genConfig(t), genRequest(t)
		p := mustCompile(t, c)
		for i := range c.Layers {
			slices.Reverse(c.Layers[i].Deny)
			slices.Reverse(c.Layers[i].Allow)
			for _, rules := range c.Layers[i].Rules {
				slices.Reverse(rules.Matches)
			}
		}
		slices.Reverse(c.Layers)
		slices.Reverse(c.Roots)
		q := mustCompile(t, c)
		if p.Version() != q.Version() || p.Evaluate(r).Decision != q.Evaluate(r).Decision {
			t.Fatalf("order matters: %v and %v", p.Evaluate(r), q.Evaluate(r))
		}
	})
}

// FuzzRequest: whatever the request, one that is not contained is denied, an
// unproven agent gets no more than none, and Explain starts with what decided.
func FuzzRequest(f *testing.F) {
	f.Add(uint8(1), "project", "a/b", "", uint8(0), true)
	f.Add(uint8(4), "project", ".git/hooks/x", "a", uint8(9), true)
	f.Add(uint8(8), "srv", "tool", "a", uint8(3), true)
	f.Add(uint8(200), "", "\x00", "\xff", uint8(200), false)
	d := policy.Default()
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Fallback: &d, Layers: []policy.Layer{{
		Agents: map[string]map[core.Action]policy.Rules{"a": {core.FSDelete: {Else: &policy.Outcome{Decision: core.Allow}}}},
	}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a uint8, root, name, agent string, class uint8, resolved bool) {
		r := core.Request{
			Action: core.Action(a), Class: core.Class(class), Subject: core.Subject{Agent: agent},
			Resource: core.Resource{Root: root, Name: name, Resolved: resolved},
		}
		got := p.Evaluate(r)
		if got.Decision != core.Deny && (!resolved || r.Action == core.ActionUnknown || r.Action.IsFile() && root != "project") {
			t.Fatalf("%+v is not contained, and %v", r, got)
		}
		if got.Decision != got.Reason.Decision || p.Explain(r)[0] != got.Reason {
			t.Fatalf("%+v: the reason is not that of the decision", r)
		}
		r.Subject.Agent = ""
		if none := p.Evaluate(r); got.Decision > none.Decision {
			t.Fatalf("an unproven agent gets %v, nobody gets %v", got.Decision, none.Decision)
		}
	})
}

// FuzzPattern: a pattern that compiles as a deny never leaves alone what it
// names as an allow, and matches at least as much in other letters.
func FuzzPattern(f *testing.F) {
	for _, s := range []string{"**", "a/*", "project://[a-c]?", "[!x]", "é", "a:b"} {
		f.Add(s, "a/B")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		roots := []policy.Root{{Name: "project"}}
		all := &policy.Outcome{Decision: core.Allow}
		deny := policy.Layer{Deny: []policy.Pattern{{Text: text}}, Default: all}
		allow := policy.Layer{Allow: []policy.Pattern{{Text: text}}, Default: all}
		p, errDeny := policy.Compile(policy.Config{Roots: roots, Layers: []policy.Layer{deny}})
		q, errAllow := policy.Compile(policy.Config{Roots: roots, Layers: []policy.Layer{allow}})
		if (errDeny == nil) != (errAllow == nil) || (errDeny == nil) != (policy.Check(core.ActionUnknown, core.Deny, text, roots) == nil) {
			t.Fatalf("%q: as deny %v, as allow %v", text, errDeny, errAllow)
		}
		r := core.Request{Action: core.FSRead, Resource: core.File("project", name)}
		if errDeny == nil && p.Evaluate(r).Decision == core.Allow && q.Evaluate(r).Decision == core.Allow {
			t.Fatalf("allow %q names %q, deny does not", text, name)
		}
	})
}
