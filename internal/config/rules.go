// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/policy"
	"go.yaml.in/yaml/v4"
)

func (f *document) action(n *yaml.Node) (core.Action, bool) {
	a, ok := core.ParseAction(n.Value)
	if n.Kind != yaml.ScalarNode || !ok {
		f.fail(n, "not an action; known: %s", strings.Join(actionNames(), ", "))
		return 0, false
	}
	return a, true
}

func actionNames() []string {
	var names []string
	for _, a := range core.Actions() {
		names = append(names, a.String())
	}
	return names
}

func (f *document) decision(n *yaml.Node, what string) (core.Decision, bool) {
	s, ok := f.oneOf(n, what, "allow", "ask", "deny")
	d, _ := core.ParseDecision(s)
	return d, ok
}

// patterns reads a list of patterns, each a text or {match, why}. A list that
// is there is never nil: an empty one speaks too.
func (f *document) patterns(n *yaml.Node, what string, d core.Decision) []policy.Pattern {
	out := []policy.Pattern{}
	f.list(n, what, func(n *yaml.Node) {
		var p policy.Pattern
		match := func(n *yaml.Node) {
			p.Pos = f.pos(n)
			if s, ok := f.text(n, "a pattern"); ok {
				p.Text = s
				f.check(n, core.ActionUnknown, d, s)
			}
		}
		if n.Kind != yaml.MappingNode {
			match(n)
		} else {
			f.object(n, "an entry of "+what, fields{"match": match, "why": func(n *yaml.Node) { p.Why, _ = f.text(n, "why") }})
			if p.Pos.Line == 0 {
				f.fail(n, "the entry has no match")
			}
		}
		out = append(out, p)
	})
	return out
}

// check looks at a pattern once the roots are known.
func (f *document) check(n *yaml.Node, a core.Action, d core.Decision, text string) {
	f.later = append(f.later, func(roots []policy.Root) {
		if err := policy.Check(a, d, text, roots); err != nil {
			f.fail(n, "%s", fault.As(err).Rule)
		}
	})
}

func (f *document) agents(n *yaml.Node) {
	f.layer.Agents = map[string]map[core.Action]policy.Rules{}
	f.each(n, "agents", func(key, value *yaml.Node) {
		if key.Value == "" {
			f.fail(key, "an agent has a name")
		}
		f.layer.Agents[key.Value] = f.rules(value, "the rules of agent "+key.Value)
	})
}

func (f *document) rules(n *yaml.Node, what string) map[core.Action]policy.Rules {
	out := map[core.Action]policy.Rules{}
	known := fields{}
	for _, a := range core.Actions() {
		known[a.String()] = func(n *yaml.Node) { out[a] = f.rule(a, n) }
	}
	f.object(n, what, known)
	return out
}

// rule reads what is said about one action: a decision, or pattern → decision.
func (f *document) rule(a core.Action, n *yaml.Node) policy.Rules {
	var out policy.Rules
	if n.Kind != yaml.MappingNode {
		if d, ok := f.decision(n, a.String()); ok {
			out.Else = &policy.Outcome{Decision: d, Pos: f.pos(n)}
		}
		return out
	}
	f.each(n, a.String(), func(key, value *yaml.Node) {
		if a == core.ToolCall && key.Value == "class" {
			out.Class = f.classes(value)
			return
		}
		d, ok := f.decision(value, "the decision for "+key.Value)
		switch {
		case !ok:
		case key.Value == "else":
			out.Else = &policy.Outcome{Decision: d, Pos: f.pos(value)}
		default:
			text, ok := f.text(key, "a pattern")
			if ok {
				f.check(key, a, d, text)
			}
			out.Matches = append(out.Matches, policy.Match{Pattern: policy.Pattern{Text: text, Pos: f.pos(key)}, Decision: d})
		}
	})
	if len(n.Content) == 0 {
		f.fail(n, "%s says nothing: write a decision, or a pattern and its decision", a)
	}
	return out
}

func (f *document) classes(n *yaml.Node) map[core.Class]policy.Outcome {
	out := map[core.Class]policy.Outcome{}
	known := fields{}
	for _, c := range []core.Class{core.ReadOnly, core.Mutating, core.Destructive, core.Runtime} {
		known[c.String()] = func(n *yaml.Node) {
			if d, ok := f.decision(n, "class "+c.String()); ok {
				out[c] = policy.Outcome{Decision: d, Pos: f.pos(n)}
			}
		}
	}
	f.object(n, "class", known)
	return out
}

// example is a decision that a policy says it makes.
type example struct {
	node *yaml.Node
	req  core.Request
	want core.Decision
}

func (f *document) exampleList(n *yaml.Node) {
	f.list(n, "examples", func(n *yaml.Node) {
		x := example{node: n, want: core.Deny}
		stated := false
		known := fields{
			"decision": func(n *yaml.Node) { x.want, stated = f.decision(n, "decision") },
			"agent": func(n *yaml.Node) {
				x.req.Subject.Agent, x.req.Subject.Proven = f.text(n, "agent")
			},
			"class": func(n *yaml.Node) {
				s, _ := f.oneOf(n, "class", "read_only", "mutating", "destructive", "runtime")
				x.req.Class, _ = core.ParseClass(s)
			},
		}
		for _, a := range core.Actions() {
			known[a.String()] = func(n *yaml.Node) {
				if x.req.Action != core.ActionUnknown {
					f.fail(n, "an example is about one action")
				}
				x.req.Action = a
				if s, ok := f.text(n, "the resource"); ok {
					x.req.Resource = resource(a, s)
				}
			}
		}
		f.object(n, "an example", known)
		if x.req.Action == core.ActionUnknown || !stated {
			f.fail(n, "an example needs an action with its resource, and a decision")
			return
		}
		f.examples = append(f.examples, x)
	})
}

// resource reads a name as the policy file spells it: root://path, server/tool,
// a program's absolute path, a host.
func resource(a core.Action, s string) core.Resource {
	switch {
	case a.IsFile():
		root, name, _ := strings.Cut(s, "://")
		return core.File(root, name)
	case a == core.ToolCall:
		server, tool, _ := strings.Cut(s, "/")
		return core.File(server, tool)
	default:
		return core.File("", s)
	}
}

// try holds the examples against the policy of the layers up to this file's.
func (f *document) try(p *policy.Policy, roots []policy.Root) {
	for _, x := range f.examples {
		for _, r := range roots {
			if x.req.Action.IsFile() && r.Alias != "" && r.Alias == x.req.Resource.Root {
				x.req.Resource.Root = r.Name
			}
		}
		got := p.Evaluate(x.req)
		if got.Decision != x.want {
			f.fail(x.node, "the example says %v, the policy decides %v: %v", x.want, got.Decision, got.Reason)
		}
	}
}
