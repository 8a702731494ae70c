// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"slices"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
)

// reach is what a yes to a look at a folder shows beneath it: the names that the
// same rule asks about. A name of a built-in list isn't among them, unless the
// folder is of that entry itself.
type reach struct {
	yes Permission
	top pathguard.Name
	by  core.Verdict // on the folder
}

// reach is that of the first operand, nil where nobody was asked to let it be
// listed.
func (c *crossing) reach() *reach {
	r := &reach{yes: c.yes, top: c.operands[0].name}
	r.by = c.gate.evaluate(core.FSList, r.top.Resource())
	same := func(o Operation) bool { return o.Action == core.FSList && o.Resource == r.top.Resource() }
	if c.asked == nil || r.by.Decision != core.Ask || !slices.ContainsFunc(c.asked.Operations, same) {
		return nil
	}
	return r
}

// lists reports whether the policy lets a name be listed, or a person did.
func (g *Gate) lists(n pathguard.Name, said *reach) bool {
	v := g.evaluate(core.FSList, n.Resource())
	return v.Decision == core.Allow || said != nil && v.Decision == core.Ask && said.covers(n, v)
}

func (r *reach) covers(n pathguard.Name, v core.Verdict) bool {
	beneath := n.Root() == r.top.Root() && (r.top.Rel() == "" || strings.HasPrefix(n.Rel(), r.top.Rel()+"/"))
	return beneath && v.Reason == r.by.Reason && (v.List == "" || v.List == r.by.List) && r.yes.Reaches(n.Resource())
}
