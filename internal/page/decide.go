// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// decide answers a question.
func (p *Page) decide(ctx context.Context, _ *session, f form) (*notice, error) {
	a, err := p.answerOf(f)
	if err != nil {
		return nil, err
	}
	if prompt.WantsAlways(a) && strings.ToLower(strings.TrimSpace(f.values.Get("word"))) != prompt.Always {
		return &notice{Bad: true, Lines: []string{
			"not answered: " + spell.Name(a.Pattern) + " begins with a wildcard", "because: a yes in any session that may reach the whole folder wants its word",
			"next: give this pattern again with the word " + prompt.Always + ", or one that begins with a folder",
		}}, nil
	}
	g, err := p.answered(ctx, f.about, f.shown, a, f.values.Get("code"))
	if err != nil {
		if fault.As(err).Code == fault.ConfirmMissing {
			return &notice{Bad: true, Lines: []string{"not answered: the code is wrong", "because: a yes to this wants its code", "next: type the code that is on the card"}}, nil
		}
		return nil, err
	}
	n := &notice{}
	n.tell(g)
	if a.Kind == grant.No {
		n.Lines = append(n.Lines, p.pausedNow(g.For.Agent)...)
	}
	return n, nil
}

// pausedNow is what is said of an agent whom the last no has paused.
func (p *Page) pausedNow(agent string) []string {
	if !slices.Contains(p.o.Grants.PausedAgents(), agent) {
		return nil
	}
	return []string{agentName(agent) + " is paused: three noes in a row. its other questions are over; permissions resumes it"}
}

// answerOf is the answer that a form gives.
func (p *Page) answerOf(f form) (grant.Answer, error) {
	a := grant.Answer{Approver: Approver}
	v := f.values
	switch v.Get("answer") {
	case "no":
		a.Kind = grant.No
	case "once":
		a.Kind = grant.Once
	case "session":
		a.Kind = grant.Session
	case "pattern":
		a.Kind, a.Pattern = grant.Pattern, strings.TrimSpace(v.Get("pattern"))
	case "always":
		a.Kind, a.Pattern = grant.Always, strings.TrimSpace(v.Get("pattern"))
	case "until":
		life, ok := grant.ParseUntil(strings.TrimSpace(v.Get("until")), p.o.Now())
		if !ok {
			return a, &fault.Error{Code: fault.RequestInvalid, Resource: f.about, Rule: "it is no time and no duration", Hint: "write 30m, 2h, 1d, or 18:00"}
		}
		a.Kind, a.Life = grant.Until, life
	default:
		return a, &fault.Error{Code: fault.RequestInvalid, Resource: f.about, Rule: "the form has no such answer", Hint: "open the page again"}
	}
	return a, nil
}

// answered answers one question, for the card that was shown of it: one that is
// drawn otherwise now is shown again instead, and a yes is taken only while what
// it is about is still there, and with the code where the card has one.
func (p *Page) answered(ctx context.Context, id, shown string, a grant.Answer, code string) (*grant.Grant, error) {
	q, err := p.o.Grants.Question(ctx, id)
	if err != nil {
		return nil, err
	}
	d := prompt.Draw(q)
	if d.Digest != shown {
		return nil, &fault.Error{Code: fault.PreconditionFailed, Resource: id, Rule: "the card is another one now", Hint: "look at it again"}
	}
	if a.Kind != grant.No {
		if names := p.o.State.Since(&q.For); len(names) > 0 {
			return nil, &fault.Error{
				Code: fault.GrantStale, Resource: id, Rule: "it changed since it was asked: " + spell.Name(names[0]), Hint: "let the agent call again, which asks anew",
			}
		}
		if d.Code != "" && strings.ToLower(strings.TrimSpace(code)) != d.Code {
			return nil, &fault.Error{Code: fault.ConfirmMissing, Resource: id, Rule: "a yes to this wants its code"}
		}
	}
	a.Shown = d.Digest
	return p.o.Grants.Decide(ctx, id, a)
}
