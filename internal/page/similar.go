// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/grant"
)

// choice is one of several questions on one card. What all of them have in common
// stands once, above; here is the rest.
type choice struct {
	ID, Digest   string
	Targets      []part
	Parts        []part
	Change       string
	Added, Taken int // lines of the change
	Undo         string
	Tick         stamp
}

// alike is the same for questions that can be looked at together, "" for one that
// is looked at by itself, as what changed since it was asked.
func alike(q *asked) string {
	if len(q.changed) > 0 {
		return ""
	}
	return q.Alike()
}

// grouped puts questions that are alike together, each group where its first one
// stands.
func grouped(all []asked) (groups [][]asked) {
	at := map[string]int{}
	for _, q := range all {
		key := alike(&q)
		if i, ok := at[key]; ok {
			groups[i] = append(groups[i], q)
			continue
		}
		if key != "" {
			at[key] = len(groups)
		}
		groups = append(groups, []asked{q})
	}
	return groups
}

// inCommon are the names of parts that stand above the rows where they are the
// same. Others stay with their row even then, so that what comes later changes
// nothing of what is read.
var inCommon = []string{"agent", "session", "folder", "tool", "class", "because", "it says"}

func (p *Page) cardOfMany(s *session, all []asked) card {
	c := card{ID: "s-" + alike(&all[0])[:16]}
	for _, each := range partsOf(all[0].drawn.Parts) {
		shared := slices.Contains(inCommon, each.Name) && (each.Kind == "field" || each.Kind == "says")
		for i := range all {
			shared = shared && slices.Contains(partsOf(all[i].drawn.Parts), each)
		}
		if shared {
			c.Parts = append(c.Parts, each)
		}
	}
	now := p.o.Now()
	var about strings.Builder
	for i := range all {
		r := choiceOf(&all[i], c.Parts)
		r.Tick = s.stamp("tick", r.ID, r.Digest, now)
		c.Rows = append(c.Rows, r)
		about.WriteString(r.ID + " " + r.Digest + "\n")
	}
	sum := sha256.Sum256([]byte(about.String()))
	c.All = s.stamp("all", about.String(), hex.EncodeToString(sum[:]), now)
	text, _ := json.Marshal(c.Parts) // strings never fail
	sum = sha256.Sum256(text)
	c.Digest = hex.EncodeToString(sum[:])
	c.Stamp = s.stamp("answer", all[0].For.Agent, "", now)
	return c
}

// counted is how many lines a change adds, and takes away.
func counted(change string) (added, taken int) {
	for _, l := range diffLines(change) {
		switch l.Kind {
		case "added":
			added++
		case "removed":
			taken++
		}
	}
	return added, taken
}

func choiceOf(q *asked, above []part) choice {
	r := choice{ID: q.ID, Digest: q.drawn.Digest}
	for _, each := range partsOf(q.drawn.Parts) {
		switch {
		case each.Kind == "target":
			r.Targets = append(r.Targets, each)
		case each.Kind == "change":
			r.Change = each.Text
			r.Added, r.Taken = counted(each.Text)
		case each.Kind == "undo":
			r.Undo = each.Text
		case !slices.Contains(above, each):
			r.Parts = append(r.Parts, each)
		}
	}
	return r
}

// answer answers those questions of a card that were ticked, each for what was
// shown of it. One that can't be answered any more keeps no other back.
func (p *Page) answer(ctx context.Context, s *session, f form) (*notice, error) {
	a, err := p.answerOf(f)
	if err != nil {
		return nil, err
	}
	if a.Kind != grant.No && a.Kind != grant.Once && a.Kind != grant.Session {
		return nil, &fault.Error{Code: fault.RequestInvalid, Op: "answer", Rule: "that is given to one question", Hint: "answer it by itself"}
	}
	chosen, err := p.chosen(s, f)
	if err != nil {
		return nil, err
	}
	if len(chosen) == 0 {
		return &notice{Bad: true, Lines: []string{"nothing was answered: nothing is ticked"}}, nil
	}
	n := &notice{}
	for _, c := range chosen {
		p.answerOne(ctx, c, a, n)
	}
	if a.Kind == grant.No {
		n.Lines = append(n.Lines, p.pausedNow(f.about)...)
	}
	return n, nil
}

// answerOne answers one of the rows, and says what came of it.
func (p *Page) answerOne(ctx context.Context, c drawn, a grant.Answer, n *notice) {
	about := "question " + c.about
	if q, err := p.o.Grants.Question(ctx, c.about); err == nil {
		about = what(&q.For)
	}
	why := tooEarly
	if !c.early {
		g, err := p.answered(ctx, c.about, c.shown, a, "")
		if err == nil {
			n.tell(g)
			return
		}
		why = textsafe.Clean(fault.As(err).Because()).String()
	}
	n.Bad = true
	n.Lines = append(n.Lines, "not answered: "+about+": "+why)
}

// maxTicked bounds what is answered at once; no card has more rows.
const maxTicked = grant.MaxPending

// chosen are the questions that were ticked, each once, with what was shown of
// them. A tick for all is for those that stood there when it was drawn.
func (p *Page) chosen(s *session, f form) (all []drawn, err error) {
	now := p.o.Now()
	add := func(d drawn) {
		if !slices.ContainsFunc(all, func(o drawn) bool { return o.about == d.about }) {
			all = append(all, d)
		}
	}
	for _, value := range f.values["all"] {
		d, err := s.ticked("all", value, now)
		if err != nil {
			return nil, err
		}
		for l := range strings.Lines(d.about) {
			id, shown, _ := strings.Cut(strings.TrimSuffix(l, "\n"), " ")
			add(drawn{id, shown, d.early})
		}
	}
	for _, value := range f.values["tick"] {
		d, err := s.ticked("tick", value, now)
		if err != nil {
			return nil, err
		}
		add(d)
	}
	if len(all) > maxTicked {
		return nil, &fault.Error{Code: fault.LimitExceeded, Op: "answer", Rule: "too much is ticked", Hint: "tick less"}
	}
	return all, nil
}
