// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"time"

	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// card is a question on the page, or several that are alike.
type card struct {
	ID     string
	Digest string
	Parts  []part
	Code   string // to be typed for a yes, "" where a click is one
	// WhyCode is why.
	WhyCode string
	// Unshown says what the card doesn't show, "" for nothing.
	Unshown string
	// Changed are the names that lead to something else since it was asked: no
	// yes is taken then.
	Changed []string
	Wider   *wider   // nil where a yes is for once
	Stamp   stamp    // of the form; of several, that is about their agent
	Rows    []choice // of questions that are alike, none for one question
	All     stamp    // of a tick for all of these
}

// wider is what a yes for more than once would cover.
type wider struct {
	Who, Server, Actions string
	Pattern              string // that is proposed, "" where there can be none
	Named                bool   // the agent is: what serves other sessions needs that
}

// part is one of the card's, by a name that the template knows.
type part struct {
	Kind, Name, Text string
}

func kindOf(k prompt.PartKind) string {
	switch k {
	case prompt.Says:
		return "says"
	case prompt.Change:
		return "change"
	case prompt.Undo:
		return "undo"
	case prompt.Names:
		return "names"
	case prompt.Targets:
		return "target"
	case prompt.Field:
	}
	return "field"
}

// asked is a question as it would be drawn.
type asked struct {
	*grant.Question

	drawn   prompt.Card
	changed []string
}

func (p *Page) pending(_ *http.Request, s *session) (*content, error) {
	var all []asked
	for _, q := range p.o.Grants.Pending() {
		all = append(all, asked{q, prompt.Draw(q), p.o.State.Since(&q.For)})
	}
	var cards []card
	for _, g := range grouped(all) {
		if len(g) == 1 {
			cards = append(cards, p.cardOf(s, &g[0]))
		} else {
			cards = append(cards, p.cardOfMany(s, g))
		}
	}
	return &content{Name: "pending", Title: "questions", Data: cards}, nil
}

// partsOf are the parts of a card as the template knows them.
func partsOf(drawn []prompt.Part) (all []part) {
	for _, each := range drawn {
		all = append(all, part{kindOf(each.Kind), each.Name, each.Text})
	}
	return all
}

func (p *Page) cardOf(s *session, q *asked) card {
	unshown, _ := spell.Out(q.Card.Unshown, false)
	c := card{ID: q.ID, Digest: q.drawn.Digest, Parts: partsOf(q.drawn.Parts), Code: q.drawn.Code, WhyCode: q.drawn.WhyCode, Unshown: unshown}
	if c.Unshown == "" && q.For.More > 0 {
		c.Unshown = "names"
	}
	for _, n := range q.changed {
		c.Changed = append(c.Changed, spell.Name(n))
	}
	if c.Code == "" {
		c.Wider = widerOf(q)
	}
	c.Stamp = s.stamp("decide", q.ID, c.Digest, p.o.Now())
	return c
}

func widerOf(q *asked) *wider {
	w := &wider{Who: agentName(q.For.Agent), Server: spell.Name(q.For.Server), Actions: q.drawn.Actions, Named: q.For.Agent != ""}
	if p := q.drawn.Pattern; spell.Name(p) == p { // what is sent is what is seen
		w.Pattern = p
	}
	return w
}

// told says what was answered.
func told(g *grant.Grant) string {
	until := ", until " + g.Deadline().Local().Format(time.DateTime) + ": " + what(&g.For)
	switch g.Kind {
	case grant.No:
		return "denied: " + what(&g.For)
	case grant.Once:
		return "approved once, until " + g.Deadline().Local().Format(time.TimeOnly) + ": " + what(&g.For) + "; a call that waits goes on, else the agent has to call again"
	case grant.Pattern:
		return "approved on " + spell.Name(g.Pattern) + " for this session" + until
	case grant.Always:
		return "approved on " + spell.Name(g.Pattern) + " for any session" + until
	case grant.Until:
		return "approved for any session" + until
	default:
		return "approved for this session" + until
	}
}
