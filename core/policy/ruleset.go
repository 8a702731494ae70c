// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/glob"
)

// rule is a compiled rule: what it decides and the reason it gives, made once.
type rule struct {
	root    string // "" for every root
	pattern glob.Pattern
	except  []glob.Pattern
	reason  core.Reason
}

// ruleset is patterns of one comparison, the strictest first, so that the
// first match decides. Beneath says that a pattern also matches what lies
// below what it names.
type ruleset struct {
	rules   []rule
	beneath bool
}

func newRuleset(rules []rule, beneath bool) ruleset {
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.reason.Decision, b.reason.Decision),
			cmp.Compare(len(b.reason.Rule), len(a.reason.Rule)), // of two that match, the longer says more
			cmp.Compare(a.reason.Rule, b.reason.Rule), cmp.Compare(a.root, b.root),
			cmp.Compare(a.reason.Why, b.reason.Why), cmp.Compare(a.reason.Pos.Line, b.reason.Pos.Line),
			cmp.Compare(a.reason.Pos.Column, b.reason.Pos.Column))
	})
	return ruleset{rules, beneath}
}

// first returns the strictest rule that matches, or nil.
func (s *ruleset) first(q *query) *rule {
	for i := range s.rules {
		if s.matches(&s.rules[i], q) {
			return &s.rules[i]
		}
	}
	return nil
}

func (s *ruleset) matches(r *rule, q *query) bool {
	return r.pattern.Matches(&q.path, s.beneath) && r.concerns(q)
}

// all appends the reasons of every rule that matches.
func (s *ruleset) all(q *query, out []core.Reason) []core.Reason {
	for i := range s.rules {
		if s.matches(&s.rules[i], q) {
			out = append(out, s.rules[i].reason)
		}
	}
	return out
}

// concerns reports whether the rule speaks of this root, and no exception
// lifts it. An exception loosens, so it must hold byte for byte, and for the
// key too: a name must not be excepted by what a file system would drop.
func (r *rule) concerns(q *query) bool {
	if r.root != "" && r.root != q.root {
		return false
	}
	for i := range r.except {
		if r.except[i].Matches(&q.path, false) && r.except[i].Match(glob.Key(q.name)) {
			return false
		}
	}
	return true
}

// table is what one action's rules say.
type table struct {
	tight  ruleset // deny and ask
	loose  ruleset // allow
	class  [core.Runtime + 1]*rule
	orElse *rule
}

// decide returns the strictest match, or else the else, or nil.
func (t *table) decide(q *query) *rule {
	best := t.tight.first(q)
	if best == nil {
		best = t.loose.first(q)
	}
	if c := t.class[q.class]; c != nil && (best == nil || c.reason.Decision < best.reason.Decision) {
		best = c
	}
	if best == nil {
		best = t.orElse
	}
	return best
}

func (t *table) all(q *query, out []core.Reason) []core.Reason {
	before := len(out)
	out = t.loose.all(q, t.tight.all(q, out))
	if c := t.class[q.class]; c != nil {
		out = append(out, c.reason)
	}
	if len(out) == before && t.orElse != nil {
		out = append(out, t.orElse.reason)
	}
	return out
}

// table compiles the rules of one action; what names them in texts.
func (c *compiler) table(a core.Action, step core.Step, what string, in Rules) *table {
	var tight, loose []rule
	for _, m := range in.Matches {
		r := c.rule(kindOf(a), step, m.Decision, m.Pattern)
		if m.Decision == core.Allow {
			loose = append(loose, r)
		} else {
			tight = append(tight, r)
		}
	}
	t := &table{tight: newRuleset(tight, kindOf(a) != kindProgram), loose: newRuleset(loose, false)}
	if in.Else != nil {
		text := what
		if len(in.Matches)+len(in.Class) > 0 {
			text += " else"
		}
		t.orElse = outcomeRule(step, text, *in.Else)
	}
	if a == core.ToolCall {
		t.compileClasses(step, what, in.Class)
	}
	return t
}

func (t *table) compileClasses(step core.Step, what string, in map[core.Class]Outcome) {
	for _, c := range []core.Class{core.ReadOnly, core.Mutating, core.Destructive, core.Runtime} {
		out, ok := in[c]
		below := t.class[c-1]
		switch {
		case ok:
			t.class[c] = outcomeRule(step, what+" class "+c.String(), out)
		case below != nil && below.reason.Decision != core.Allow && c != core.Runtime:
			t.class[c] = below
		}
	}
	t.class[core.ClassUnknown] = t.class[core.Destructive]
}

func outcomeRule(step core.Step, what string, o Outcome) *rule {
	return &rule{reason: core.Reason{
		Decision: o.Decision, Step: step, Rule: what + ": " + o.Decision.String(), Pos: o.Pos,
	}}
}
