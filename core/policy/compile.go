// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// Policy is a compiled policy. A nil or zero Policy denies everything. It is
// immutable and safe for concurrent use.
type Policy struct {
	roots   []Root
	secrets ruleset  // every action on a file
	lifted  ruleset  // secrets that may be used and still are
	private []string // names of the entries of secrets
	runs    ruleset  // every action on a file but read, list, watch
	freed   ruleset  // what runs by itself and may be changed
	layers  []layer  // that of Config.Fallback is the last
	links   []known
	ifMatch actionSet
	confirm actionSet
	version func() string // is asked for less often than a decision
}

type layer struct {
	tighten  bool
	fallback bool
	root     string
	deny     ruleset
	program  ruleset // deny, as it reads for programs
	bounded  bool
	allow    ruleset
	outside  core.Reason // when nothing in allow names it
	agents   map[string]*tables
	rules    tables
	general  *rule // the default
}

type tables map[core.Action]*table

type actionSet uint16

func (s actionSet) has(a core.Action) bool { return s&(1<<a) != 0 }

// compiler compiles one policy and keeps the first error, at its place.
type compiler struct {
	roots []Root
	// project says that the words at hand come with a folder, from whoever
	// wrote what is in it. They never reach a reason, which an agent reads as
	// ours; the position leads a person to them.
	project bool
	err     error
}

// Compile returns the policy that c describes. It fails as a whole, with the
// position of the first error, when a pattern is invalid or names an unknown
// root or Lift an unknown entry.
func Compile(c Config) (*Policy, error) {
	p := &Policy{roots: slices.Clone(c.Roots)}
	if err := p.compileBuiltin(c); err != nil {
		return nil, err
	}
	if len(c.Lift) > 0 {
		p.freed = freed(c)
	}
	p.compileLinks(c)
	layers := c.Layers
	if c.Fallback != nil {
		layers = append(slices.Clone(layers), *c.Fallback)
	}
	on := &compiler{roots: c.Roots}
	for i, in := range layers {
		l := on.layer(in)
		l.fallback = i == len(c.Layers)
		p.layers = append(p.layers, l)
	}
	if on.err != nil {
		return nil, on.err
	}
	p.require(c)
	p.version = sync.OnceValue(func() string { return version(p) })
	return p, nil
}

// freed is what runs by itself of the entries that are lifted.
func freed(c Config) ruleset {
	var all Policy
	_ = all.compileBuiltin(Config{Roots: c.Roots, Protected: c.Protected}) // nothing is lifted, so nothing is unknown
	kept := func(r rule) bool { return !slices.Contains(c.Lift, r.reason.Builtin) }
	return ruleset{slices.DeleteFunc(all.runs.rules, kept), true}
}

func (c *compiler) layer(in Layer) layer {
	c.project = in.Tighten
	l := layer{tighten: in.Tighten, root: in.Root, bounded: in.Allow != nil}
	l.outside = core.Reason{Decision: core.Deny, Step: core.StepBoundary, Rule: "allow", Pos: in.AllowPos}
	deny := c.list(kindFile, core.StepDeny, core.Deny, in.Deny)
	var program []rule // the same, as they read for programs
	for i, r := range deny {
		text := in.Deny[i].Text
		if r.root != "" || strings.Contains(text, "/") && !strings.HasPrefix(text, "**") {
			continue // anchored at a root, so it names no program
		}
		program = append(program, c.rule(kindProgram, core.StepDeny, core.Deny, in.Deny[i]))
	}
	allow := c.list(kindFile, core.StepBoundary, core.Allow, in.Allow)
	l.deny, l.program, l.allow = newRuleset(deny, true), newRuleset(program, false), newRuleset(allow, false)
	l.rules = c.tables(core.StepRule, "", in.Rules)
	l.agents = make(map[string]*tables, len(in.Agents))
	for _, name := range slices.Sorted(maps.Keys(in.Agents)) {
		t := c.tables(core.StepAgent, "agents "+name+" ", in.Agents[name])
		l.agents[name] = &t
	}
	if in.Default != nil {
		l.general = outcomeRule(core.StepDefault, "default", *in.Default)
	}
	return l
}

func (c *compiler) tables(step core.Step, prefix string, in map[core.Action]Rules) tables {
	out := make(tables, len(in))
	for _, a := range slices.Sorted(maps.Keys(in)) {
		out[a] = c.table(a, step, prefix+a.String(), in[a])
	}
	return out
}

func (c *compiler) list(k kind, step core.Step, d core.Decision, in []Pattern) []rule {
	rules := make([]rule, 0, len(in))
	for _, p := range in {
		rules = append(rules, c.rule(k, step, d, p))
	}
	return rules
}

// rule compiles one written pattern.
func (c *compiler) rule(k kind, step core.Step, d core.Decision, p Pattern) rule {
	root, pattern, err := compilePattern(k, d, p.Text, c.roots)
	if err != nil && c.err == nil {
		c.err = at(err, p.Pos)
	}
	r := rule{root: root, pattern: pattern, reason: core.Reason{
		Decision: d, Step: step, Rule: d.String() + " " + strconv.Quote(p.Text), Pos: p.Pos, Why: p.Why,
	}}
	if c.project {
		r.reason.Rule, r.reason.Why = d.String()+" of the project's own policy", ""
	}
	return r
}

// require collects the preconditions: each layer adds, and the default holds
// unless a layer that may loosen has said otherwise.
func (p *Policy) require(c Config) {
	stated := false
	for _, l := range c.Layers {
		stated = stated || l.Confirm != nil && !l.Tighten
		p.add(l)
	}
	if c.Fallback == nil {
		return
	}
	fallback := *c.Fallback
	if stated {
		fallback.Confirm = nil
	}
	p.add(fallback)
}

func (p *Policy) add(l Layer) {
	for _, a := range l.IfMatch {
		p.ifMatch |= 1 << a
	}
	for _, a := range l.Confirm {
		p.confirm |= 1 << a
	}
}

// at adds the place of a rule to what is wrong with it.
func at(err error, pos core.Position) error {
	e := *fault.As(err)
	if s := pos.String(); s != "" {
		e.Rule = s + ": " + e.Rule
	}
	return &e
}
