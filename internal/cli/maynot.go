// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// mayNot refuses a yes that can't be given, before anybody is asked for it. Its next
// step is the same command with a yes that can.
func (o *approveOptions) mayNot(q *grant.Question, yes grant.Answer) error {
	rule := q.MayNot(yes)
	if rule == "" {
		return nil
	}
	return &fault.Error{Code: fault.RequestInvalid, Resource: q.ID, Rule: rule, Hint: o.command(q.ID, nearest(q, yes))}
}

// nearest is the yes to the question that may be given and is most like this one:
// on the pattern with its root, on that of the folder that is asked about, for the
// session, or once.
func nearest(q *grant.Question, yes grant.Answer) grant.Answer {
	var all []grant.Answer
	if yes.Pattern != "" {
		around := grant.AroundOf(&q.For)
		root, _, _ := strings.Cut(around, "://")
		patterns := []string{yes.Pattern, root + "://" + yes.Pattern}
		if !grant.Anywhere(around) { // nobody who named less is led to a whole root
			patterns = append(patterns, around)
		}
		for _, kind := range []grant.Kind{yes.Kind, grant.Pattern} {
			for _, p := range patterns {
				if spell.Name(p) == p { // what is typed is what is seen
					all = append(all, grant.Answer{Kind: kind, Pattern: p})
				}
			}
		}
	}
	if yes.Kind == grant.Until {
		all = append(all, grant.Answer{Kind: grant.Until, Life: grant.MaxUntil}, grant.Answer{Kind: grant.Session})
	}
	for _, a := range all {
		if q.MayNot(a) == "" {
			return a
		}
	}
	return grant.Answer{Kind: grant.Once}
}

// command is how that yes is given.
func (o *approveOptions) command(id string, yes grant.Answer) string {
	words := []string{"postern approve"}
	if o.yes {
		words = append(words, "--yes")
	}
	switch yes.Kind {
	case grant.Session:
		words = append(words, "--session")
	case grant.Pattern:
		words = append(words, "--pattern", grant.Word(yes.Pattern))
	case grant.Always:
		words = append(words, "--pattern", grant.Word(yes.Pattern), "--always")
	case grant.Until:
		until := o.until
		if yes.Life == grant.MaxUntil {
			until = "7d"
		}
		words = append(words, "--until", grant.Word(until))
	default:
	}
	return strings.Join(append(words, id), " ")
}
