// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"cmp"
	"io"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/grant"
	"github.com/postern-gate/postern/internal/state/undo"
)

// The bounds of what is shown of one plan: steps, bytes of their diffs, and
// bytes that are read for those. One file has the bounds of a question.
const (
	maxShownSteps = 50
	maxShownBytes = 8 * grant.MaxQuestion
	maxShownRead  = 4 * MaxEdit
)

// Why a step's change isn't shown.
const (
	hugeChange   = "what changes: it is too large to be shown"
	noneBefore   = "what changes: what is there can't be read"
	noneAfter    = "what changes: what was kept can't be read"
	onlyAfterRun = "what changes: it can't be told before the steps above are done"
	beyondPlan   = "what changes: more than is shown of one plan"
)

// ShowUndo fills in what the steps of a plan change in files, as the card of a
// question would show it: a diff from what is there when the steps above are
// done. It is for the first steps, within bounds; the plan counts the rest. A
// step that is left out, and one that changes no content, has none. Nothing is
// changed, no link is followed, and nothing but regular files is read.
//
// diff draws a change; without it all that goes and all that comes is shown.
func (s *State) ShowUndo(p *UndoPlan, by Person, diff func(name string, before, after []byte) (text string, complete bool)) {
	r := undoRun{state: s, by: by, index: p.index, gates: map[opening]*Gate{}}
	defer r.close()
	v := newView(p.index, s.undo)
	defer v.close()
	w := showing{view: v, run: &r, diff: diff, held: map[undo.Place]content{}, steps: maxShownSteps, bytes: maxShownBytes, read: maxShownRead}
	p.Unshown = 0
	for i := range p.Steps {
		w.show(&p.Steps[i])
		if p.Steps[i].Unshown == beyondPlan {
			p.Steps[i].Unshown = ""
			p.Unshown++
		}
	}
}

// showing is a plan on its way to be shown.
type showing struct {
	*view

	run  *undoRun
	diff func(name string, before, after []byte) (text string, complete bool)
	held map[undo.Place]content // of names that steps above have changed
	// What is left of the bounds.
	steps int
	bytes int
	read  int64
}

// content reads what a name holds, or says why not. It is read anew each time, so
// that no more than one change is in memory.
type content func() (b []byte, unshown string)

func none() ([]byte, string) { return nil, "" }

func lost() ([]byte, string) { return nil, onlyAfterRun }

func (w *showing) show(s *UndoStep) {
	e := s.entered
	if s.Problem != "" { // it is left out, so the next steps of its names find something else
		w.held[e.Place] = lost
		if e.To != nil {
			w.held[*e.To] = lost
		}
		return
	}
	before := w.before(e)
	after := w.after(e, before)
	w.held[e.Place] = after
	if e.To != nil {
		w.held[*e.To] = none
	}
	w.take(e)
	if !ofContent(e) {
		return
	}
	if w.steps == 0 || w.bytes <= 0 {
		s.Unshown = beyondPlan
		return
	}
	w.steps--
	s.Change, s.Unshown = w.draw(e, before, after)
}

// ofContent reports whether to take a step back changes what a file holds.
func ofContent(e *undo.Entered) bool {
	was, now := e.Was.Kind() == pathguard.KindFile, e.Now.Kind() == pathguard.KindFile
	switch e.Do {
	case undo.Replace, undo.Append, undo.Truncate:
		return was && now
	case undo.Create:
		return now
	case undo.Remove:
		return was
	case undo.Mkdir, undo.Rename:
	}
	return false
}

// before is what the step would find.
func (w *showing) before(e *undo.Entered) content {
	at := e.Place
	if e.Do == undo.Rename {
		at = *e.To
	}
	switch held := w.held[at]; {
	case held != nil:
		return held
	case e.Do == undo.Remove:
		return none
	case w.untold(at):
		return lost
	}
	return func() ([]byte, string) { return w.there(e, at) }
}

// after is what the step would leave.
func (w *showing) after(e *undo.Entered, before content) content {
	switch e.Do {
	case undo.Replace, undo.Remove:
		return func() ([]byte, string) { return w.kept(e) }
	case undo.Append:
		return func() ([]byte, string) {
			b, why := before()
			return b[:min(int64(len(b)), e.Was.Size)], why
		}
	case undo.Truncate:
		return func() ([]byte, string) {
			b, why := before()
			tail, whyNot := w.kept(e)
			return slices.Concat(b, tail), cmp.Or(why, whyNot)
		}
	case undo.Rename:
		return before
	case undo.Create, undo.Mkdir:
	}
	return none
}

// draw draws the change, unless its name tells that nobody is shown it.
func (w *showing) draw(e *undo.Entered, before, after content) (text, unshown string) {
	n, g, ok := w.name(e, e.Place)
	if !ok {
		return "", noneBefore
	}
	if listed(g, n) {
		return "", onlyPrivate
	}
	was, why := before()
	if why != "" {
		return "", why
	}
	now, why := after()
	switch {
	case why != "":
		return "", why
	case hasContentRule(n.Resource()) && (holdsSecret(was) || holdsSecret(now)):
		return "", onlyPrivate
	case len(was)+len(now) == 0 && (e.Do == undo.Create || e.Do == undo.Remove):
		return "it is empty", ""
	}
	text, unshown = drawChange(w.diff, e.String(), was, now)
	text, rest := cutChange(text, grant.MaxQuestion)
	if w.bytes -= len(text); w.bytes < 0 {
		return "", beyondPlan
	}
	return text, cmp.Or(rest, unshown)
}

// listed reports whether a name belongs to a built-in list.
func listed(g *Gate, n pathguard.Name) bool {
	return slices.ContainsFunc([]core.Action{core.FSRead, core.FSWrite}, func(a core.Action) bool { return g.evaluate(a, n.Resource()).Class != "" })
}

// name is that of a step's place, opened as the undo itself would.
func (w *showing) name(e *undo.Entered, p undo.Place) (n pathguard.Name, g *Gate, ok bool) {
	g, err := w.run.gate(e)
	if err != nil {
		return n, nil, false
	}
	top, ok := g.top(p.Root)
	if !ok {
		return n, nil, false
	}
	n, err = beneathTop(top, p.Rel)
	return n, g, err == nil
}

// there reads a file that is what the step left.
func (w *showing) there(e *undo.Entered, at undo.Place) ([]byte, string) {
	n, g, ok := w.name(e, at)
	if !ok {
		return nil, noneBefore
	}
	if listed(g, n) { // it was moved there, and would be moved back
		return nil, onlyPrivate
	}
	f, err := n.Open()
	if err != nil {
		return nil, noneBefore
	}
	defer f.Close()
	if !w.index.Left(e, f.Fingerprint().Facts()) {
		return nil, noneBefore
	}
	if why := w.takes(f.Size()); why != "" {
		return nil, why
	}
	b, err := readAtMost(f, n, MaxEdit)
	if err != nil {
		return nil, noneBefore
	}
	if now, err := f.Stat(); err != nil || now.Fingerprint != f.Fingerprint() {
		return nil, noneBefore // it changes just now
	}
	return b, ""
}

// kept reads an image.
func (w *showing) kept(e *undo.Entered) ([]byte, string) {
	if e.Image == "" || !w.log.Present(e) {
		return nil, noneAfter
	}
	f, err := w.log.OpenImage(e)
	if err != nil {
		return nil, noneAfter
	}
	defer f.Close()
	if why := w.takes(e.Kept.Size); why != "" {
		return nil, why
	}
	b, err := io.ReadAll(io.LimitReader(f, e.Kept.Size))
	if err != nil {
		return nil, noneAfter
	}
	return b, ""
}

// takes says why so many bytes are not read.
func (w *showing) takes(n int64) string {
	switch {
	case n > MaxEdit:
		return hugeChange
	case n > w.read:
		return beyondPlan
	}
	w.read -= n
	return ""
}
