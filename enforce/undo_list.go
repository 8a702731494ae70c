// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"slices"
	"time"

	"github.com/postern-gate/postern/internal/state/undo"
)

// UndoEntry is one change that is kept.
type UndoEntry struct {
	ID      string
	Time    time.Time
	Agent   string
	Session string
	Source  string
	Op      string
	Undoes  bool // it is itself an undo
	Names   []string
	Roots   []string // the paths of their roots, "" for one that the journal doesn't tell
	State   string   // UndoReady, UndoUndone, or a problem
	Why     string   // of the problem
}

// The states of an entry beside the problems of its first step that has one.
const (
	UndoReady  = "undoable"
	UndoUndone = "undone"
)

// UndoList lists what is kept, the newest first, of one session or of all: at
// most limit of them, all for a negative one. more is how many are left out,
// damaged how many lines of the journals can't be read. Each is looked at as if it
// alone were taken back, and less closely than by PlanUndo.
func (s *State) UndoList(session string, limit int) (list []UndoEntry, more, damaged int, err error) {
	x, err := s.undo.Read()
	if err != nil {
		return nil, 0, 0, err
	}
	v := newView(x, s.undo) // one, so that each root is opened once
	defer v.close()
	for _, t := range slices.Backward(x.Txns) {
		switch {
		case session != "" && t.Session != session, !effective(t):
		case limit >= 0 && len(list) == limit:
			more++
		default:
			list = append(list, undoEntry(v, t))
		}
	}
	return list, more, x.Damaged, nil
}

// UndoOdd names what lies among the journals in undo/ and is none: it is not
// read.
func (s *State) UndoOdd() ([]string, error) { return s.undo.Odd() }

// effective is false for a change that did not happen.
func effective(t *undo.Txn) bool {
	return slices.ContainsFunc(t.Steps, func(e *undo.Entered) bool { return e.State != undo.Aborted })
}

func (e *UndoEntry) addRoot(path string) {
	if !slices.Contains(e.Roots, path) {
		e.Roots = append(e.Roots, path)
	}
}

func undoEntry(v *view, t *undo.Txn) UndoEntry {
	e := UndoEntry{
		ID: t.Corr, Time: t.Time, Agent: t.Agent, Session: t.Session, Source: t.Source, Op: t.Op, Undoes: t.Undoes, State: UndoUndone,
	}
	for _, step := range t.Steps {
		if step.State != undo.Aborted {
			e.Names = append(e.Names, step.String())
			e.addRoot(step.Path)
			if step.To != nil {
				e.addRoot(step.To.Path)
			}
		}
	}
	p := UndoPlan{index: v.index}
	v.done, v.moved, v.gone = nil, nil, map[string]bool{}
	for _, step := range slices.Backward(t.Steps) {
		p.add(v, t, step, v.check)
	}
	for i := range p.Steps {
		if e.State = UndoReady; p.Steps[i].Problem != "" {
			e.State, e.Why = p.Steps[i].Problem, p.Steps[i].Why
			break
		}
	}
	return e
}
