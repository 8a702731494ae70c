// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
)

// Pending returns the questions that wait for an answer, the oldest first.
func (s *Store) Pending() []*Question {
	if len(s.names(pendingDir)) == 0 {
		return nil
	}
	now := s.clock.now()
	var all []*Question
	for _, name := range s.names(pendingDir) {
		q, err := s.question(name)
		if err == nil && !s.paused(q.For.Agent) && !s.questionOver(q, now) && !s.ended(q.ID) {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(a, b *Question) int {
		return cmp.Or(a.Asked.Wall.Compare(b.Asked.Wall), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Question returns the one with that id, if it waits for an answer.
func (s *Store) Question(ctx context.Context, id string) (*Question, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	q, name, err := s.open(id)
	if err == nil && s.questionOver(q, s.clock.now()) {
		_ = s.expire(name, q, Timeout)
		err = expired(id, Timeout)
	}
	return q, err
}

// Grants returns every yes that is in force, the oldest first.
func (s *Store) Grants() []*Grant {
	now := s.clock.now()
	var all []*Grant
	for _, g := range s.answers() {
		if g.Kind != No && !s.over(g, now) {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b *Grant) int {
		return cmp.Or(a.Given.Wall.Compare(b.Given.Wall), strings.Compare(a.ID, b.ID))
	})
	return all
}

// PausedAgents returns the names of the agents that a person has to resume.
func (s *Store) PausedAgents() []string {
	var all []string
	for _, name := range s.names(agentsDir) {
		var r agentRecord
		if err := s.read(agentsDir, name, "agent", &r); err == nil && r.Paused {
			all = append(all, r.Agent)
		}
	}
	slices.Sort(all)
	return all
}

// Revoke takes back the yes with that id: once it returns, no call is let
// through by it. It holds even where it can't be recorded; the error then says
// so.
func (s *Store) Revoke(ctx context.Context, id, approver string) (*Grant, error) {
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if !ValidID(id) {
		return nil, notInForce(id)
	}
	g, err := s.answer(grantsDir, id)
	if errors.Is(err, fs.ErrNotExist) || err == nil && g.Kind == No {
		return nil, notInForce(id)
	}
	if g.Corr == "" { // it could not be read
		g.Corr = id
	}
	g.ID, g.Approver = id, approver
	if moved := s.retire(id); moved != nil {
		return nil, failed(moved)
	}
	return g, s.note(g.note(Revoked, ""))
}

func notInForce(id string) error {
	return &fault.Error{Code: fault.RequestInvalid, Op: "revoke", Resource: id, Rule: "no approval in force has this id", Hint: "postern grants"}
}

// retire takes an answer out of force, for good.
func (s *Store) retire(id string) error {
	err := s.move(s.path(grantsDir, id), s.path(spentDir, id))
	if errors.Is(err, fs.ErrExist) { // a copy that was put back
		err = os.Remove(s.path(grantsDir, id))
	}
	if err != nil {
		return err
	}
	return errors.Join(s.settle(grantsDir), s.settle(spentDir))
}

// Pause asks nobody about the agent, and spends nothing of it, until Resume.
func (s *Store) Pause(ctx context.Context, agent, approver string) error {
	return s.change(ctx, func() error {
		r, err := s.agent(agent)
		if err != nil {
			r = &agentRecord{Agent: agent}
		}
		return s.pause(r, approver, "")
	})
}

// Resume ends a pause and forgets the noes. Nothing is resumed that can't be
// recorded.
func (s *Store) Resume(ctx context.Context, agent, approver string) error {
	return s.change(ctx, func() error {
		err := s.note(Note{Event: Resumed, For: Binding{Asker: Asker{Agent: agent}}, Approver: approver})
		if err != nil {
			return err
		}
		return s.keepAgent(&agentRecord{Agent: agent, Since: s.clock.now()})
	})
}

func (s *Store) change(ctx context.Context, do func() error) error {
	if _, err := s.secret(true); err != nil {
		return err
	}
	done, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	return do()
}

// InForce returns the ids of everything in grants that isn't a no, readable or
// not: what may be taken back.
func (s *Store) InForce() []string {
	var all []string
	for _, name := range s.names(grantsDir) {
		if g, err := s.answer(grantsDir, name); ValidID(name) && (err != nil || g.Kind != No) {
			all = append(all, name)
		}
	}
	return all
}
