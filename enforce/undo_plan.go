// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"slices"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// UndoSelect says what is to be taken back: one of the three.
type UndoSelect struct {
	ID      string // of a change, or of an undo, whose undo is the redo
	Session string // every change of a session
	Last    bool   // the newest change that is not taken back yet
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
	To      string // of a rename back, the name that it gets
	Problem string // "" for none
	Why     string // of the problem
	Done    bool
	ID      string // of the change
	entered *undo.Entered
}

// UndoPlan is what an undo would do, in its order.
type UndoPlan struct {
	Select UndoSelect
	Steps  []UndoStep
	index  *undo.Index
}

// Problems counts the steps that have one.
func (p *UndoPlan) Problems() (n int) {
	for i := range p.Steps {
		if p.Steps[i].Problem != "" {
			n++
		}
	}
	return n
}

// PlanUndo says what taking back would do. Nothing is changed. A change that
// nobody knows is path.missing; a plan without steps has nothing to undo.
func (s *State) PlanUndo(sel UndoSelect) (*UndoPlan, error) {
	x, err := s.undo.Read()
	if err != nil {
		return nil, err
	}
	p := &UndoPlan{Select: sel, index: x}
	chosen, err := sel.choose(x)
	if err != nil {
		return nil, err
	}
	v := newView(x, s.undo)
	defer v.close()
	for _, t := range slices.Backward(chosen) {
		for _, e := range slices.Backward(t.Steps) {
			p.add(v, t, e)
		}
	}
	return p, nil
}

func (sel UndoSelect) choose(x *undo.Index) ([]*undo.Txn, error) {
	switch {
	case sel.ID != "":
		if t := x.Find(sel.ID); t != nil {
			return []*undo.Txn{t}, nil
		}
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: "undo", Resource: sel.ID,
			Rule: "no change has this id, or it is no longer kept", Hint: "postern undo list",
		}
	case sel.Session != "":
		var all []*undo.Txn
		for _, t := range x.Txns {
			if t.Session == sel.Session && !t.Undoes {
				all = append(all, t)
			}
		}
		return all, nil
	}
	for _, t := range slices.Backward(x.Txns) {
		if !t.Undoes && slices.ContainsFunc(t.Steps, func(e *undo.Entered) bool { return e.State == undo.Committed && e.Current() != nil }) {
			return []*undo.Txn{t}, nil
		}
	}
	return nil, nil
}

// add plans one step, unless there is nothing of it to take back.
func (p *UndoPlan) add(v *view, t *undo.Txn, e *undo.Entered) {
	step := UndoStep{Verb: verbOf(e), Name: e.String(), ID: t.ID, entered: e}
	if e.To != nil {
		step.Name, step.To = e.To.String(), e.String()
	}
	switch {
	case e.State == undo.Aborted:
		return
	case t.Lost != "":
		step.Problem, step.Why = UndoUncovered, t.Lost
	case e.State == undo.Attention:
		step.Problem, step.Why = UndoAttention, e.Why
	case e.State == undo.Prepared:
		step.Problem, step.Why = UndoRunning, "its process has not said yet how it ended, or its folder is away"
	default:
		cur := e.Current()
		if cur == nil {
			return
		}
		step.entered = cur
		step.Problem, step.Why = v.check(cur)
		v.took(cur)
	}
	p.Steps = append(p.Steps, step)
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

// view is the disk as it will be when the steps so far are taken back.
type view struct {
	index   *undo.Index
	log     *undo.Log
	roots   *aftermath
	states  map[undo.Place]pathguard.Facts
	unknown []undo.Place // beneath these nothing can be told before it is done
}

func newView(x *undo.Index, l *undo.Log) *view {
	return &view{index: x, log: l, roots: newAftermath(nil), states: map[undo.Place]pathguard.Facts{}}
}

func (v *view) close() { v.roots.close() }

// conflict is why what is there is not what the change left, "" where it is.
func (v *view) conflict(e *undo.Entered) string {
	at := e.Place
	if e.Do == undo.Rename {
		at = *e.To
	}
	if why := v.astray(e); why != "" {
		return why
	}
	now, known := v.at(at)
	none := now == (pathguard.Facts{})
	switch {
	case !known:
	case e.Do == undo.Remove && !none:
		return ruleTaken
	case e.Do != undo.Remove && none:
		return "it is gone"
	case !v.index.Same(now, e.Now):
		return ruleChanged
	}
	if e.Do == undo.Rename {
		if back, known := v.at(e.Place); known && back != (pathguard.Facts{}) {
			return ruleTaken
		}
	}
	return ""
}

func (v *view) check(e *undo.Entered) (problem, why string) {
	if why := v.conflict(e); why != "" {
		return UndoConflict, why
	}
	if e.Image != "" && e.Do != undo.Create && !v.log.Present(e) {
		if v.log.Image(e) == (pathguard.Facts{}) {
			return UndoGone, ruleImageGone
		}
		return UndoFailed, ruleImageChanged
	}
	if why := v.final(e); why != "" {
		return UndoFinal, why
	}
	return "", ""
}

// at is what a name leads to, false where that can't be told yet.
func (v *view) at(p undo.Place) (pathguard.Facts, bool) {
	if f, ok := v.states[p]; ok {
		return f, true
	}
	if v.untold(p) {
		return pathguard.Facts{}, false
	}
	n, ok := v.roots.top(p.Root, p.Path)
	if !ok {
		return pathguard.Facts{}, true
	}
	n, err := beneathTop(n, p.Rel)
	if err != nil {
		return pathguard.Facts{}, true
	}
	return facts(n), true
}

// took notes what a name leads to once the step is taken back.
func (v *view) took(e *undo.Entered) {
	switch e.Do {
	case undo.Rename:
		v.states[e.Place] = e.Was
		v.states[*e.To] = pathguard.Facts{}
		v.unknown = append(v.unknown, e.Place)
	case undo.Remove:
		v.states[e.Place] = e.Was
		v.unknown = append(v.unknown, e.Place)
	default:
		v.states[e.Place] = e.Was
	}
}
