// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/glob"
)

// Link is a link beneath a root that the caller knows of. Where a name of a
// built-in list leads over it, it is not renamed or removed, and the lists judge
// what lies at To by the name that it has through the link too.
type Link struct {
	Root, Path string
	// ToRoot and To are where it leads: "" and "" for beneath no root.
	ToRoot, To string
}

// known is a link that a built-in list leads over, and the rule that says so.
type known struct {
	Link

	held rule
}

const (
	whyAbove = "a link of this name would give what it leads to names that this protects"
	whyHeld  = "this link leads to names that this protects, so it is not moved or removed"
	whyLed   = "a link with a name that this protects leads there"
)

func (p *Policy) compileLinks(c Config) {
	for _, l := range c.Links {
		q := query{kind: kindFile}.at(l.Root, l.Path)
		if r := p.inLists(&q); r != nil {
			k := known{l, *r}
			k.held.reason.Why = whyHeld
			p.links = append(p.links, k)
		}
	}
}

// at is the query about another name.
func (q query) at(root, name string) query {
	q.root, q.name, q.path = root, name, glob.Prepare(name)
	return q
}

// through is the query about the name that this one has by way of the link.
func (k *known) through(q *query) (query, bool) {
	if k.ToRoot != q.root || k.ToRoot == "" {
		return query{}, false
	}
	rest, ok := under(q.name, k.To)
	if !ok {
		return query{}, false
	}
	return q.at(k.Root, strings.TrimSuffix(k.Path+"/"+rest, "/")), true
}

// under returns what name is below dir. This tightens, so other spellings of dir
// count.
func under(name, dir string) (string, bool) {
	if dir == "" {
		return name, true
	}
	end, parts := 0, strings.Count(dir, "/")+1
	for ; end < len(name); end++ {
		if name[end] == '/' {
			if parts--; parts == 0 {
				break
			}
		}
	}
	if glob.Key(name[:end]) != glob.Key(dir) {
		return "", false
	}
	return strings.TrimPrefix(name[end:], "/"), true
}

// byLink returns why the name is denied because a link leads to it, or is one that
// is held, and false where it isn't.
func (p *Policy) byLink(q *query) (core.Reason, bool) {
	for i := range p.links {
		k := &p.links[i]
		if k.Root == q.root && k.Path == q.name && (q.action == core.FSRename || q.action == core.FSDelete) {
			return k.held.reason, true
		}
		if named, ok := k.through(q); ok {
			if r := p.builtin(&named); r != nil {
				why := r.reason
				why.Why = whyLed
				return why, true
			}
		}
	}
	return core.Reason{}, false
}

// inLists returns a built-in rule about what may lie beneath the name, which is
// one that a list has or is above such a one. Exceptions are for a name itself.
func (p *Policy) inLists(q *query) *rule {
	for _, s := range [...]*ruleset{&p.runs, &p.secrets} {
		for i := range s.rules {
			if r := &s.rules[i]; (r.root == "" || r.root == q.root) && (r.pattern.Matches(&q.path, true) || r.pattern.Above(&q.path)) {
				return r
			}
		}
	}
	return nil
}

// near is inLists for the names too that links give to this one or beneath it.
func (p *Policy) near(q *query) *rule {
	if r := p.inLists(q); r != nil {
		return r
	}
	for i := range p.links {
		k := &p.links[i]
		if named, ok := k.through(q); ok {
			if r := p.inLists(&named); r != nil {
				return r
			}
		}
		if _, ok := under(k.To, q.name); ok && k.ToRoot == q.root {
			return &k.held // it leads over this name
		}
	}
	return nil
}

// asLink decides about a link that gets the name. What lies beneath the name is
// then judged where the link leads, so no rule that would decide more strictly
// there may be about it.
func (p *Policy) asLink(q *query, v core.Verdict) core.Verdict {
	r := p.near(q)
	for i := 0; r == nil && i < len(p.layers); i++ {
		r = p.layers[i].above(q, v.Decision)
	}
	if r != nil {
		v.Decision, v.Reason = core.Deny, r.reason
		v.Reason.Decision, v.Reason.Why = core.Deny, whyAbove
	}
	return v
}

// above returns a written rule about names beneath this one that is stricter than
// what holds for the name.
func (l *layer) above(q *query, than core.Decision) *rule {
	if l.root != "" && l.root != q.root {
		return nil
	}
	sets := []*ruleset{&l.deny}
	agent, general := l.agentTable(q), l.rules[q.action]
	if agent != nil {
		sets = append(sets, &agent.tight)
	}
	if general != nil && (agent == nil || agent.orElse == nil || !q.proven) { // else the agent's own has decided
		sets = append(sets, &general.tight)
	}
	for _, s := range sets {
		for i := range s.rules {
			r := &s.rules[i]
			if r.reason.Decision < than && (r.root == "" || r.root == q.root) && r.pattern.Above(&q.path) {
				return r
			}
		}
	}
	return nil
}
