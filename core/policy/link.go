// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/glob"
)

// Link is a link beneath a root that the caller knows of. Where a name of a
// built-in list leads over it, it is not renamed or removed, and the lists judge
// what lies at To by the name that it has through the link too.
type Link struct {
	Root, Path string
	// Entry is the one that it belongs to, "" for that of its name. Such a link has no
	// name here: only what it leads over is known.
	Entry string
	// ToRoot and To are where it leads: "" and "" for beneath no root.
	ToRoot, To string
	// Over says that it leads on from there: what lies at To, a link or a folder
	// before a .., is not renamed or removed either, and has no other name by it.
	Over bool
}

// known is a link that a built-in list leads over.
type known struct {
	Link

	to    glob.Path
	key   string // that of To
	stays string // that of the name that is held
	held  *rule  // the rule that says so, nil if all those entries are lifted
}

const (
	whyAbove = "a link of this name would give what it leads to names that this protects"
	whyHeld  = "this link leads to names that this protects, so it is not moved or removed"
	whyOver  = " leads over it, so it is not moved or removed"
	whyLed   = " leads there"
	unnamed  = "a link with a name that this protects"
)

func (p *Policy) compileLinks(c Config) {
	for _, l := range c.Links {
		q := query{kind: kindFile}.at(l.Root, l.Path)
		r := p.inLists(&q)
		if slices.Contains(c.Lift, l.Entry) {
			continue
		}
		if l.Entry != "" {
			held := Protected{Root: l.ToRoot, Path: l.To, Entry: l.Entry}.rule()
			r = &held
		}
		if r == nil && goesOn(&q, &p.freed, &p.lifted) == nil {
			continue
		}
		k := known{Link: l, to: glob.Prepare(l.To), key: glob.Key(l.To), stays: glob.Key(l.Path)}
		if l.Over {
			k.stays = k.key
		}
		if r != nil {
			k.held = &rule{reason: r.reason}
			k.held.reason.Why = p.whyHeld(l, r)
		}
		p.links = append(p.links, k)
	}
}

// whyHeld names the link, where it may.
func (p *Policy) whyHeld(l Link, by *rule) string {
	if !l.Over {
		return whyHeld
	}
	return p.link(l, by) + whyOver
}

// link names it, where it isn't one whose name is left out of listings.
func (p *Policy) link(l Link, by *rule) string {
	if l.Entry != "" || slices.Contains(p.private, by.reason.Builtin) || by.reason.Builtin == ownState {
		return unnamed
	}
	return "the link " + strconv.Quote(l.Path)
}

// at is the query about another name.
func (q query) at(root, name string) query {
	q.root, q.name, q.path = root, name, glob.Prepare(name)
	return q
}

// through is the query about the name that this one has by way of the link.
func (k *known) through(q *query) (query, bool) {
	if k.Over || k.ToRoot != q.root || k.ToRoot == "" {
		return query{}, false
	}
	rest, ok := q.path.Below(k.key) // this tightens, so other spellings of To count
	if !ok {
		return query{}, false
	}
	return q.at(k.Root, strings.TrimSuffix(k.Path+"/"+rest, "/")), true
}

// holds reports whether the name is the link, or what it leads over.
func (k *known) holds(q *query) bool {
	root := k.Root
	if k.Over {
		root = k.ToRoot
	}
	if k.held == nil || root != q.root {
		return false
	}
	below, ok := q.path.Below(k.stays)
	return ok && below == ""
}

// byLink returns why the name is denied because a link leads to it, or is one that
// is held, and false where it isn't.
func (p *Policy) byLink(q *query) (core.Reason, bool) {
	for i := range p.links {
		k := &p.links[i]
		if (q.action == core.FSRename || q.action == core.FSDelete) && k.holds(q) {
			return k.held.reason, true
		}
		if named, ok := k.through(q); ok {
			if r := p.builtin(&named); r != nil {
				why := r.reason
				why.Why = p.link(k.Link, r) + whyLed
				return why, true
			}
		}
	}
	return core.Reason{}, false
}

// inLists returns a built-in rule about what may lie beneath the name, which is
// one that a list has or is above such a one. Exceptions are for a name itself.
func (p *Policy) inLists(q *query) *rule { return goesOn(q, &p.runs, &p.secrets) }

func goesOn(q *query, sets ...*ruleset) *rule {
	for _, s := range sets {
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
	key := glob.Key(q.name)
	for i := range p.links {
		k := &p.links[i]
		if named, ok := k.through(q); ok {
			if r := p.inLists(&named); r != nil {
				return r
			}
		}
		if _, ok := k.to.Below(key); ok && k.ToRoot == q.root && k.held != nil {
			return k.held // it leads over this name
		}
	}
	return nil
}

// asLink decides about a link that gets the name. What lies beneath the name is
// then judged where the link leads, so no rule that would decide more strictly
// there may be about it. The lists speak before a person, of a denial too.
func (p *Policy) asLink(q *query, v core.Verdict) core.Verdict {
	if v.Reason.Builtin != "" {
		return v
	}
	r := p.near(q)
	for i := 0; r == nil && v.Decision != core.Deny && i < len(p.layers); i++ {
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
