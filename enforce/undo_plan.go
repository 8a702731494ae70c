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
	ids       []string
	index     *undo.Index
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

// PlanUndo says what taking back would do. Nothing is changed. A change or a
// session that nobody knows is path.missing; a plan without steps has nothing to
// undo.
func (s *State) PlanUndo(sel UndoSelect) (*UndoPlan, error) {
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
	return p, s.fill(p)
}

// again plans the same changes anew: none that came since is among them.
func (s *State) again(p *UndoPlan) error {
	x, err := s.undo.Read()
	if err != nil {
		return err
	}
	p.index, p.Steps = x, nil
	return s.fill(p)
}

func (s *State) fill(p *UndoPlan) error {
	v := newView(p.index, s.undo)
	defer v.close()
	for _, id := range slices.Backward(p.ids) {
		t := p.index.Find(id)
		if t == nil {
			return &fault.Error{
				Code: fault.PathMissing, Op: "undo", Resource: id,
				Rule: "no change has this id, or it is no longer kept", Hint: "postern undo list",
			}
		}
		for _, e := range slices.Backward(t.Steps) {
			p.add(v, t, e)
		}
	}
	return nil
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
func (p *UndoPlan) add(v *view, t *undo.Txn, e *undo.Entered) {
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

// conflict is why what is there is not what the change left, "" where it is. What
// can't be looked at is an error.
func (v *view) conflict(e *undo.Entered) (why string, err error) {
	at := e.Place
	if e.Do == undo.Rename {
		at = *e.To
	}
	if why := v.astray(e); why != "" {
		return why, nil
	}
	now, known, err := v.at(e, at)
	if err != nil {
		return "", err
	}
	none := now == (pathguard.Facts{})
	switch {
	case !known:
	case e.Do == undo.Remove && !none:
		return ruleTaken, nil
	case e.Do != undo.Remove && none:
		return "it is gone", nil
	case !v.index.Left(e, now):
		return ruleChanged, nil
	}
	if e.Do == undo.Rename {
		back, known, err := v.at(e, e.Place)
		if err != nil {
			return "", err
		}
		if known && back != (pathguard.Facts{}) {
			return ruleTaken, nil
		}
	}
	return "", nil
}

func (v *view) check(e *undo.Entered) (problem, why string) {
	switch why, err := v.conflict(e); {
	case fault.CodeOf(err) == fault.PathSymlink, fault.CodeOf(err) == fault.PathEscape:
		return UndoConflict, ruleLink
	case err != nil:
		return UndoFailed, undo.RuleUnread + ": " + fault.As(err).Because()
	case why != "":
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

// at is what a name of the step leads to, unknown where that can't be told yet.
func (v *view) at(e *undo.Entered, p undo.Place) (now pathguard.Facts, known bool, err error) {
	if f, ok := v.states[p]; ok {
		return f, true, nil
	}
	if v.untold(p) {
		return now, false, nil
	}
	n, ok := v.roots.top(p.Root, p.Path, e.Mounts)
	if !ok {
		return now, false, &fault.Error{Code: fault.IOFailed, Resource: p.String(), Rule: "its root can't be opened"}
	}
	if n, err = beneathTop(n, p.Rel); err == nil {
		now, err = undo.FactsOf(n)
	}
	return now, err == nil, err
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
