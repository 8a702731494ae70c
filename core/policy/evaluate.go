// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/glob"
)

// query is a request made ready for comparison.
type query struct {
	action core.Action
	kind   kind
	root   string // the file's root, "" for what is not a file
	name   string
	path   glob.Path
	class  core.Class
	agent  string
	proven bool
}

func (p *Policy) query(r core.Request) query {
	q := query{
		action: r.Action, kind: kindOf(r.Action), name: r.Resource.Name,
		class: r.Class, agent: r.Subject.Agent, proven: r.Subject.Proven,
	}
	switch q.kind {
	case kindFile:
		q.root = r.Resource.Root
	case kindTool:
		if p.compares(core.ToolCall) {
			q.name = r.Resource.Root + "/" + r.Resource.Name
		}
	case kindProgram, kindHost:
	}
	if q.class > core.Runtime {
		q.class = core.ClassUnknown
	}
	q.path = glob.Prepare(q.name)
	return q
}

// compares reports whether any rule looks at the name for this action, which
// isn't a file's: joining server and tool costs an allocation.
func (p *Policy) compares(a core.Action) bool {
	for i := range p.layers {
		if p.layers[i].compares(a) {
			return true
		}
	}
	return false
}

func (l *layer) compares(a core.Action) bool {
	if len(l.deny.rules) > 0 || len(l.agents) > 0 {
		return true
	}
	t := l.rules[a]
	return t != nil && len(t.tight.rules)+len(t.loose.rules) > 0
}

// Evaluate decides the request and names the rule that decided: of several
// equally strict ones that of the earliest step.
func (p *Policy) Evaluate(r core.Request) core.Verdict {
	reason, contained := p.contain(r)
	v := verdict(&reason)
	if !contained && (p == nil || !r.Action.IsFile()) {
		return v
	}
	q := p.query(r)
	if contained {
		v = p.decide(&q)
	}
	if q.kind == kindFile {
		v.List, v.Class = p.belongs(&q, v.Reason)
	}
	if r.Link && q.kind == kindFile && contained {
		return p.asLink(&q, v)
	}
	return v
}

// belongs returns the entry of a built-in list that the file belongs to, of those
// that are lifted too, and the same again if it is of the list of secrets.
func (p *Policy) belongs(q *query, by core.Reason) (list, class string) {
	if by.Builtin != "" {
		if slices.Contains(p.private, by.Builtin) { // what runs by itself is no secret
			class = by.Builtin
		}
		return by.Builtin, class
	}
	if list, class = p.entryOf(q, by); list != "" {
		return list, class
	}
	for i := range p.links {
		if named, ok := p.links[i].through(q); ok {
			if list, class = p.entryOf(&named, by); list != "" {
				return list, class
			}
		}
	}
	return "", ""
}

// entryOf is belongs for a name of the file, where no list has decided.
func (p *Policy) entryOf(q *query, by core.Reason) (list, class string) {
	early := by.Step == core.StepContainment // it speaks before the lists
	if class = p.secret(core.File(q.root, q.name), early); class != "" {
		return class, class
	}
	r := p.freed.first(q)
	if r == nil && looks(q.action) && by.Decision == core.Ask { // else a walk would pay for what nobody wants to know
		r = p.runs.first(q)
	}
	if r != nil {
		list = r.reason.Builtin
	}
	return list, ""
}

func (p *Policy) decide(q *query) core.Verdict {
	if deny := p.builtin(q); deny != nil {
		return verdict(&deny.reason)
	}
	if why, denied := p.byLink(q); denied {
		return verdict(&why)
	}
	base, narrow := opinion{decides: true}, opinion{}
	for i := range p.layers {
		if p.layers[i].fallback && base.reason != nil {
			break // somebody has decided, and it is the last one
		}
		o := p.layers[i].opine(q)
		if o.decides {
			base = base.stricter(o)
		} else {
			narrow = narrow.stricter(o)
		}
	}
	if base.reason == nil {
		return core.Verdict{Decision: core.Deny, Reason: nobody(narrow)}
	}
	if narrow.reason != nil && narrow.reason.Decision != core.Allow {
		base = base.stricter(narrow)
	}
	return verdict(base.reason)
}

func verdict(r *core.Reason) core.Verdict { return core.Verdict{Decision: r.Decision, Reason: *r} }

// nobody is the reason when no layer decided: a deny of a tightening one
// names itself.
func nobody(narrow opinion) core.Reason {
	if narrow.reason != nil && narrow.reason.Decision == core.Deny {
		return *narrow.reason
	}
	return core.Reason{Decision: core.Deny, Step: core.StepDefault, Why: "no rule decides this action, so it is denied"}
}

// contain is step 1. It returns the reason of a refusal and false, or true.
func (p *Policy) contain(r core.Request) (core.Reason, bool) {
	reason := core.Reason{Decision: core.Deny, Step: core.StepContainment}
	res := r.Resource
	switch {
	case p == nil:
		reason.Why = "there is no policy"
	case core.ActionUnknown == r.Action || r.Action > core.NetConnect:
		reason.Why = "the action is unknown"
	case !res.Resolved:
	case r.Action.IsFile():
		return p.containFile(r.Action, res)
	case r.Action == core.ToolCall && (res.Root == "" || strings.Contains(res.Root, "/")):
		reason.Why = "the tool's server is not named"
	case r.Action != core.ToolCall && res.Root != "" || res.Name == "":
		reason.Why = "it is not a resource of this action"
	default:
		return reason, true
	}
	return reason, false
}

func (p *Policy) containFile(a core.Action, res core.Resource) (core.Reason, bool) {
	reason := core.Reason{Decision: core.Deny, Step: core.StepContainment}
	if !core.Canonical(res.Name) {
		return reason, false
	}
	for i := range p.roots {
		root := &p.roots[i]
		if root.Name != res.Root {
			continue
		}
		if root.ReadOnly && a.Mutates() {
			reason.Rule, reason.Pos = "access: read", root.Pos
			reason.Why = "the root is for reading only"
			return reason, false
		}
		return reason, true
	}
	reason.Why = "no root has this name"
	return reason, false
}

func (p *Policy) builtin(q *query) *rule {
	if q.kind != kindFile {
		return nil
	}
	if r := p.secrets.first(q); r != nil {
		return r
	}
	if looks(q.action) {
		return nil
	}
	return p.runs.first(q)
}

// looks reports the actions that the list `runs by itself` lets through.
func looks(a core.Action) bool {
	return a == core.FSRead || a == core.FSList || a == core.FSWatch
}

// opinion is what a layer says. One that does not decide can only make the
// decision of others stricter.
type opinion struct {
	reason  *core.Reason
	decides bool
}

// stricter returns the stricter of two opinions; of equal ones that of the
// earlier step, and else the first.
func (o opinion) stricter(x opinion) opinion {
	switch {
	case x.reason == nil:
		return o
	case o.reason == nil, x.reason.Decision < o.reason.Decision:
		return x
	case x.reason.Decision == o.reason.Decision && x.reason.Step < o.reason.Step:
		return x
	}
	return o
}

// opine walks steps 2 to 6 of one layer.
func (l *layer) opine(q *query) opinion {
	if q.kind == kindFile && l.root != "" && l.root != q.root {
		return opinion{}
	}
	if r := l.denies(q).first(q); r != nil {
		return opinion{reason: &r.reason, decides: !l.tighten}
	}
	if l.bounded && q.kind == kindFile && l.allow.first(q) == nil {
		return opinion{reason: &l.outside, decides: !l.tighten}
	}
	o := l.rule(q)
	o.decides = o.decides && !l.tighten
	return o
}

func (l *layer) denies(q *query) *ruleset {
	if q.kind == kindProgram {
		return &l.program
	}
	return &l.deny
}

// rule walks steps 4 to 6. An agent that is not proven may claim any name, so
// its rules can then only tighten what the general ones say.
func (l *layer) rule(q *query) opinion {
	general := l.general
	if t := l.rules[q.action]; t != nil {
		if r := t.decide(q); r != nil {
			general = r
		}
	}
	var agent *rule
	if t := l.agentTable(q); t != nil {
		agent = t.decide(q)
	}
	switch {
	case agent == nil && general == nil:
		return opinion{}
	case agent == nil:
		return opinion{reason: &general.reason, decides: true}
	case q.proven:
		return opinion{reason: &agent.reason, decides: true}
	case general == nil:
		return opinion{reason: &agent.reason}
	case agent.reason.Decision < general.reason.Decision:
		return opinion{reason: &agent.reason, decides: true}
	}
	return opinion{reason: &general.reason, decides: true}
}

func (l *layer) agentTable(q *query) *table {
	t := l.agents[q.agent]
	if t == nil || q.agent == "" {
		return nil
	}
	return (*t)[q.action]
}

// Agents names the agents that have rules of their own.
func (p *Policy) Agents() (names []string) {
	for i := 0; p != nil && i < len(p.layers); i++ {
		names = slices.AppendSeq(names, maps.Keys(p.layers[i].agents))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Ruled reports whether an agent has rules of its own for an action. Where it has none,
// what is decided for it is what is decided for no agent.
func (p *Policy) Ruled(agent string, a core.Action) bool {
	return p != nil && slices.ContainsFunc(p.layers, func(l layer) bool { return l.agentTable(&query{agent: agent, action: a}) != nil })
}

// ConfirmRequired reports whether a call with this action needs confirm: true.
// A nil policy requires it always.
func (p *Policy) ConfirmRequired(a core.Action) bool { return p == nil || p.confirm.has(a) }

// IfMatchRequired reports whether a call with this action needs the etag that
// was read. A nil policy requires it always.
func (p *Policy) IfMatchRequired(a core.Action) bool { return p == nil || p.ifMatch.has(a) }
