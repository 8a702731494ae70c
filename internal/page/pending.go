// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

// card is a question on the page.
type card struct {
	ID      string
	Asked   string
	Parts   []part
	Code    string
	Digest  string
	Session bool // a yes for the session may be given
	Stamp   stamp
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

func (p *Page) pending(_ *http.Request, s *session) (*content, error) {
	var cards []card
	for _, q := range p.o.Grants.Pending() {
		d := prompt.Draw(q)
		c := card{ID: q.ID, Asked: q.Asked.Wall.Format(time.RFC3339), Code: d.Code, Digest: d.Digest, Session: d.Code == ""}
		for _, each := range d.Parts {
			c.Parts = append(c.Parts, part{kindOf(each.Kind), each.Name, each.Text})
		}
		c.Stamp = s.stamp("decide", q.ID, d.Digest, p.o.Now())
		cards = append(cards, c)
	}
	return &content{Name: "pending", Title: "questions", Data: cards}, nil
}

// decide answers a question. The answer is for the card that was drawn: one
// that is drawn otherwise now is shown again instead.
func (p *Page) decide(ctx context.Context, _ *session, f form) (*notice, error) {
	q, err := p.o.Grants.Question(ctx, f.about)
	if err != nil {
		return nil, err
	}
	d := prompt.Draw(q)
	if d.Digest != f.shown {
		return nil, &fault.Error{Code: fault.PreconditionFailed, Resource: q.ID, Rule: "the card is another one now", Hint: "look at it again"}
	}
	a := grant.Answer{Approver: Approver, Shown: d.Digest}
	switch f.values.Get("answer") {
	case "no":
		a.Kind = grant.No
	case "once":
		a.Kind = grant.Once
	case "session":
		a.Kind = grant.Session
	default:
		return nil, &fault.Error{Code: fault.RequestInvalid, Resource: q.ID, Rule: "the form has no such answer", Hint: "open the page again"}
	}
	if code := strings.ToLower(strings.TrimSpace(f.values.Get("code"))); a.Kind != grant.No && d.Code != "" && code != d.Code {
		return &notice{Bad: true, Lines: []string{"not answered: the code is wrong", "because: a yes to this wants its code", "next: type the code that is on the card"}}, nil
	}
	g, err := p.o.Grants.Decide(ctx, q.ID, a)
	if err != nil {
		return nil, err
	}
	return &notice{Lines: []string{told(g)}}, nil
}

// told says what was answered.
func told(g *grant.Grant) string {
	switch g.Kind {
	case grant.No:
		return "denied: " + what(&g.For)
	case grant.Once:
		return "approved once, until " + g.Deadline().Local().Format(time.TimeOnly) + ": " + what(&g.For)
	default:
		return "approved for this session, until " + g.Deadline().Local().Format(time.DateTime) + ": " + what(&g.For)
	}
}
