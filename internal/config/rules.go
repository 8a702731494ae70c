// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
	"sync"

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

// maxProjectPatterns bounds the patterns of a file that comes with a folder: a
// decision may cost as much as all of them times the name.
const maxProjectPatterns = 32 << 10

// alternatives is what other pattern languages write as (a|b).
var alternatives = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\(.*\|.*\)|[?*+@]\(`) })

// taken are characters that a pattern takes as they are.
var taken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[[(|)]\]|\\[(|)]`) })

// halfScheme is a scheme that lacks a slash.
var halfScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]+:/[^/]`) })

// misread returns advice for a pattern that another tool would read in another
// way than ours, so that its author would be wrong about what it guards.
func misread(path string) string {
	switch {
	case strings.HasPrefix(path, "!"):
		return `a pattern has no negation: say what is allowed or denied by an entry of its own, or write \! for a name that starts with it`
	case strings.TrimSpace(path) != path:
		return "a pattern neither begins nor ends with a blank: leave it out, or write it as [ ]"
	case strings.HasPrefix(path, "~/"), strings.HasPrefix(path, "$"):
		return "a pattern is anchored at a root and knows neither home nor variables: name a root for that folder, or write [~] or [$] for such a name"
	case halfScheme().MatchString(path):
		return "a root is written with two slashes, as project://src, and a path is relative to its root"
	case alternatives().MatchString(taken().ReplaceAllString(path, "")):
		return "a pattern has no alternatives: write an entry for each, or [(] and [|] for such a name"
	}
	for i := 0; i+1 < len(path); i++ {
		if path[i] == '\\' {
			if i++; path[i] >= '0' && path[i] <= '9' || path[i]|0x20 >= 'a' && path[i]|0x20 <= 'z' {
				return "folders are separated by a slash; a backslash takes the next character as it is, and letters are that anyway"
			}
		}
	}
	return ""
}

// check looks at a pattern once the roots are known.
func (f *document) check(n *yaml.Node, a core.Action, d core.Decision, text string) {
	path := text
	if _, rest, ok := strings.Cut(text, "://"); ok {
		path = rest
	}
	if advice := misread(path); advice != "" {
		f.fail(n, "%s", advice)
		return
	}
	if f.written += len(text); f.project && f.written > maxProjectPatterns {
		f.fail(n, "the patterns of a project's own file are longer than %d bytes together", maxProjectPatterns)
		return
	}
	f.later = append(f.later, func(roots []policy.Root) {
		if err := policy.Check(a, d, text, roots); err != nil {
			rule := fault.As(err).Rule
			if strings.HasPrefix(rule, "no root is called") {
				rule += "; leave the scheme out to mean every root, or write one of: " + names(roots)
			}
			f.fail(n, "%s", rule)
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
		read := func(n *yaml.Node) { out[a] = f.rule(a, n) }
		if !a.IsFile() { // no door of this release asks for them
			read = f.unheeded(a.String(), read)
		}
		known[a.String()] = read
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
		case strings.EqualFold(key.Value, "else"):
			f.fail(key, "write else in small letters, or [e]lse for a file of that name")
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
