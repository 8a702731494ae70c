// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/grant"
)

// maxRows bounds the questions on one card; all their texts have the room of one.
const maxRows = 9

// ErrSome says that some of several answers were not taken, as was told.
var ErrSome = errors.New("not all was answered")

// run is the questions that are alike with the first, in their order, as many as
// one card holds.
func (d *Desk) run(all []*grant.Question) (alike []*grant.Question) {
	key, size := all[0].Alike(), 0
	if d.changed(all[0]) != nil {
		return all[:1]
	}
	for _, q := range all {
		if len(alike) == maxRows || q != all[0] && (key == "" || q.Alike() != key) {
			continue
		}
		if size += len(Draw(q).Text); len(alike) > 0 && (size > grant.MaxQuestion || d.changed(q) != nil) {
			continue
		}
		alike = append(alike, q)
	}
	return alike
}

// Together reports whether these can be answered on one card.
func (d *Desk) Together(all []*grant.Question) bool {
	return len(all) > 1 && len(d.run(all)) == len(all)
}

// drawMany draws questions that are alike: what all have in common once, and of
// each all the rest, under its number.
func drawMany(all []*grant.Question) (cards []Card, text string) {
	for _, q := range all {
		cards = append(cards, Draw(q))
	}
	var common []Part
	for _, p := range cards[0].Parts {
		if (p.Kind == Field || p.Kind == Says) && !slices.ContainsFunc(cards, func(c Card) bool { return !slices.Contains(c.Parts, p) }) {
			common = append(common, p)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d questions\n", len(all))
	for _, p := range common {
		p.write(&b)
	}
	for i, c := range cards {
		fmt.Fprintf(&b, "%-11d question %s\n", i+1, all[i].ID)
		for _, p := range c.Parts {
			if !slices.Contains(common, p) {
				p.write(&b)
			}
		}
	}
	return cards, b.String()
}

// AskMany shows questions that are alike on one card, and takes the answer to all
// of them or to those whose numbers are named: a yes is for once. The rest are
// questions as before. Each answer is bound to the question's own card.
func (d *Desk) AskMany(ctx context.Context, t *Terminal, all []*grant.Question) ([]*grant.Grant, error) {
	cards, text := drawMany(all)
	gone := func() error {
		for _, q := range all {
			if err := d.still(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}
	if err := t.page(ctx, "\n"+text, gone); err != nil {
		return nil, err
	}
	for {
		line, err := t.ask(ctx, t.wrap(choicesOfMany(len(all))), gone)
		if err != nil {
			return nil, err
		}
		kind, chosen, ok := numbered(line, len(all))
		switch {
		case !ok && line != "":
			if err := t.print("not answered: that is no answer to these\n"); err != nil {
				return nil, err
			}
		case ok && kind == "":
			return nil, ErrLater
		case ok:
			return d.decideMany(ctx, t, all, cards, kind, chosen)
		}
	}
}

// decideMany answers each by itself. One that can't be answered any more is told,
// and keeps no other back; the error then is ErrSome.
func (d *Desk) decideMany(ctx context.Context, t *Terminal, all []*grant.Question, cards []Card, kind grant.Kind, chosen []int) (given []*grant.Grant, failed error) {
	for _, i := range chosen {
		g, err := d.Decide(ctx, all[i], grant.Answer{Kind: kind, Approver: approver, Shown: cards[i].Digest})
		if g != nil {
			given = append(given, g)
			if err := t.print(d.told(g) + t.wrap(d.Paused(g))); err != nil {
				return given, err
			}
		}
		var f *fault.Error
		switch {
		case errors.As(err, &f):
			failed = ErrSome
			if err := t.print(t.wrap("not answered: "+all[i].ID+", "+textsafe.Clean(f.Because()).String()) + "\n"); err != nil {
				return given, err
			}
		case err != nil:
			return given, err
		}
	}
	if err := t.print("\n"); err != nil {
		return given, err
	}
	return given, failed
}

func choicesOfMany(n int) string {
	no := "n no to all"
	if n >= grant.NoesInRow {
		no += ", which pauses the agent"
	}
	return "all yes to each, once · 1 2 yes to those · " + no + " · n 1 2 no to those · l later: "
}

// numbered is what a line means for so many questions. A plain yes is none: it
// says nothing of how many.
func numbered(line string, n int) (kind grant.Kind, chosen []int, ok bool) {
	words := strings.Fields(strings.ToLower(strings.ReplaceAll(line, ",", " ")))
	if len(words) == 0 {
		return "", nil, false
	}
	kind = grant.Once
	switch words[0] {
	case "l", "later":
		return "", nil, len(words) == 1
	case "n", "no":
		kind, words = grant.No, words[1:]
		if len(words) == 0 {
			words = []string{"all"}
		}
	}
	if len(words) == 1 && words[0] == "all" {
		for i := range n {
			chosen = append(chosen, i)
		}
		return kind, chosen, true
	}
	for _, w := range words {
		i, err := strconv.Atoi(w)
		if err != nil || i < 1 || i > n || strconv.Itoa(i) != w {
			return "", nil, false
		}
		if !slices.Contains(chosen, i-1) {
			chosen = append(chosen, i-1)
		}
	}
	return kind, chosen, true
}
