// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/spell"
)

// Answer is what a person says.
type Answer struct {
	Kind     Kind
	Pattern  string        // of Pattern and Always: root://glob
	Life     time.Duration // of Until
	Approver string        // how it was said, as "terminal"
	Shown    string        // digest of the card that was shown
}

// Decide answers the question with that id. The first answer holds; everybody
// else is told so by precondition.failed. Nothing is answered that isn't
// recorded.
func (s *Store) Decide(ctx context.Context, id string, a Answer) (*Grant, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	q, name, err := s.open(id)
	if err != nil {
		return nil, err
	}
	now := s.clock.now()
	if s.questionOver(q, now) {
		_ = s.expire(name, q, Timeout)
		return nil, expired(id, Timeout)
	}
	if a.Kind != No && s.paused(q.For.Agent) {
		return nil, &fault.Error{Code: fault.PreconditionFailed, Resource: id, Rule: "the agent is paused, and asks for nothing", Hint: ResumeHint(q.For.Agent)}
	}
	g, err := s.granted(q, a, now)
	if err != nil {
		return nil, err
	}
	if err := s.give(g); err != nil {
		return nil, err
	}
	s.step("answered")
	_ = s.putAway(name, id) // else the next sweep does it
	return g, s.count(q.For.Agent, g)
}

// give puts an answer in force. It is written before it is recorded, and recorded
// before it holds.
func (s *Store) give(g *Grant) error {
	data, err := seal(s.key, "answer", g.ID, g)
	if err != nil {
		return failed(err)
	}
	tmp, err := s.draft(grantsDir, data)
	if err != nil {
		return failed(err)
	}
	event := Approved
	if g.Kind == No {
		event = Denied
	}
	if err := s.note(g.note(event, "")); err != nil {
		_ = os.Remove(tmp)
		return err
	}
	s.step("recorded")
	if err := s.place(tmp, grantsDir, g.ID); errors.Is(err, fs.ErrExist) {
		return decided(g.ID, "")
	} else if err != nil {
		return failed(err)
	}
	return nil
}

// open returns the question with that id that waits, and the name of its file.
func (s *Store) open(id string) (*Question, string, error) {
	if !ValidID(id) {
		return nil, "", unknown(id)
	}
	if _, err := s.secret(false); err != nil {
		return nil, "", unknown(id)
	}
	if g, err := s.answer(grantsDir, id); err == nil {
		return nil, "", decided(id, g.Said())
	}
	if g, err := s.answer(spentDir, id); err == nil {
		if why := s.Why(id); why != "" {
			return nil, "", lapsed(id, why)
		}
		return nil, "", decided(id, g.Said())
	}
	if s.exists(grantsDir, id) || s.exists(spentDir, id) {
		return nil, "", decided(id, "")
	}
	if s.exists(spentDir, id+asked) {
		return nil, "", expired(id, s.Why(id))
	}
	for _, name := range s.names(pendingDir) {
		if q, err := s.question(name); err == nil && q.ID == id {
			return q, name, nil
		}
	}
	return nil, "", unknown(id)
}

// granted makes the record of an answer, or refuses one that may not be given.
func (s *Store) granted(q *Question, a Answer, now Moment) (*Grant, error) {
	if rule := q.MayNot(a); rule != "" {
		return nil, &fault.Error{Code: fault.RequestInvalid, Resource: q.ID, Rule: rule, Hint: "postern approve " + q.ID}
	}
	if a.Kind != No && len(s.names(grantsDir)) >= MaxAll {
		return nil, &fault.Error{Code: fault.LimitExceeded, Resource: q.ID, Rule: "too many approvals are in force", Hint: "postern revoke --all"}
	}
	return q.answered(a, now), nil
}

// MayNot is why the answer may not be given to the question, "" if it may, so that
// nobody is asked for a yes that Decide then refuses.
func (q *Question) MayNot(a Answer) string {
	if a.Kind == No {
		return ""
	}
	rule := q.answered(a, q.Asked).mayNot()
	if rule == "" && a.Kind != Once && q.WantsCode() {
		rule = eachTime
	}
	return rule
}

// answered is the record of an answer.
func (q *Question) answered(a Answer, now Moment) *Grant {
	g := &Grant{
		ID: q.ID, Corr: q.Corr, Kind: a.Kind, For: q.For, Given: now,
		Approver: a.Approver, Shown: a.Shown, Covers: q.covers(),
	}
	switch a.Kind {
	case No:
		g.Life = NoLife
	case Once: // one deadline for the question and its answer
		g.Given, g.Life = q.Asked, q.Life
	case Session:
		g.Life = SessionLife
	case Pattern:
		g.Pattern, g.Life, g.Covers = a.Pattern, SessionLife, "any tool"
	case Always:
		g.Pattern, g.Life, g.Covers = a.Pattern, AlwaysLife, "any tool"
	case Until:
		g.Life = a.Life
	}
	return g
}

// eachTime is why a yes to what has a code on its card is for once.
const eachTime = "it is destructive: a yes to it is given once, each time"

// mayNot is why the yes may not be given, "" if it may.
func (g *Grant) mayNot() string {
	switch {
	case g.Kind == Once:
		return ""
	case g.Kind != Session && g.Kind != Pattern && !g.Kind.outlives():
		return "there is no such kind of approval"
	case g.For.Destructive():
		return eachTime
	case g.Kind.outlives() && g.For.Agent == "":
		return "the door names no agent, so it can be approved for its session only"
	case g.Kind.patterned() && g.For.Private:
		return "no pattern may cover a name of the built-in lists"
	case g.Kind.patterned():
		return g.patternRule()
	case g.Kind == Until && (g.Life <= 0 || g.Life > MaxUntil):
		return "the time must lie in the next 7 days"
	}
	return ""
}

// count keeps the number of a person's noes in a row, the last of which pauses
// the agent.
func (s *Store) count(agent string, g *Grant) error {
	r, err := s.agent(agent)
	if err != nil {
		return nil //nolint:nilerr // it is paused until a person resumes it
	}
	if g.Kind != No {
		if r.Noes == 0 {
			return nil
		}
		r.Noes = 0
		return s.keepAgent(r)
	}
	if r.Noes++; r.Noes < NoesInRow || r.Paused {
		return s.keepAgent(r)
	}
	return s.pause(r, g.Approver, "three noes in a row")
}

func (s *Store) keepAgent(r *agentRecord) error {
	data, err := seal(s.key, "agent", agentFile(r.Agent), r)
	if err != nil {
		return failed(err)
	}
	tmp, err := s.draft(agentsDir, data)
	if err == nil {
		err = s.put(tmp, agentsDir, agentFile(r.Agent))
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

func (s *Store) pause(r *agentRecord, approver, reason string) error {
	r.Paused, r.Since = true, s.clock.now()
	if err := s.keepAgent(r); err != nil {
		return err
	}
	for _, name := range s.names(pendingDir) {
		if q, err := s.question(name); err == nil && q.For.Agent == r.Agent {
			_ = s.expire(name, q, "the agent was paused")
		}
	}
	// It holds already: stopping is never kept back by a log that is full.
	return s.note(Note{Event: Paused, For: Binding{Asker: Asker{Agent: r.Agent}}, Approver: approver, Reason: reason})
}

// Said is what the answer was, for somebody who comes second.
func (g *Grant) Said() string {
	word := "approved"
	if g.Kind == No {
		word = "denied"
	}
	return word + " by " + g.Approver
}

// Reach is how far the answer reaches, as it is drawn for a person.
func (g *Grant) Reach() string {
	switch g.Kind {
	case Once:
		return "once"
	case Session:
		return "this call in its session"
	case Pattern:
		return "on " + spell.Name(g.Pattern) + " in its session"
	case Always:
		return "on " + spell.Name(g.Pattern) + " in any session"
	case Until:
		return "this call in any session"
	default:
		return "no"
	}
}

func unknown(id string) error {
	return &fault.Error{Code: fault.RequestInvalid, Resource: id, Rule: "no question has this id", Hint: "postern pending"}
}

func decided(id, said string) error {
	rule := "it was answered before"
	if said != "" {
		rule += ": " + said
	}
	return &fault.Error{Code: fault.PreconditionFailed, Resource: id, Rule: rule, Hint: "postern grants shows what is in force"}
}

// lapsed is of a yes that ended by itself, used or not.
func lapsed(id, reason string) error {
	if reason == Timeout {
		reason = "its time is over"
	}
	return &fault.Error{Code: fault.PreconditionFailed, Resource: id, Rule: "it was answered before, and ended: " + reason, Hint: askedAnew}
}

// askedAnew is what helps where a question or its answer is over.
const askedAnew = "let the agent call again, which asks anew"

// expired is of a question that ended without an answer. Without its reason it was
// its time.
func expired(id, reason string) error {
	rule := "the question's time is over"
	if reason != "" && reason != Timeout {
		rule = "the question is over: " + reason
	}
	return &fault.Error{Code: fault.GrantExpired, Resource: id, Rule: rule, Hint: askedAnew}
}
