// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
)

// Explain returns the reason of every rule that matches, in all layers and
// steps, the deciding one first. What step 1 refuses has that reason alone.
func (p *Policy) Explain(r core.Request) []core.Reason {
	deciding := p.Evaluate(r).Reason
	if deciding.Step == core.StepContainment {
		return []core.Reason{deciding}
	}
	q := p.query(r)
	var all []core.Reason
	if q.kind == kindFile {
		all = p.secrets.all(&q, all)
		if !looks(q.action) {
			all = p.runs.all(&q, all)
		}
	}
	for i := range p.layers {
		all = p.layers[i].all(&q, all)
	}
	slices.SortStableFunc(all, func(a, b core.Reason) int { return int(a.Step) - int(b.Step) })
	out := []core.Reason{deciding}
	for _, reason := range all {
		if !slices.Contains(out, reason) {
			out = append(out, reason)
		}
	}
	return out
}

func (l *layer) all(q *query, out []core.Reason) []core.Reason {
	if q.kind == kindFile && l.root != "" && l.root != q.root {
		return out
	}
	out = l.denies(q).all(q, out)
	if l.bounded && q.kind == kindFile {
		before := len(out)
		if out = l.allow.all(q, out); len(out) == before {
			out = append(out, l.outside)
		}
	}
	if t := l.agentTable(q); t != nil {
		out = t.all(q, out)
	}
	if t := l.rules[q.action]; t != nil {
		out = t.all(q, out)
	}
	if l.general != nil {
		out = append(out, l.general.reason)
	}
	return out
}

// Version returns the hash of what decides: roots, built-in entries, patterns,
// decisions, preconditions. Layout, comments, positions, the person's words
// and the order of rules and layers do not change it.
func (p *Policy) Version() string {
	if p == nil {
		return ""
	}
	return p.version
}

func version(p *Policy, c Config) string {
	var parts []string
	for _, r := range c.Roots {
		parts = append(parts, line("root", r.Name, r.Alias, strconv.FormatBool(r.ReadOnly)))
	}
	parts = append(parts, line("require", strconv.Itoa(int(p.ifMatch)), strconv.Itoa(int(p.confirm))))
	parts = append(parts, p.secrets.canon("secrets")+p.runs.canon("runs"))
	for i := range p.layers {
		parts = append(parts, p.layers[i].canon())
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}

// line joins fields so that no two lists of fields read the same.
func line(fields ...string) string {
	for i, f := range fields {
		fields[i] = strconv.Quote(f)
	}
	return strings.Join(fields, " ")
}

func (l *layer) canon() string {
	parts := []string{
		line("layer", strconv.FormatBool(l.fallback), strconv.FormatBool(l.tighten), l.root, strconv.FormatBool(l.bounded)),
		l.deny.canon("deny"), l.allow.canon("allow"), l.rules.canon("rules"),
	}
	for name, t := range l.agents {
		parts = append(parts, t.canon("agent "+name))
	}
	if l.general != nil {
		parts = append(parts, line(l.general.reason.Rule))
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

func (t *tables) canon(what string) string {
	var parts []string
	for a, tab := range *t {
		head := what + " " + a.String()
		parts = append(parts, tab.tight.canon(head)+tab.loose.canon(head))
		for c, r := range tab.class {
			if r != nil {
				parts = append(parts, line(head, core.Class(c).String(), r.reason.Decision.String()))
			}
		}
		if tab.orElse != nil {
			parts = append(parts, line(head, "else", tab.orElse.reason.Decision.String()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

func (s *ruleset) canon(what string) string {
	var parts []string
	for _, r := range s.rules {
		parts = append(parts, line(what, r.root, r.pattern.String(), r.reason.Decision.String(), r.reason.Builtin))
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "\n")
}
