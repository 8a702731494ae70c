// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// yes is a grant on the page. Covers tells those of one name apart.
type yes struct {
	ID, Agent, What, For, By string
	Folders                  []string
	Covers                   []part
	Given, Until             time.Time
	Stamp                    stamp
}

// agent is one that can be paused.
type agent struct {
	Name   string // as it is shown
	Paused bool
	Stamp  stamp
}

type permissions struct {
	Grants []yes
	Agents []agent
}

func (p *Page) grants(r *http.Request, s *session) (*content, error) {
	var all permissions
	names := p.o.Reach(r.Context()).Known
	for _, g := range p.o.Grants.Grants() {
		names = append(names, g.For.Agent)
		all.Grants = append(all.Grants, yes{
			g.ID, agentName(g.For.Agent), what(&g.For), g.Reach(), spell.Name(g.Approver), folders(&g.For), covers(g), g.Given.Wall, g.Deadline(),
			s.stamp("revoke", g.ID, "", p.o.Now()),
		})
	}
	for _, q := range p.o.Grants.Pending() {
		names = append(names, q.For.Agent)
	}
	paused := p.o.Grants.PausedAgents()
	names = append(names, paused...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		a := agent{Name: agentName(name), Paused: slices.Contains(paused, name)}
		act := "pause"
		if a.Paused {
			act = "resume"
		}
		a.Stamp = s.stamp(act, name, "", p.o.Now())
		all.Agents = append(all.Agents, a)
	}
	return &content{Name: "grants", Title: "permissions", Data: all}, nil
}

func (p *Page) revoke(ctx context.Context, _ *session, f form) (*notice, error) {
	g, err := p.o.Grants.Revoke(ctx, f.about, Approver)
	if err != nil {
		return nil, err
	}
	return &notice{Lines: []string{"taken back: " + what(&g.For)}}, nil
}

func (p *Page) pause(ctx context.Context, _ *session, f form) (*notice, error) {
	if err := p.o.Grants.Pause(ctx, f.about, Approver); err != nil {
		return nil, err
	}
	return &notice{Lines: []string{"paused: " + agentName(f.about)}}, nil
}

func (p *Page) resume(ctx context.Context, _ *session, f form) (*notice, error) {
	if err := p.o.Grants.Resume(ctx, f.about, Approver); err != nil {
		return nil, err
	}
	return &notice{Lines: []string{"resumed: " + agentName(f.about)}}, nil
}

func (p *Page) logout(_ context.Context, s *session, _ form) (*notice, error) {
	p.end(s)
	return nil, nil //nolint:nilnil // nothing is left to tell it to
}

// agentName is an agent as it is shown; a door may name none.
func agentName(name string) string {
	if name == "" {
		return "- (no name)"
	}
	return spell.Name(name)
}

// what is the operations of a binding on one line, of all that are listed.
func what(b *grant.Binding) string {
	var all []string
	for _, o := range b.Operations {
		all = append(all, spell.Name(o.Action)+" "+spell.Name(o.Resource))
	}
	text := strings.Join(all, ", ")
	if b.More > 0 {
		text += fmt.Sprintf(" and %d more", b.More)
	}
	return text
}

// folders are the paths that the names of a binding begin at.
func folders(b *grant.Binding) (all []string) {
	for _, r := range b.Roots {
		all = append(all, spell.Name(r.Path))
	}
	return all
}

// shortDigest is how much of one tells two apart to a person.
const shortDigest = 12

// covers is what a yes is bound to beside its operations and its folder.
func covers(g *grant.Grant) (all []part) {
	add := func(name, text string) { all = append(all, part{"field", name, text}) }
	b := &g.For
	if g.Pattern != "" {
		add("tool", "any of "+spell.Name(b.Server))
		return all
	}
	add("tool", spell.Name(strings.TrimPrefix(b.Server+"/"+b.Tool, "/")))
	add("class", spell.Name(b.Class))
	add("call", spell.Name(g.Covers))
	if b.Arguments != "" {
		add("arguments", "sha256 "+spell.Name(b.Arguments[:min(len(b.Arguments), shortDigest)]))
	}
	for _, o := range b.Objects {
		if !slices.ContainsFunc(b.Operations, func(p grant.Operation) bool { return p.Resource == o.Name }) {
			add("with", spell.Name(o.Name))
		}
		if g.Kind == grant.Once && o.Hash != "" {
			add("on content", "sha256 "+spell.Name(o.Hash[:min(len(o.Hash), shortDigest)]))
		}
	}
	return all
}
