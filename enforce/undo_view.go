// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"path"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// view is the disk as it will be when the steps so far are taken back.
type view struct {
	index *undo.Index
	log   *undo.Log
	roots *aftermath
	done  []*undo.Entered // those steps
	moved []undo.Place    // where what they bring or rename lies then
	needs map[string]bool // images of steps that are not among them
	gone  map[string]bool // images that they give back
	run   *undoRun        // by whom, nil where nobody asks the policy or looks into folders
}

func newView(x *undo.Index, l *undo.Log) *view {
	return &view{index: x, log: l, roots: newAftermath(nil), gone: map[string]bool{}}
}

func (v *view) close() { v.roots.close() }

// need keeps the image of a step, which may be none, for it.
func (v *view) need(e *undo.Entered) {
	if e != nil && e.Image != "" && e.Do != undo.Create {
		v.needs[e.Image] = true
	}
}

// take takes a step back, in the view.
func (v *view) take(e *undo.Entered) {
	v.done = append(v.done, e)
	if !holdsOn(e) {
		delete(v.needs, e.Image)
	}
	if e.Do == undo.Remove && e.Image != "" && e.How != undo.Copied {
		v.gone[e.Image] = true
	}
	if e.Do == undo.Rename {
		for i, q := range v.moved {
			if rest, ok := within(q, *e.To); ok {
				v.moved[i] = beneathPlace(e.Place, rest)
			}
		}
	}
	if e.Do == undo.Remove || e.Do == undo.Rename {
		v.moved = append(v.moved, e.Place)
	}
}

// holdsOn reports whether an image has, once its step is taken back, what that took away.
func holdsOn(e *undo.Entered) bool { return e.Do == undo.Replace && e.How != undo.Copied }

// seat is where what a name will have lies now.
type seat struct {
	at   undo.Place       // its name, or its path beneath the image
	kept *undo.Entered    // whose image it is in
	left *pathguard.Facts // what a step so far leaves there, where one does
	gone bool
}

// seat goes back over the steps so far.
func (v *view) seat(p undo.Place) (s seat) {
	s.at = p
	for _, e := range slices.Backward(v.done) {
		rest, ok := within(s.at, e.Place)
		if ok && rest == "." && s.left == nil {
			s.left = &e.Was
		}
		switch {
		case ok && (e.Do == undo.Create || e.Do == undo.Mkdir):
			s.gone = true
			return s
		case ok && e.Do == undo.Remove:
			s.kept, s.at.Rel = e, rest
			return s
		case ok && e.Do == undo.Rename:
			s.at = beneathPlace(*e.To, rest)
		case e.Do == undo.Rename:
			if _, ok := within(s.at, *e.To); ok {
				s.gone = true
				return s
			}
		}
	}
	return s
}

// within is the path beneath top, which is "." for itself.
func within(p, top undo.Place) (rest string, ok bool) {
	if p.Root != top.Root || p.Path != top.Path {
		return "", false
	}
	if p.Rel == top.Rel {
		return ".", true
	}
	return strings.CutPrefix(p.Rel, top.Rel+"/")
}

func beneathPlace(p undo.Place, rest string) undo.Place {
	p.Rel = path.Join(p.Rel, rest)
	return p
}

// untold reports a place of which nothing can be shown before the steps so far are
// done.
func (v *view) untold(p undo.Place) bool {
	s := v.seat(p)
	return s.gone || s.kept != nil || s.at != p
}

// name is that of a place, as the step may reach it.
func (v *view) name(e *undo.Entered, p undo.Place) (pathguard.Name, error) {
	top, ok := v.roots.top(p.Root, p.Path, e.Mounts)
	if !ok {
		return top, &fault.Error{Code: fault.IOFailed, Resource: p.String(), Rule: "its root can't be opened"}
	}
	return beneathTop(top, p.Rel)
}

// at is what a place will have.
func (v *view) at(e *undo.Entered, p undo.Place) (now pathguard.Facts, err error) {
	switch s := v.seat(p); {
	case s.left != nil:
		return *s.left, nil
	case s.gone:
		return now, nil
	case s.kept != nil:
		return v.log.In(s.kept, s.at.Rel), nil
	default:
		n, err := v.name(e, s.at)
		if err != nil {
			return now, err
		}
		return undo.FactsOf(n)
	}
}

// up is what will be the folder of a place.
func (v *view) up(e *undo.Entered, p undo.Place) (pathguard.Facts, error) {
	p.Rel = path.Dir(p.Rel)
	return v.at(e, p)
}

// check is why the step can't be taken back, as far as names and images tell.
func (v *view) check(e *undo.Entered) (problem, why string) {
	if problem, why = v.stands(e); problem == "" {
		problem, why = v.image(e)
	}
	if problem == "" {
		problem, why = v.final(e, nil)
	}
	return problem, why
}

// stands is why what will be there is not what the change left.
func (v *view) stands(e *undo.Entered) (problem, why string) {
	why, err := v.conflict(e)
	switch {
	case err == nil && why != "":
		problem = UndoConflict
	case err != nil:
		if problem, why = inTheWay(e, err, ""); problem == UndoFailed {
			why = undo.RuleUnread + ": " + why
		}
	}
	return problem, why
}

// image is why what was there before can't come back.
func (v *view) image(e *undo.Entered) (problem, why string) {
	switch {
	case e.Image == "" || e.Do == undo.Create || v.log.Present(e):
		return "", ""
	case v.log.Image(e) == (pathguard.Facts{}):
		return UndoGone, ruleImageGone
	}
	return UndoFailed, ruleImageChanged
}

// conflict is why what will be there is not what the change left, "" where it is. What
// can't be looked at is an error.
func (v *view) conflict(e *undo.Entered) (why string, err error) {
	if why := v.otherRoot(e); why != "" {
		return why, nil
	}
	at := e.Place
	if e.To != nil {
		at = *e.To
	}
	var up, now, folder, back pathguard.Facts
	for _, look := range []func() error{
		func() (err error) { up, err = v.up(e, at); return err },
		func() (err error) { now, err = v.at(e, at); return err },
		func() (err error) { folder, err = v.up(e, e.Place); return err },
	} {
		if err := look(); err != nil {
			return "", err
		}
	}
	switch {
	case up.Kind() == pathguard.KindLink, folder.Kind() == pathguard.KindLink:
		return ruleLink, nil
	case e.Do != undo.Remove && up.Kind() != pathguard.KindDir:
		return ruleGone, nil
	case (e.Do == undo.Remove || e.Do == undo.Rename) && folder.Kind() != pathguard.KindDir:
		return ruleNoFolder, nil
	case v.otherFolder(e):
		return undo.RuleFolder, nil
	}
	if e.Do == undo.Rename {
		if back, err = v.at(e, e.Place); err != nil {
			return "", err
		}
	}
	return asLeft(v.index, e, now, back), nil
}

// otherRoot says why a root isn't the one that the step was made beneath.
func (v *view) otherRoot(e *undo.Entered) string {
	for _, p := range e.Places() {
		if top, ok := v.roots.top(p.Root, p.Path, e.Mounts); ok {
			if why := e.Astray(p, top); why != "" {
				return why
			}
		}
	}
	return ""
}

// otherFolder reports that the folder of the name isn't the one that the step was made
// in. One that an earlier step brings back is.
func (v *view) otherFolder(e *undo.Entered) bool {
	up := e.Place
	up.Rel = path.Dir(up.Rel)
	s := v.seat(up)
	if e.Up == (undo.Folder{}) {
		return false
	}
	var now undo.Folder
	if s.left != nil || s.kept != nil {
		f, _ := v.at(e, up)
		now = undo.Folder{Dev: f.Dev, Ino: f.Ino, Born: f.Born}
	} else if n, err := v.name(e, s.at); err == nil {
		now = undo.FolderOf(n)
	}
	return now != (undo.Folder{}) && !v.index.SameFolder(now, e.Up)
}
