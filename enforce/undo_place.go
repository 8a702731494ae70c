// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"path"
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

// final is why what the step would take away can't be kept. A folder that a step so far
// brings back is judged when it is done. count counts what goes with a folder, which is
// one that is empty where it is nil.
func (v *view) final(e *undo.Entered, count func(*undo.Planned, *pathguard.Target) error) (problem, why string) {
	do, takes := takesAway(e)
	s := v.seat(e.Place)
	if !takes || s.gone {
		return "", ""
	}
	t, err := v.pin(e, s)
	if err != nil {
		return "", ""
	}
	defer t.Close()
	p := planned(do, t)
	p.Entries, p.Tail = 1, e.Now.Size-e.Was.Size
	if s.left != nil || s.kept != nil {
		then, err := v.at(e, e.Place)
		if err != nil || s.kept != nil && then.Kind() == pathguard.KindDir {
			return "", ""
		}
		p.Then = &then
	}
	if do == undo.Remove && count != nil && s.kept == nil && count(p, t) != nil {
		return "", ""
	}
	if why = v.log.Cover(&undo.Change{Undoes: true, Steps: []*undo.Planned{p}, Needs: v.needs, Gone: v.gone}); why != "" {
		problem = UndoFinal
	}
	return problem, why
}

// pin is what has the seat now, or the nearest folder of what a step so far brings back.
func (v *view) pin(e *undo.Entered, s seat) (*pathguard.Target, error) {
	at := s.at
	if s.kept != nil {
		at = e.Place
	}
	for {
		n, err := v.name(e, at)
		if err != nil {
			return nil, err
		}
		t, err := n.PinEntry()
		if err == nil || s.kept == nil || at.Rel == "." {
			return t, err
		}
		at.Rel = path.Dir(at.Rel)
	}
}
