// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

// rule is about steps 4 to 6: what the rules for an agent, the general rules
// or the default say.
func (e *Editor) rule(q core.Request, r core.Reason, all bool) (Step, bool) {
	l := e.layer(r.Pos.File)
	if s, ok := e.forAgent(q, l, r, all); ok {
		return s, true
	}
	if l == nil || r.Step == core.StepDefault {
		return e.add(q, l, r.Pos, all)
	}
	rules, section, agent := l.Rules, []string{"rules"}, ""
	if r.Step == core.StepAgent {
		agent = q.Subject.Agent
		rules, section = l.Agents[agent], []string{"agents", agent}
	}
	table := rules[q.Action]
	s := e.amend(q, l, &table, r, all, agent)
	if s.Lines != nil {
		s.Under = append(section, q.Action.String())
	}
	rules[q.Action] = table
	return s, true
}

// amend lets the rules of one action allow the request. A pattern that matches
// is stricter than any other that would be added, so that one is changed; where
// it was no pattern, one is added.
// Agent is whose rules they are, "" for everybody's.
func (e *Editor) amend(q core.Request, l *policy.Layer, table *policy.Rules, r core.Reason, all bool, agent string) Step {
	for i := range table.Matches {
		if m := &table.Matches[i]; m.Pos == r.Pos {
			m.Decision = core.Allow
			s := at(l, r.Pos, "let this rule say allow, or narrow it: it holds for every name that it matches, "+reach(m.Text, agent))
			return put(s, core.Allow.String())
		}
	}
	for class, o := range table.Class {
		if o.Pos == r.Pos {
			table.Class[class] = policy.Outcome{Decision: core.Allow, Pos: o.Pos}
			s := at(l, r.Pos, "let this class of tools be allowed, for "+whom(agent))
			return put(s, core.Allow.String())
		}
	}
	name := e.pattern(q, all)
	alone := len(table.Matches)+len(table.Class) == 0
	table.Matches = append(table.Matches, policy.Match{Pattern: policy.Pattern{Text: name}, Decision: core.Allow})
	s := at(l, r.Pos, "name what is allowed in the place of "+r.Decision.String()+": it holds "+reach(name, agent))
	switch {
	case l.Tighten:
	case alone:
		s.Put = "{ " + quoted(name) + ": allow, else: " + r.Decision.String() + " }"
	default:
		s.Text, s.Lines = "add what is allowed beside it: it holds "+reach(name, agent), []string{quoted(name) + ": allow"}
	}
	return s
}

// put is the step with what stands at its place instead: nothing is proposed that
// loosens a project's own file.
func put(s Step, what string) Step {
	if s.Kind != InProject {
		s.Put = what
	}
	return s
}

// add writes a rule where there is none: in the file whose default decided, or
// in a person's own. It says nothing about other names, for which the shipped
// default or that of the file goes on to speak.
func (e *Editor) add(q core.Request, l *policy.Layer, pos core.Position, all bool) (Step, bool) {
	name, action := e.pattern(q, all), q.Action.String()
	s := Step{
		Kind: InPolicy, Text: "allow this name, or more by a wider pattern: it holds " + reach(name, ""), File: pos.File, Under: []string{"rules"},
	}
	if l == nil {
		s.File, s.New = e.file, e.own(false) < 0
		l = &e.parts.Layers[e.own(true)]
	} else if l.Tighten {
		s = at(l, pos, "")
	}
	table, there := l.Rules[q.Action]
	table.Matches = append(table.Matches, policy.Match{Pattern: policy.Pattern{Text: name}, Decision: core.Allow})
	if l.Rules == nil {
		s.Make = s.Under
		l.Rules = map[core.Action]policy.Rules{}
	}
	l.Rules[q.Action] = table
	switch {
	case l.Tighten:
	case there:
		s.Under, s.Lines = []string{"rules", action}, []string{quoted(name) + ": allow"}
	default:
		s.Lines = []string{action + ": { " + quoted(name) + ": allow }"}
	}
	return s, true
}

// forAgent writes a rule of the agent's own, which holds for nobody else, where
// that leads past what decided; else nothing is changed.
func (e *Editor) forAgent(q core.Request, l *policy.Layer, r core.Reason, all bool) (Step, bool) {
	agent, action := q.Subject.Agent, q.Action.String()
	if agent == "" || r.Step == core.StepAgent || l != nil && l.Tighten {
		return Step{}, false
	}
	before := e.parts
	s := Step{Kind: InPolicy, File: r.Pos.File}
	if l == nil {
		s.File, s.New = e.file, e.own(false) < 0
		i := e.own(true)
		l = &e.parts.Layers[i]
	}
	rules, known := l.Agents[agent]
	table, there := rules[q.Action]
	name, was := e.pattern(q, all), l.Agents
	table.Matches = append(slices.Clip(table.Matches), policy.Match{Pattern: policy.Pattern{Text: name}, Decision: core.Allow})
	l.Agents = with(was, agent, with(rules, q.Action, table))
	p, err := policy.Compile(e.parts.Config)
	if err != nil || p.Evaluate(q).Reason == r {
		l.Agents, e.parts = was, before
		return Step{}, false
	}
	s.Text = "allow this name, or more by a wider pattern: it holds " + reach(name, agent)
	switch line := quoted(name) + ": allow"; {
	case there:
		s.Under, s.Lines = []string{"agents", agent, action}, []string{line}
	case known:
		s.Under, s.Lines = []string{"agents", agent}, []string{action + ": { " + line + " }"}
	default:
		if s.Under = []string{"agents"}; was == nil {
			s.Make = s.Under
		}
		s.Lines = []string{key(agent) + ": { " + action + ": { " + line + " } }"}
	}
	return s, true
}

// with is a copy of the map with one more entry.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[K]V{}
	}
	m[k] = v
	return m
}

// key is a name as a key of YAML, quoted where it could be read as something
// else.
func key(name string) string {
	words := []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}
	if regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(name) && !slices.Contains(words, name) {
		return name
	}
	return quoted(name)
}

// quoted is a text as YAML, in double quotes: Go's escapes are YAML's too, but
// for the one of a byte that is no text, which no name has by then.
func quoted(s string) string {
	return strconv.Quote(strings.ToValidUTF8(s, "\ufffd"))
}
