// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"slices"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/undo"
)

// UndoSelect says what is to be taken back: one of the three.
type UndoSelect struct {
	ID      string // of a change, or of an undo, whose undo is the redo
	Session string // every change of a session
	Last    bool   // the newest change that is not taken back yet
	// Near bounds Last to changes beneath a root that contains this path, which
	// is absolute and without links, or that lies beneath it; "" is all.
	Near string
}

// The problems of a step.
const (
	UndoConflict  = "conflict"        // what is there is not what the change left
	UndoUncovered = "not covered"     // it could not be undone when it was made
	UndoAttention = "needs attention" // a crash left something that nobody can tell
	UndoRunning   = "still running"
	UndoGone      = "no longer kept"  // the bounds removed what was there before
	UndoFinal     = "can't be redone" // what it would take away can't be kept
	UndoFailed    = "failed"
)

// UndoStep is one name that an undo would change, or has.
type UndoStep struct {
	Verb    string // restore, remove, recreate, rename back, shorten, lengthen
	Name    string // canonical
	Root    string // the path of its root, "" where the journal doesn't say
	To      string // of a rename back, the name that it gets
	ToRoot  string // and the path of the root of that
	Problem string // "" for none
	Why     string // of the problem
	Done    bool
	ID      string // of the change
	// Change is the diff from what is there to what would be, or lines that stand
	// for it; Unshown says what of it they don't tell. ShowUndo fills them in.
	Change, Unshown string
	entered         *undo.Entered
}

// UndoPlan is what an undo would do, in its order.
type UndoPlan struct {
	Select    UndoSelect
	Steps     []UndoStep
	Elsewhere int // changes in other folders that Select.Near left out
	Unshown   int // steps whose changes are beyond what ShowUndo shows
	// UndoneBy is the undo that took back already what is selected, or the last of
	// several; "" for none.
	UndoneBy string
	ids      []string
	index    *undo.Index
}

// ref is which step of which change it takes back.
func (s *UndoStep) ref() undo.Ref { return undo.Ref{ID: s.entered.Txn.ID, N: s.entered.N} }

// Problems counts the steps that have one.
func (p *UndoPlan) Problems() (n int) {
	for i := range p.Steps {
		if p.Steps[i].Problem != "" {
			n++
		}
	}
	return n
}

// PlanUndo says what taking back by this person would do, as far as Undo looks
// before it does it: into folders, and what the policy says of names that something
// gets back. Nothing is changed. A change or a session that nobody knows is
// path.missing; a plan without steps has nothing to undo.
func (s *State) PlanUndo(ctx context.Context, sel UndoSelect, by Person) (*UndoPlan, error) {
	x, err := s.undo.Read()
	if err != nil {
		return nil, err
	}
	p := &UndoPlan{Select: sel, index: x}
	p.choose()
	if sel.ID == "" && sel.Session != "" && p.ids == nil {
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: "undo", Resource: "session " + sel.Session,
			Rule: "no change that is kept is of this session", Hint: "postern undo list",
		}
	}
	v := newView(x, s.undo)
	v.run = &undoRun{state: s, by: by, index: x, found: map[undo.Place]found{}}
	return p, p.fill(ctx, v)
}

// again plans the same changes anew: none that came since is among them. What Undo
// looks at itself is left to it.
func (s *State) again(ctx context.Context, p *UndoPlan) error {
	x, err := s.undo.Read()
	if err != nil {
		return err
	}
	p.index, p.Steps, p.UndoneBy = x, nil, ""
	return p.fill(ctx, newView(x, s.undo))
}

func (p *UndoPlan) fill(ctx context.Context, v *view) error {
	defer v.close()
	v.needs = map[string]bool{}
	for _, id := range p.ids {
		if t := p.index.Find(id); t != nil {
			for _, e := range t.Steps {
				v.need(e.Current())
			}
		}
	}
	for _, id := range slices.Backward(p.ids) {
		t := p.index.Find(id)
		if t == nil {
			return &fault.Error{
				Code: fault.PathMissing, Op: "undo", Resource: id,
				Rule: "no change has this id, or it is no longer kept", Hint: "postern undo list",
			}
		}
		for _, e := range slices.Backward(t.Steps) {
			p.add(v, t, e, func(e *undo.Entered) (problem, why string) { return v.look(ctx, e) })
		}
	}
	return ctx.Err()
}

// needs are the images of the steps.
func (p *UndoPlan) needs() map[string]bool {
	v := view{needs: map[string]bool{}}
	for i := range p.Steps {
		v.need(p.Steps[i].entered)
	}
	return v.needs
}

// choose notes the ids of what is selected, the oldest first.
func (p *UndoPlan) choose() {
	sel := p.Select
	switch {
	case sel.ID != "":
		p.ids = []string{sel.ID}
	case sel.Session != "":
		for _, t := range p.index.Txns {
			if t.Session == sel.Session && !t.Undoes {
				p.ids = append(p.ids, t.ID)
			}
		}
	case sel.Last:
		p.chooseLast(sel.Near)
	}
}

func (p *UndoPlan) chooseLast(near string) {
	for _, t := range slices.Backward(p.index.Txns) {
		switch {
		case t.Undoes, !slices.ContainsFunc(t.Steps, func(e *undo.Entered) bool { return e.State == undo.Committed && e.Current() != nil }):
		case near != "" && !slices.ContainsFunc(t.Steps, func(e *undo.Entered) bool { return e.Near(near) || e.To != nil && e.To.Near(near) }):
			p.Elsewhere++
		case p.ids == nil:
			p.ids = []string{t.ID}
		}
	}
}

// add plans one step, unless there is nothing of it to take back.
func (p *UndoPlan) add(v *view, t *undo.Txn, e *undo.Entered, check func(*undo.Entered) (problem, why string)) {
	step := UndoStep{Verb: verbOf(e), Name: e.String(), Root: e.Path, ID: t.Corr, entered: e}
	if e.To != nil {
		step.Name, step.To = e.To.String(), e.String()
		step.Root, step.ToRoot = e.To.Path, e.Path
	}
	switch {
	case e.State == undo.Aborted:
		return
	case e.Path == "":
		step.Problem, step.Why = UndoFailed, "the journal doesn't say where its root lies"
	case t.Lost != "":
		step.Problem, step.Why = UndoUncovered, t.Lost
	case e.State == undo.Attention:
		step.Problem, step.Why = UndoAttention, e.Why
	case e.State == undo.Prepared:
		step.Problem, step.Why = UndoRunning, "its process has not said yet how it ended, or its folder is away"
	default:
		cur := e.Current()
		if cur == nil {
			p.undone(e)
			return
		}
		step.entered = cur
		if step.Problem, step.Why = check(cur); step.Problem == "" {
			v.take(cur)
		}
	}
	p.Steps = append(p.Steps, step)
}

// undone notes what has taken a step back that is not in effect.
func (p *UndoPlan) undone(e *undo.Entered) {
	for e.UndoneBy != nil {
		e = e.UndoneBy
		p.UndoneBy = e.Txn.Corr
	}
}

// Nothing says why a plan has no steps.
func (p *UndoPlan) Nothing() string {
	switch {
	case p.UndoneBy == "":
		return "there is nothing to undo"
	case p.Select.ID != "":
		return "it was undone already, by the undo " + p.UndoneBy
	}
	return "every change of the session was undone already"
}

func verbOf(e *undo.Entered) string {
	switch e.Do {
	case undo.Replace:
		return "restore"
	case undo.Create, undo.Mkdir:
		return "remove"
	case undo.Remove:
		return "recreate"
	case undo.Rename:
		return "rename back"
	case undo.Append:
		return "shorten"
	case undo.Truncate:
		return "lengthen"
	}
	return string(e.Do)
}
