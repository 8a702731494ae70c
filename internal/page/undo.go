// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
)

// maxChanges are listed; postern undo list --all lists the rest.
const maxChanges = 50

// change is one on the list.
type change struct {
	ID, Agent, Op, State, Why string
	Names                     []string
	Time                      time.Time
	Undoes                    bool
}

type changes struct {
	All           []change
	More, Damaged int
}

func (p *Page) undoList(*http.Request, *session) (*content, error) {
	found, more, damaged, err := p.o.State.UndoList("", maxChanges)
	if err != nil {
		return nil, err
	}
	all := changes{More: more, Damaged: damaged}
	for _, e := range found {
		c := change{
			ID: e.ID, Agent: agentName(e.Agent), Op: textsafe.Name(e.Op), State: e.State, Why: textsafe.Clean(e.Why).String(),
			Time: e.Time, Undoes: e.Undoes,
		}
		for _, n := range e.Names {
			c.Names = append(c.Names, textsafe.Name(n))
		}
		all.All = append(all.All, c)
	}
	return &content{Name: "undo", Title: "undo", Data: all}, nil
}

// step is one of a plan.
type step struct{ Mark, Text string }

type plan struct {
	ID       string
	Steps    []step
	Problems int
	None     bool // every step is left out
	Stamp    stamp
}

// stepsOf draws the steps, and the digest of what is drawn.
func stepsOf(u *enforce.UndoPlan) (steps []step, digest string) {
	sum := sha256.New()
	for i := range u.Steps {
		s := stepOf(&u.Steps[i])
		_, _ = sum.Write([]byte(u.Steps[i].ID + "\x00" + s.Mark + s.Text + "\n"))
		steps = append(steps, s)
	}
	return steps, hex.EncodeToString(sum.Sum(nil))
}

func stepOf(s *enforce.UndoStep) step {
	text := s.Verb + " " + textsafe.Name(s.Name)
	if s.To != "" {
		text += " to " + textsafe.Name(s.To)
	}
	switch {
	case s.Problem != "":
		return step{"!", s.Problem + ": " + textsafe.Name(s.Name) + " stays as it is: " + textsafe.Clean(s.Why).String()}
	case s.Done:
		text = "done: " + text
	}
	mark := "~"
	switch s.Verb {
	case "remove":
		mark = "-"
	case "recreate":
		mark = "+"
	}
	return step{mark, text}
}

func (p *Page) undoPlan(r *http.Request, s *session) (*content, error) {
	id := r.URL.Query().Get("id")
	u, err := p.planOf(id)
	if err != nil {
		return nil, err
	}
	out := planned(id, u)
	_, digest := stepsOf(u)
	out.Stamp = s.stamp("undo", id, digest, p.o.Now())
	return &content{Name: "plan", Title: "undo " + textsafe.Name(id), Data: out}, nil
}

// planned is a plan as it is drawn, without its stamp.
func planned(id string, u *enforce.UndoPlan) plan {
	out := plan{ID: id, Problems: u.Problems(), None: u.Problems() == len(u.Steps)}
	out.Steps, _ = stepsOf(u)
	return out
}

func (p *Page) planOf(id string) (*enforce.UndoPlan, error) {
	if id == "" {
		return nil, &fault.Error{Code: fault.RequestInvalid, Op: "undo", Rule: "it names no change", Hint: "choose one of the list"}
	}
	return p.o.State.PlanUndo(enforce.UndoSelect{ID: id})
}

// undo takes a change back, if the plan is still the one that was shown.
func (p *Page) undo(ctx context.Context, _ *session, f form) (*notice, error) {
	if err := p.o.State.Recover(ctx); err != nil {
		return nil, err
	}
	u, err := p.planOf(f.about)
	if err != nil {
		return nil, err
	}
	if _, digest := stepsOf(u); digest != f.shown {
		return nil, &fault.Error{Code: fault.PreconditionFailed, Op: "undo", Resource: f.about, Rule: "what would be done is something else now", Hint: "look at the plan again"}
	}
	id, err := p.o.State.Undo(ctx, u, p.o.Person())
	if err != nil {
		return nil, err
	}
	n := &notice{Bad: u.Problems() > 0}
	steps, _ := stepsOf(u)
	for _, s := range steps {
		n.Lines = append(n.Lines, s.Text)
	}
	switch {
	case len(steps) == 0:
		n.Lines = []string{"there is nothing to undo"}
	case id != "":
		n.Lines = append(n.Lines, "to take this back: undo "+strings.TrimSpace(id))
	}
	return n, nil
}
