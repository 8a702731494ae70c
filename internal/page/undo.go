// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/spell"
)

// maxChanges are listed; postern undo list --all lists the rest.
const maxChanges = 50

// change is one on the list. Session is as it came, the rest as it is shown.
type change struct {
	ID, Agent, Op, State, Why, Session string
	Names, Folders                     []string
	Time                               time.Time
	Undoes                             bool
}

type changes struct {
	Session       string // whose changes these are, "" for everybody's
	All           []change
	More, Damaged int
	Outside       string
}

func (p *Page) undoList(r *http.Request, _ *session) (*content, error) {
	of := r.URL.Query().Get("session")
	found, more, damaged, err := p.o.State.UndoList(of, maxChanges)
	if err != nil {
		return nil, err
	}
	all := changes{Session: of, More: more, Damaged: damaged, Outside: p.outside(r.Context(), found)}
	for _, e := range found {
		c := change{
			ID: e.ID, Agent: agentName(e.Agent), Op: spell.Name(e.Op), State: e.State, Why: textsafe.Clean(e.Why).String(),
			Session: e.Session, Time: e.Time, Undoes: e.Undoes,
		}
		for _, n := range e.Names {
			c.Names = append(c.Names, spell.Name(n))
		}
		for _, f := range e.Roots {
			c.Folders = append(c.Folders, folder(f))
		}
		all.All = append(all.All, c)
	}
	return &content{Name: "undo", Title: "undo", Data: all}, nil
}

// folder draws where a root lies.
func folder(path string) string {
	if path == "" {
		return "a folder that the journal doesn't name"
	}
	return spell.Word(path)
}

// step is one of a plan, with what it changes in a file.
type step struct {
	Mark, Text   string
	Change       string
	Added, Taken int    // lines of the change
	Notes        []part // what of it is not shown, and what nobody would see
}

type plan struct {
	Select   enforce.UndoSelect
	Outside  string // beside a plan of a session
	Steps    []step
	Problems int
	Unshown  int  // steps whose changes are not shown
	None     bool // every step is left out
	Nothing  string
	Stamp    stamp
}

// stepsOf draws the steps, and the digest of what is drawn.
func stepsOf(u *enforce.UndoPlan) (steps []step, digest string) {
	sum := sha256.New()
	for i := range u.Steps {
		s := stepOf(&u.Steps[i])
		_, _ = fmt.Fprintf(sum, "%s\x00%s%s\n%q%q\n", u.Steps[i].ID, s.Mark, s.Text, s.Change, s.Notes)
		steps = append(steps, s)
	}
	return steps, hex.EncodeToString(sum.Sum(nil))
}

func stepOf(s *enforce.UndoStep) step {
	name := spell.Word(s.Name) + " in " + folder(s.Root)
	text := s.Verb + " " + name
	if s.To != "" {
		text += " to " + spell.Word(s.To) + " in " + folder(s.ToRoot)
	}
	switch {
	case s.Problem != "":
		return step{Mark: "!", Text: s.Problem + ": " + name + " stays as it is: " + textsafe.Clean(s.Why).String()}
	case s.Done:
		text = did(s.Verb) + strings.TrimPrefix(text, s.Verb)
	}
	out := step{Mark: "~", Text: text}
	switch s.Verb {
	case "remove":
		out.Mark = "-"
	case "recreate":
		out.Mark = "+"
	}
	for _, each := range partsOf(prompt.Changed(s.Change, s.Unshown)) {
		if each.Kind != "change" {
			out.Notes = append(out.Notes, each)
			continue
		}
		out.Change = each.Text
		out.Added, out.Taken = counted(each.Text)
	}
	return out
}

// did is the verb of a step that was done: restore, remove, recreate, rename
// back, shorten or lengthen.
func did(verb string) string {
	word, rest, _ := strings.Cut(verb, " ")
	return strings.TrimSpace(strings.TrimSuffix(word, "e") + "ed " + rest)
}

func (p *Page) undoPlan(r *http.Request, s *session) (*content, error) {
	sel := enforce.UndoSelect{ID: r.URL.Query().Get("id"), Session: r.URL.Query().Get("session")}
	u, err := p.planOf(r.Context(), sel)
	if err != nil {
		return nil, err
	}
	out := planned(u)
	_, digest := stepsOf(u)
	if sel.Session == "" {
		out.Stamp = s.stamp("undo", sel.ID, digest, p.o.Now())
		return &content{Name: "plan", Title: "undo " + spell.Name(sel.ID), Data: out}, nil
	}
	found, _, _, err := p.o.State.UndoList(sel.Session, -1)
	if err != nil {
		return nil, err
	}
	out.Outside = p.outside(r.Context(), found)
	out.Stamp = s.stamp("undo-session", sel.Session, digest, p.o.Now())
	return &content{Name: "plan", Title: "undo session " + spell.Name(sel.Session), Data: out}, nil
}

// planned is a plan as it is drawn, without its stamp.
func planned(u *enforce.UndoPlan) plan {
	out := plan{Select: u.Select, Problems: u.Problems(), Unshown: u.Unshown, None: u.Problems() == len(u.Steps), Nothing: u.Nothing()}
	out.Steps, _ = stepsOf(u)
	return out
}

// planOf is a plan with what it changes, as it is shown, and looked at again before
// it is carried out.
func (p *Page) planOf(ctx context.Context, sel enforce.UndoSelect) (*enforce.UndoPlan, error) {
	if (sel.ID == "") == (sel.Session == "") {
		return nil, &fault.Error{Code: fault.RequestInvalid, Op: "undo", Rule: "it names no change and no session, or both", Hint: "choose one of the list"}
	}
	u, err := p.o.State.PlanUndo(ctx, sel, p.o.Person())
	if err != nil {
		return nil, err
	}
	p.o.State.ShowUndo(u, p.o.Person(), edit.Diff)
	return u, nil
}

// undo takes a change back.
func (p *Page) undo(ctx context.Context, _ *session, f form) (*notice, error) {
	return p.takeBack(ctx, enforce.UndoSelect{ID: f.about}, f.shown)
}

// undoSession takes back every change of a session.
func (p *Page) undoSession(ctx context.Context, _ *session, f form) (*notice, error) {
	return p.takeBack(ctx, enforce.UndoSelect{Session: f.about}, f.shown)
}

// maxSteps are told of what was done; postern log has all.
const maxSteps = 50

// takeBack carries out a plan, if it is still the one that was shown.
func (p *Page) takeBack(ctx context.Context, sel enforce.UndoSelect, shown string) (*notice, error) {
	if err := p.o.State.Settle(ctx); err != nil {
		return nil, err
	}
	u, err := p.planOf(ctx, sel)
	if err != nil {
		return nil, err
	}
	if _, digest := stepsOf(u); digest != shown {
		return nil, &fault.Error{Code: fault.PreconditionFailed, Op: "undo", Resource: sel.ID + sel.Session, Rule: "what would be done is something else now", Hint: "look at the plan again"}
	}
	id, err := p.o.State.Undo(ctx, u, p.o.Person())
	if err != nil {
		return nil, err
	}
	n := &notice{Bad: u.Problems() > 0}
	steps, _ := stepsOf(u)
	for i, s := range steps {
		if s.Mark == "!" || i < maxSteps { // what was left out is told in any case
			n.Lines = append(n.Lines, s.Text)
		}
	}
	if left := len(steps) - len(n.Lines); left > 0 {
		n.Lines = append(n.Lines, "and "+strconv.Itoa(left)+" more that are done")
	}
	switch {
	case len(steps) == 0:
		n.Lines = []string{u.Nothing()}
	case id != "":
		n.Lines = append(n.Lines, "to take this back: undo "+strings.TrimSpace(id))
	}
	return n, nil
}
