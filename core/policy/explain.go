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
// and the order of rules and layers do not change it. Nor do links, which are
// asked about at each request and only deny: whoever makes one voids no answer.
func (p *Policy) Version() string {
	if p == nil || p.version == nil {
		return ""
	}
	return p.version()
}

func version(p *Policy) string {
	var parts []string
	for _, r := range p.roots {
		parts = append(parts, line("root", r.Name, r.Alias, strconv.FormatBool(r.ReadOnly)))
	}
	parts = append(parts, line("require", strconv.Itoa(int(p.ifMatch)), strconv.Itoa(int(p.confirm))))
	parts = p.runs.lines("runs", p.secrets.lines("secrets", parts))
	for i := range p.layers {
		if l := &p.layers[i]; !l.silent() {
			parts = append(parts, l.canon())
		}
	}
	sum := sha256.Sum256([]byte(sorted(parts)))
	return hex.EncodeToString(sum[:])
}

func sorted(parts []string) string {
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "\n")
}

// line joins fields so that no two lists of fields read the same.
func line(fields ...string) string {
	for i, f := range fields {
		fields[i] = strconv.Quote(f)
	}
	return strings.Join(fields, " ")
}

// silent reports whether the layer says nothing about anything.
func (l *layer) silent() bool {
	return len(l.deny.rules)+len(l.rules)+len(l.agents) == 0 && !l.bounded && l.general == nil
}

// canon is all of a layer as one field.
func (l *layer) canon() string {
	out := []string{line(strconv.FormatBool(l.fallback), strconv.FormatBool(l.tighten), l.root, strconv.FormatBool(l.bounded))}
	out = l.rules.lines("rules", l.allow.lines("allow", l.deny.lines("deny", out)))
	for name, t := range l.agents {
		out = t.lines("agent "+name, out)
	}
	if l.general != nil {
		out = append(out, line(l.general.reason.Rule))
	}
	return line("layer", sorted(out))
}

func (t *tables) lines(what string, out []string) []string {
	for a, tab := range *t {
		head := what + " " + a.String()
		out = tab.loose.lines(head, tab.tight.lines(head, out))
		for c, r := range tab.class {
			if r != nil {
				out = append(out, line(head, core.Class(c).String(), r.reason.Decision.String()))
			}
		}
		if tab.orElse != nil {
			out = append(out, line(head, "else", tab.orElse.reason.Decision.String()))
		}
	}
	return out
}

func (s *ruleset) lines(what string, out []string) []string {
	for _, r := range s.rules {
		out = append(out, line(what, r.root, r.pattern.String(), r.reason.Decision.String(), r.reason.Builtin))
	}
	return out
}

// RunsByItself reports whether the built-in entry of that name has files that a program
// reads without being told to: whoever writes one decides what is run.
func RunsByItself(name string) bool {
	return slices.ContainsFunc(runsByItself(), func(e entry) bool { return e.name == name })
}
