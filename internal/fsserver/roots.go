// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
)

// view is what the client's roots leave of the operator's: their intersection.
type view struct {
	all      bool             // the client narrows nothing
	empty    bool             // though it has roots, its list is empty
	open     []pathguard.Name // with all beneath them
	left     []*pathguard.Root
	unusable []string // a line each
}

// view asks the session for the client's roots. A client that reports none, or
// an empty list, narrows nothing; one whose list can't be used opens nothing.
func (s *server) view(ctx context.Context, session *mcpserver.Session) view {
	return s.viewOf(session.Roots(ctx))
}

func (s *server) viewOf(roots mcpserver.Roots) view {
	if roots.State == mcpserver.RootsNone || roots.State == mcpserver.RootsKnown && len(roots.URIs) == 0 {
		return view{all: true, empty: roots.State == mcpserver.RootsKnown}
	}
	var v view
	if roots.State == mcpserver.RootsUnusable {
		v.unusable = append(v.unusable, roots.Why.String())
	}
	for _, uri := range roots.URIs {
		if why := v.add(s.o.Gate.Workspace, uri); why != "" {
			v.unusable = append(v.unusable, textsafe.Name(uri)+": "+why)
		}
	}
	for _, r := range s.o.Gate.Workspace.Roots() {
		if !v.whole(r) {
			v.left = append(v.left, r)
		}
	}
	return v
}

// add opens what one of the client's roots has in common with the operator's:
// the operator's roots beneath it, or else the directory itself.
func (v *view) add(w *pathguard.Workspace, uri string) (why string) {
	dir, err := pathguard.FileURI(uri)
	if err != nil {
		return fault.As(err).Rule
	}
	dir = path.Clean(dir)
	found := false
	for _, r := range w.Roots() {
		if above(dir, r.Given()) || above(dir, r.Resolved()) {
			names, err := w.Parse(r.Name() + "://")
			if err == nil {
				v.open, found = append(v.open, names...), true
			}
		}
	}
	if found {
		return ""
	}
	names, err := w.Parse(dir)
	if err != nil {
		return "it is not beneath a directory that the operator opened"
	}
	v.open = append(v.open, follow(names[0])...)
	return ""
}

func above(dir, beneath string) bool {
	return dir == beneath || strings.HasPrefix(beneath, strings.TrimSuffix(dir, "/")+"/")
}

// maxLinks is how many links a client's root may lead over.
const maxLinks = 40

// follow returns the directory and what its name leads to beneath the roots: a
// call beneath it passes over each of these names.
func follow(n pathguard.Name) []pathguard.Name {
	names := []pathguard.Name{n}
	for len(names) <= maxLinks {
		_, err := n.Stat()
		var link *pathguard.LinkError
		if !errors.As(err, &link) {
			break
		}
		n = link.To
		names = append(names, n)
	}
	return names
}

func (v *view) whole(r *pathguard.Root) bool {
	for _, n := range v.open {
		if n.Root() == r && n.Rel() == "" {
			return true
		}
	}
	return false
}

// holds reports whether a name is beneath the client's roots, and whether it is
// one of them.
func (v *view) holds(r core.Resource) (beneath, itself bool) {
	for _, n := range v.open {
		if n.Root().Name() != r.Root {
			continue
		}
		switch rel := n.Rel(); {
		case rel == r.Name:
			return true, true
		case rel == "" || strings.HasPrefix(r.Name, rel) && r.Name[len(rel)] == '/':
			beneath = true
		}
	}
	return beneath, false
}

// narrowed is the operator's policy within the client's roots.
type narrowed struct {
	enforce.Decider
	view view
}

const (
	whyLeftOut = "the client's roots leave it out"
	whyOperand = "a root of the client is never moved or removed"
)

// Evaluate denies what the client's roots leave out, and to move or remove one
// of them: it would mean something else afterwards.
func (n narrowed) Evaluate(r core.Request) core.Verdict {
	if r.Action.IsFile() {
		beneath, itself := n.view.holds(r.Resource)
		switch {
		case !beneath:
			return core.Verdict{Reason: core.Reason{Step: core.StepContainment, Why: whyLeftOut}}
		case itself && (r.Action == core.FSDelete || r.Action == core.FSRename):
			return core.Verdict{Reason: core.Reason{Step: core.StepContainment, Why: whyOperand}}
		}
	}
	return n.Decider.Evaluate(r)
}
