// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

func beneathTop(n pathguard.Name, rel string) (pathguard.Name, error) {
	if rel == "." {
		return n, nil
	}
	for entry := range strings.SplitSeq(rel, "/") {
		var err error
		if n, err = n.Join(entry); err != nil {
			return n, err
		}
	}
	return n, nil
}

// relTo is the path of a name beneath another one.
func relTo(top, n pathguard.Name) string { return strings.TrimPrefix(n.Rel(), top.Rel()+"/") }

// takesAway is what is done to what the step would take away, false for nothing.
func takesAway(e *undo.Entered) (undo.Do, bool) {
	switch {
	case e.Do == undo.Create || e.Do == undo.Mkdir:
		return undo.Remove, true
	case e.Do == undo.Replace && e.How == undo.Copied:
		return undo.Replace, true
	case e.Do == undo.Append:
		return undo.Truncate, true
	}
	return "", false
}

// final is why what the step would take away can't be kept. What is not there yet is
// judged when it is done. count counts what goes with a folder, which is one that is
// empty where it is nil.
func (v *view) final(e *undo.Entered, count func(*undo.Planned, *pathguard.Target) error) (problem, why string) {
	do, takes := takesAway(e)
	if !takes {
		return "", ""
	}
	s := v.seat(e.Place)
	n, err := v.name(e, s.at)
	other := s.left != nil && do != undo.Remove // of what is there only the name matters then
	if s.gone || s.kept != nil || other || err != nil {
		return "", ""
	}
	t, err := n.PinEntry()
	if err != nil {
		return "", ""
	}
	defer t.Close()
	p := planned(do, t)
	p.Entries, p.Tail = 1, e.Now.Size-e.Was.Size
	if do == undo.Remove && count != nil && count(p, t) != nil {
		return "", ""
	}
	if why = v.log.Cover(&undo.Change{Undoes: true, Steps: []*undo.Planned{p}}); why != "" {
		problem = UndoFinal
	}
	return problem, why
}
