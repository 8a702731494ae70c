// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"go.yaml.in/yaml/v4"
)

// example is a decision that a policy says it makes. What it is about is
// looked at once the roots are known: one about nothing would be denied, and a
// wrong example would hold.
type example struct {
	node, name *yaml.Node
	text       string
	req        core.Request
	want       core.Decision
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
				x.req.Action, x.name = a, n
				x.text, _ = f.text(n, "the resource")
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

// exemplars returns the resources that an example is about: one, or for the
// root project, where the command line names several folders, each of them.
// Resources are written as the policy writes them: root://path, server/tool, a
// program's absolute path, a host. It returns none after a problem.
func (f *document) exemplars(x example, roots []policy.Root) []core.Resource {
	switch {
	case x.req.Action.IsFile():
		return f.files(x, roots)
	case x.req.Action == core.ToolCall:
		server, tool, _ := strings.Cut(x.text, "/")
		if server == "" || tool == "" {
			f.fail(x.name, "a tool is written as server/tool")
			return nil
		}
		return []core.Resource{core.File(server, tool)}
	case x.text == "", x.req.Action == core.ProcExec && !path.IsAbs(x.text) && !filepath.IsAbs(x.text):
		f.fail(x.name, "the resource must be a program's absolute path, or a host")
		return nil
	default:
		return []core.Resource{core.File("", x.text)}
	}
}

func (f *document) files(x example, roots []policy.Root) []core.Resource {
	scheme, name, ok := strings.Cut(x.text, "://")
	if !ok {
		scheme, name = "", x.text
	}
	plain := strings.TrimPrefix(path.Clean("/"+name), "/")
	var out []core.Resource
	for _, r := range roots {
		if scheme == r.Name || scheme == r.Alias && scheme != "" || scheme == project && f.stands(r, roots) {
			out = append(out, core.File(r.Name, plain))
		}
	}
	switch {
	case !ok:
		f.fail(x.name, "the name has no root: write %s://%s", f.first(roots), plain)
	case len(out) == 0:
		f.fail(x.name, "no root is called %s: write %s://%s", scheme, f.first(roots), plain)
	case plain != name:
		f.fail(x.name, "the name is not canonical: write %s://%s", scheme, plain)
	default:
		return out
	}
	return nil
}

// stands reports whether r is meant by the name project although it has
// another: a folder of the command line, or the root whose own policy this is.
func (f *document) stands(r policy.Root, roots []policy.Root) bool {
	if slices.ContainsFunc(roots, func(r policy.Root) bool { return r.Name == project || r.Alias == project }) {
		return false
	}
	if f.project {
		return r.Name == f.layer.Root
	}
	return r.Pos.Line == 0
}

// first is the root that an example would be about.
func (f *document) first(roots []policy.Root) string {
	if f.layer.Root != "" || len(roots) == 0 {
		return f.layer.Root
	}
	return roots[0].Name
}

// Tried is an example and what became of it.
type Tried struct {
	Pos      core.Position
	Request  core.Request // the one that was decided otherwise, where several are meant
	Want     core.Decision
	Verdict  core.Verdict
	Resource string // as the example names it
}

// OK reports whether the policy decides as the example says.
func (t Tried) OK() bool { return t.Verdict.Decision == t.Want }

// Try loads the policy and returns what became of every example, also where
// one fails, which Load refuses. Roots need not be there. Errors are those of
// Load.
func Try(o Options) (*Config, []Tried, error) {
	l := loader{Options: o, out: &Config{}, trying: true}
	c, err := l.load()
	var all []Tried
	for _, d := range l.docs {
		all = append(all, d.tried...)
	}
	return c, all, err
}

// try holds the examples against the policy of the layers up to this file's.
func (f *document) try(p *policy.Policy, roots []policy.Root, refuse bool) {
	for _, x := range f.examples {
		var t Tried
		for _, resource := range f.exemplars(x, roots) {
			x.req.Resource = resource
			f.stated = append(f.stated, Example{f.pos(x.node), x.req, x.want})
			t = Tried{Pos: f.pos(x.node), Request: x.req, Want: x.want, Verdict: p.Evaluate(x.req), Resource: x.text}
			if !t.OK() {
				break
			}
		}
		if t.Pos.Line == 0 {
			continue // it is about nothing, which is a problem already
		}
		f.tried = append(f.tried, t)
		if !t.OK() && refuse {
			f.failWith(x.node, "change the rule, or the example if the new decision is meant; postern test tries all of them",
				"the example says %v, the policy decides %v: %v", t.Want, t.Verdict.Decision, t.Verdict.Reason)
		}
	}
}
