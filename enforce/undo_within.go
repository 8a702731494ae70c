// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/undo"
)

// look is check with all that Undo looks at itself before it does anything.
func (v *view) look(ctx context.Context, e *undo.Entered) (problem, why string) {
	if v.run == nil {
		return v.check(e)
	}
	if problem, why = v.stands(e); problem != "" {
		return problem, why
	}
	if err := v.untouched(ctx, e); err != nil {
		return inTheWay(e, err, "")
	}
	if problem, why = v.image(e); problem != "" {
		return problem, why
	}
	if err := v.judge(ctx, e); err != nil {
		return inTheWay(e, err, "")
	}
	return v.final(e, func(p *undo.Planned, t *pathguard.Target) error { return v.count(ctx, e, p, t) })
}

// count counts what will go with a folder that the step takes away.
func (v *view) count(ctx context.Context, e *undo.Entered, p *undo.Planned, t *pathguard.Target) error {
	at := placeOf(t.Name())
	p.Entries += int64(len(v.brought(e, e.Place)))
	return t.Descendants(ctx, defaultMaxEntries, func(n pathguard.Name, info pathguard.Info) error {
		if rest, ok := within(placeOf(n), at); ok && v.stays(seat{at: at}, e.Place, rest) {
			counted(p, info)
		}
		return nil
	})
}

// stays reports whether what lies beneath a place, of which s is the seat, will still
// be there.
func (v *view) stays(s seat, p undo.Place, rest string) bool {
	here := v.seat(beneathPlace(p, rest))
	return !here.gone && here.kept == s.kept && here.at == beneathPlace(s.at, rest)
}

func (v *view) untouched(ctx context.Context, e *undo.Entered) error {
	now, err := v.at(e, e.Place)
	if err != nil {
		return err
	}
	return untouched(e, now, v.beneath(ctx, e, e.Place), func(n pathguard.Name, _ pathguard.Facts) bool { return v.leaves(placeOf(n)) })
}

// leaves reports a place that a step so far changes, or something beneath it.
func (v *view) leaves(p undo.Place) bool {
	for _, e := range slices.Backward(v.done) {
		for _, q := range e.Places() {
			if _, ok := within(q, p); ok {
				return true
			}
		}
		if rest, ok := within(p, e.Place); ok && e.Do == undo.Rename {
			p = beneathPlace(*e.To, rest) // where it was before
		}
	}
	return false
}

// judge judges the names that the step gives back.
func (v *view) judge(ctx context.Context, e *undo.Entered) error {
	if e.Do != undo.Rename && e.Do != undo.Remove {
		return nil
	}
	to, err := v.name(e, e.Place)
	if err != nil {
		return err
	}
	of := v.run.policyIn(openingOf(e))
	if e.Do == undo.Remove {
		return of.judgeKept(ctx, v.log, e, to)
	}
	from, err := v.name(e, *e.To)
	if err != nil {
		return err
	}
	top, err := v.at(e, *e.To)
	if err != nil {
		return err
	}
	return of.judgeMoved(v.index, e, from, to, top, v.beneath(ctx, e, *e.To))
}

// beneath visits what will lie beneath a place: what lies there now and stays, and
// what the steps so far bring.
func (v *view) beneath(ctx context.Context, e *undo.Entered, p undo.Place) folder {
	return func(visit func(pathguard.Name, pathguard.Facts) error) error {
		if err := v.part(ctx, e, p, visit); err != nil {
			return err
		}
		for _, q := range v.brought(e, p) {
			n, err := v.name(e, q)
			if err != nil {
				return err
			}
			now, err := v.at(e, q)
			if err == nil {
				err = visit(n, now)
			}
			if err == nil {
				err = v.part(ctx, e, q, visit)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// brought are the places beneath one that the steps so far bring something to, folders
// first.
func (v *view) brought(by *undo.Entered, p undo.Place) (all []undo.Place) {
	if top, err := v.at(by, p); err == nil && top.Kind() != pathguard.KindDir {
		return nil
	}
	for _, q := range v.moved {
		if rest, ok := within(q, p); ok && rest != "." && v.holds(by, p, rest) && !slices.Contains(all, q) {
			all = append(all, q)
		}
	}
	slices.SortFunc(all, func(a, b undo.Place) int { return strings.Compare(a.Rel, b.Rel) })
	return all
}

// holds reports whether a place will have something beneath it by this path, in folders
// all the way.
func (v *view) holds(e *undo.Entered, p undo.Place, rest string) bool {
	for i, c := range rest {
		if c != '/' {
			continue
		}
		if up, err := v.at(e, beneathPlace(p, rest[:i])); err == nil && up.Kind() != pathguard.KindDir {
			return false
		}
	}
	now, err := v.at(e, beneathPlace(p, rest))
	return err != nil || now != pathguard.Facts{}
}

// part visits what comes along with what a place will have.
func (v *view) part(ctx context.Context, e *undo.Entered, p undo.Place, visit func(pathguard.Name, pathguard.Facts) error) error {
	n, err := v.name(e, p)
	if err != nil {
		return err
	}
	s := v.seat(p)
	each := func(rest string, f pathguard.Facts) error {
		if !v.stays(s, p, rest) {
			return nil
		}
		if left := v.seat(beneathPlace(p, rest)).left; left != nil {
			f = *left
		}
		m, err := beneathTop(n, rest)
		if err != nil {
			return err
		}
		return visit(m, f)
	}
	if s.gone {
		return nil
	}
	if s.kept != nil {
		return v.partOfImage(s, each)
	}
	now, err := v.name(e, s.at)
	if err != nil {
		return err
	}
	t, err := now.PinEntry()
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Descendants(ctx, defaultMaxEntries, func(m pathguard.Name, info pathguard.Info) error {
		return each(relTo(now, m), info.Fingerprint.Facts())
	})
}

func (v *view) partOfImage(s seat, each func(rest string, f pathguard.Facts) error) error {
	if s.kept.Image == "" {
		return nil
	}
	return v.log.Within(s.kept, func(rel string, f pathguard.Facts) error {
		if s.at.Rel == "." && rel != "." {
			return each(rel, f)
		}
		if rest, ok := strings.CutPrefix(rel, s.at.Rel+"/"); ok {
			return each(rest, f)
		}
		return nil
	})
}
