// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/spell"
)

// Found is what there is for a call without asking anybody.
type Found struct {
	// Grant is a yes that covers the call; nil for none.
	Grant *Grant
	// No is that of a person to the identical question a moment ago; nil for none.
	No *Grant
	// Paused: the agent is asked about nothing until a person resumes it.
	Paused bool
	// Near: an answer for once was for the same call, and perhaps for something
	// else that was there. Stale: it was a yes.
	Near, Stale bool
}

// Find looks for an answer that is there. Spend decides whether it still is.
func (s *Store) Find(b *Binding) Found {
	var f Found
	all := s.answers()
	if f.Paused = s.paused(b.Agent); f.Paused || len(all) == 0 {
		return f
	}
	now, p := s.clock.now(), b.prints()
	for _, g := range all {
		if s.over(g, now) {
			continue
		}
		switch {
		case g.Kind == No:
			if g.prints().exact == p.exact && (f.No == nil || f.No.Deadline().Before(g.Deadline())) {
				f.No = g
			}
			f.Near = f.Near || g.prints().sameCall == p.sameCall
		case g.covers(b, p):
			if f.Grant == nil || f.Grant.Kind == Once { // what lasts is not used up
				f.Grant = g
			}
		case g.Kind == Once && g.prints().sameCall == p.sameCall:
			f.Near, f.Stale = true, true
		}
	}
	return f
}

// answers returns the records in grants, from memory where a file is the one
// that was read before. A copy that was put back is none, so that it keeps nobody
// from asking.
func (s *Store) answers() []*Grant {
	names := s.names(grantsDir)
	if len(names) == 0 {
		return nil
	}
	if _, err := s.secret(false); err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := make(map[string]known, len(names))
	all := make([]*Grant, 0, len(names))
	for _, name := range names {
		info, err := os.Lstat(s.path(grantsDir, name))
		if err != nil || s.exists(spentDir, name) {
			continue
		}
		k, ok := s.known[name]
		if !ok || !os.SameFile(k.info, info) || k.info.Size() != info.Size() || !k.info.ModTime().Equal(info.ModTime()) || k.info.Mode() != info.Mode() {
			k = s.fresh(name)
		}
		if k.info == nil {
			continue
		}
		next[name] = k
		all = append(all, k.grant)
	}
	s.known = next
	return all
}

// fresh reads an answer. The caller holds mu and has the key.
func (s *Store) fresh(name string) known {
	var g Grant
	data, info, err := readPrivate(s.path(grantsDir, name))
	if err != nil || unseal(s.key, "answer", name, data, &g) != nil || g.ID != name {
		return known{}
	}
	g.kept = g.For.prints()
	return known{info, &g}
}

// Ask puts a question, or returns the same one that waits already. Its deadline
// is life from now. The error is a refusal that the caller gives on.
func (s *Store) Ask(ctx context.Context, b Binding, card Card, corr string, life time.Duration) (*Question, error) {
	if _, err := s.secret(true); err != nil {
		return nil, err
	}
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s.sweep(ctx)
	if q, err := s.waiting(&b); q != nil || err != nil {
		return q, err
	}
	name := b.exact()
	q := &Question{ID: newID(), Corr: corr, For: b, Card: card, Asked: s.clock.now(), Life: life}
	data, err := seal(s.key, "question", name, q)
	if err != nil || q.Card.Size(&q.For) > MaxQuestion {
		return nil, &fault.Error{Code: fault.LimitExceeded, Op: "ask", Rule: "the question is too large to be shown", Err: err}
	}
	tmp, err := s.draft(pendingDir, data)
	if err != nil {
		return nil, failed(err)
	}
	if err := s.note(q.note(Asked, card.Rule)); err != nil {
		_ = os.Remove(tmp)
		return nil, err
	}
	// What has the name now is no question that anybody could answer.
	if err := s.put(tmp, pendingDir, name); err != nil {
		return nil, failed(err)
	}
	return q, nil
}

// Waiting returns the same question if it waits already, nil if Ask would put a
// new one, and the refusal if there is no place for it. So a card, which may take
// as long as what is there says, is drawn for a new question only.
func (s *Store) Waiting(ctx context.Context, b *Binding) (*Question, error) {
	if _, err := s.secret(true); err != nil {
		return nil, err
	}
	done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s.sweep(ctx)
	return s.waiting(b)
}

func (s *Store) waiting(b *Binding) (*Question, error) {
	if q, err := s.question(b.exact()); err == nil && !s.questionOver(q, s.clock.now()) {
		return q, nil
	}
	if s.paused(b.Agent) {
		return nil, &fault.Error{Code: fault.PolicyAsk, Op: "ask", Rule: PausedRule, Hint: ResumeHint(b.Agent)}
	}
	return nil, s.room(b)
}

// Size is how much there is to read of a question with this card, in bytes.
func (c *Card) Size(b *Binding) int {
	n := len(c.Change)
	for _, fields := range [][]Field{c.Details, c.Says} {
		for _, f := range fields {
			n += len(f.Name) + len(f.Text)
		}
	}
	for _, o := range b.Operations {
		n += len(spell.Name(o.Resource))
	}
	for _, o := range b.Objects {
		n += len(spell.Name(o.Name))
	}
	return n
}

// PausedRule is why nobody is asked about an agent.
const PausedRule = "the policy asks a person, and the agent is paused"

// NoPausedRule is why the call whose no paused the agent was refused.
const NoPausedRule = "a person said no, and the agent is paused"

// room refuses a question beyond the bounds. Those of the agent in other folders
// take none of its room.
func (s *Store) room(b *Binding) error {
	all, own := s.names(pendingDir), 0
	for _, name := range all {
		if q, err := s.question(name); err == nil && q.For.Agent == b.Agent && shareFolder(q.For.Roots, b.Roots) {
			own++
		}
	}
	if own < MaxPending && len(all) < MaxAll {
		return nil
	}
	return &fault.Error{
		Code: fault.PolicyAsk, Op: "ask", Rule: "the policy asks a person, and too many questions wait for an answer",
		Hint: "wait until a person has answered: postern pending", Retry: true,
	}
}

// shareFolder reports whether two calls have a folder in common, by its path, or
// neither has one.
func shareFolder(a, b []Root) bool {
	return len(a)+len(b) == 0 || slices.ContainsFunc(a, func(r Root) bool {
		return slices.ContainsFunc(b, func(o Root) bool { return o.Path == r.Path })
	})
}

func (q *Question) note(e Event, reason string) Note {
	return Note{Event: e, ID: q.ID, Corr: q.Corr, For: q.For, Reason: reason}
}

func (g *Grant) note(e Event, reason string) Note {
	return Note{Event: e, ID: g.ID, Corr: g.Corr, Kind: g.Kind, For: g.For, Approver: g.Approver, Shown: g.Shown, Reason: reason}
}

// The pauses between two looks at a file that somebody else will make.
const (
	pollMin = 50 * time.Millisecond
	pollMax = 250 * time.Millisecond
)

// Wait returns the answer to a question as soon as there is one. It ends with
// nil when ctx does, or when the question is over. tick, if set, is called
// between the looks.
func (s *Store) Wait(ctx context.Context, q *Question, tick func()) *Grant {
	for pause := pollMin; ; pause = min(pause*3/2, pollMax) {
		if g, err := s.answer(grantsDir, q.ID); err == nil {
			return g
		}
		if s.questionOver(q, s.clock.now()) || s.exists(spentDir, q.ID) {
			return nil
		}
		if s.exists(spentDir, q.ID+asked) { // it was answered since, or will never be
			g, err := s.answer(grantsDir, q.ID)
			if err != nil {
				return nil
			}
			return g
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		if tick != nil {
			tick()
		}
	}
}

// paused reports whether a person has to resume the agent first. A record that
// can't be read pauses it.
func (s *Store) paused(agent string) bool {
	r, err := s.agent(agent)
	return err != nil || r.Paused
}

func (s *Store) agent(name string) (*agentRecord, error) {
	var r agentRecord
	err := s.read(agentsDir, agentFile(name), "agent", &r)
	if errors.Is(err, fs.ErrNotExist) {
		return &agentRecord{Agent: name}, nil
	}
	if err == nil && r.Agent != name {
		err = errRecord
	}
	return &r, err
}

func agentFile(name string) string { return digest(name)[:32] }
