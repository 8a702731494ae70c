// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

// approver is how the records name an answer that was typed on a terminal.
const approver = "terminal"

// ErrLater puts a question off.
var ErrLater = errors.New("later")

// Desk is where questions lie.
type Desk struct {
	Store *grant.Store
	// Since returns the names of a question that lead to something else now than
	// when it was asked.
	Since func(*grant.Binding) []string
	// Silent says that who asks tells what was answered on the same terminal.
	Silent bool
}

// Watch shows each question as it comes, until ctx ends or the person presses
// ctrl-c, which is ErrInterrupted. While it runs, calls wait for it.
func (d *Desk) Watch(ctx context.Context, t *Terminal) error {
	here, err := d.Store.Attend(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = here.Leave() }() //nolint:contextcheck // it is over, whatever ended it
	if err := t.print("questions of agents are shown here; ctrl-c ends it\n"); err != nil {
		return err
	}
	later := map[string]time.Time{}
	for {
		if next := d.next(later, time.Now()); next != nil {
			if err := putOff(later, next, d.show(ctx, t, next), time.Now()); err != nil {
				return err
			}
			continue
		}
		if err := t.idle(ctx); err != nil {
			return err
		}
	}
}

// Beside shows each question as it comes on a terminal that has something else
// on it meanwhile, until ctx ends or the person presses ctrl-c at a question,
// which is ErrInterrupted. The terminal is opened for as long as a question is
// on it; hold keeps everybody else from writing there until what it returns is
// called. While it runs, calls wait for it.
func (d *Desk) Beside(ctx context.Context, open func() (*Terminal, error), hold func() (release func())) error {
	here, err := d.Store.Attend(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = here.Leave() }() //nolint:contextcheck // it is over, whatever ended it
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	later := map[string]time.Time{}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		next := d.next(later, time.Now())
		if next == nil {
			continue
		}
		if err := putOff(later, next, d.alone(ctx, next, open, hold), time.Now()); err != nil {
			return err
		}
	}
}

// errAgain says that an answer was not taken, and may be in a moment.
var errAgain = errors.New("again")

// pauseAgain is how long a question is left alone then.
const pauseAgain = 5 * time.Second

// putOff remembers until when questions aren't shown: what a person put off,
// never again; what met a passing fault, for a moment. Any other error is
// returned.
func putOff(later map[string]time.Time, shown []*grant.Question, err error, now time.Time) error {
	until := time.Time{}
	switch {
	case errors.Is(err, errAgain):
		until = now.Add(pauseAgain)
	case !errors.Is(err, ErrLater):
		return err
	}
	for _, q := range shown {
		later[q.ID] = until
	}
	return nil
}

// alone asks with the terminal to itself.
func (d *Desk) alone(ctx context.Context, next []*grant.Question, open func() (*Terminal, error), hold func() (release func())) error {
	defer hold()()
	t, err := open()
	if err != nil {
		return err
	}
	defer t.Close()
	return d.show(ctx, t, next)
}

// next are the questions to show: the oldest, and those that are alike.
func (d *Desk) next(later map[string]time.Time, now time.Time) []*grant.Question {
	var all []*grant.Question
	for _, q := range d.Store.Pending() {
		if until, off := later[q.ID]; !off || !until.IsZero() && !now.Before(until) {
			all = append(all, q)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return d.run(all)
}

// idle waits a moment. What is typed meanwhile answers nothing.
func (t *Terminal) idle(ctx context.Context) error {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case k, open := <-t.keys:
			if !open {
				return io.EOF
			}
			if k.char == ctrlC || k.char == ctrlD {
				return ErrInterrupted
			}
		}
	}
}

// show asks the questions of a watch. What can't be answered any more is told and
// left.
func (d *Desk) show(ctx context.Context, t *Terminal, next []*grant.Question) error {
	var err error
	if len(next) > 1 {
		_, err = d.AskMany(ctx, t, next)
	} else {
		_, err = d.Ask(ctx, t, next[0], grant.Answer{Kind: grant.Once})
	}
	var f *fault.Error
	switch {
	case errors.Is(err, ErrLater):
		return errors.Join(err, t.print(t.wrap(left(next))+"\n\n"))
	case errors.Is(err, ErrSome):
		return errAgain
	case !errors.As(err, &f):
		return err
	}
	if said, ok := elsewhere(f); ok {
		return t.print(t.wrap("answered: "+f.Resource+", "+said) + "\n\n")
	}
	_ = t.print(t.wrap(f.Lines()) + "\n\n")
	switch {
	case f.Code == fault.PreconditionFailed || f.Code == fault.GrantExpired:
		return nil
	case len(next) == 1 && f.Code == fault.GrantStale:
		return ErrLater // it can't be answered with yes any more
	case f.Code == fault.GrantStale:
		return nil // the others are
	}
	return errAgain // it stays a question
}

// left says how what was put off is answered.
func left(all []*grant.Question) string {
	text := "left for later: postern approve"
	for _, q := range all {
		text += " " + q.ID
	}
	return text
}

// elsewhere says what was answered by somebody else meanwhile.
func elsewhere(f *fault.Error) (said string, ok bool) {
	return strings.CutPrefix(textsafe.Clean(f.Because()).String(), "it was answered before: ")
}

// Ask shows the whole question and takes the answer. yes is what a plain yes
// gives. An error that isn't a fault ends without an answer.
func (d *Desk) Ask(ctx context.Context, t *Terminal, q *grant.Question, yes grant.Answer) (*grant.Grant, error) {
	card := Draw(q)
	gone := func() error { return d.still(ctx, q) }
	if err := gone(); err != nil {
		return nil, err
	}
	if err := t.page(ctx, "\n"+card.Text, gone); err != nil {
		return nil, err
	}
	for {
		line, err := t.ask(ctx, t.wrap(card.choices(yes)), gone)
		if err != nil {
			return nil, err
		}
		a, ok := card.answer(line, yes)
		if !ok && line != "" {
			if err := t.print(card.unanswered(yes) + "\n"); err != nil {
				return nil, err
			}
		}
		if !ok {
			continue
		}
		if a.Kind == "" {
			return nil, ErrLater
		}
		a.Approver, a.Shown = approver, card.Digest
		g, err := d.Decide(ctx, q, a)
		if err == nil {
			err = t.print(d.told(g) + t.wrap(d.Paused(g)) + "\n")
		}
		return g, err
	}
}

// still is the refusal of a question that can't be answered any more with what is
// on its card.
func (d *Desk) still(ctx context.Context, q *grant.Question) error {
	if _, err := d.Store.Question(ctx, q.ID); err != nil {
		return err
	}
	return d.changed(q)
}

// changed refuses what leads to something else now than what the card shows.
func (d *Desk) changed(q *grant.Question) error {
	names := d.Since(&q.For)
	if len(names) == 0 {
		return nil
	}
	return &fault.Error{
		Code: fault.GrantStale, Resource: q.ID, Rule: "it changed since it was asked: " + spell.Name(names[0]),
		Hint: "let the agent call again, which asks anew; no yes is taken for this card",
	}
}

// Decide answers. A yes is for what the card shows.
func (d *Desk) Decide(ctx context.Context, q *grant.Question, a grant.Answer) (*grant.Grant, error) {
	if a.Kind != grant.No {
		if err := d.changed(q); err != nil {
			return nil, err
		}
	}
	return d.Store.Decide(ctx, q.ID, a)
}

// reach is all that a yes for more than once lets through, and until when.
func (c Card) reach(yes grant.Answer, now time.Time) string {
	until := func(life time.Duration) string { return ", until " + now.Add(life).Format(time.DateTime) }
	on := c.Actions + ", by any tool, on " + spell.Name(yes.Pattern)
	if c.Actions == "fs.write" {
		on = "fs.write (a new file is fs.create, and not in it), by any tool, on " + spell.Name(yes.Pattern)
	}
	switch yes.Kind {
	case grant.Pattern:
		return on + ", in this session" + until(grant.SessionLife)
	case grant.Always:
		return on + ", in any session" + until(grant.AlwaysLife)
	case grant.Until:
		return "the same call, in any session" + until(yes.Life)
	default:
		return "the same call, in this session" + until(grant.SessionLife)
	}
}

// Always is what has to be typed for a yes that may reach all of a root in any session.
const Always = "always"

// WantsAlways reports whether the answer is such a yes.
func WantsAlways(yes grant.Answer) bool {
	return yes.Kind == grant.Always && grant.Anywhere(yes.Pattern)
}

// word is what alone is a yes, "" where a key is.
func (c Card) word(yes grant.Answer) string {
	if c.Code == "" && WantsAlways(yes) {
		return Always
	}
	return c.Code
}

// choices is the prompt.
func (c Card) choices(yes grant.Answer) string {
	switch {
	case c.Code != "":
		return c.WhyCode + ": a yes, once, wants its code: type " + c.Code + " · n no · l later: "
	case WantsAlways(yes):
		return "it begins with a wildcard, so for a yes type " + Always + ": " + c.reach(yes, time.Now()) + " · n no · l later: "
	case yes.Kind != grant.Once:
		return "y yes: " + c.reach(yes, time.Now()) + " · n no · l later: "
	case c.oneKey() != "":
		always := ""
		if c.Named {
			always = " · a that in any session, for a year"
		}
		return "y yes, once · s the same call, this session · p " + c.Actions + " on " + spell.Name(c.oneKey()) + ", this session" + always + " · n no · l later: "
	}
	return "y yes, once · s the same call, this session · n no · l later: "
}

// oneKey is the pattern that one key answers for, "" for none: a whole root is not
// given away by a key, but by postern approve --pattern, or on the page.
func (c Card) oneKey() string {
	if grant.Anywhere(c.Pattern) {
		return ""
	}
	return c.Pattern
}

// unanswered says what was typed instead of an answer.
func (c Card) unanswered(yes grant.Answer) string {
	switch {
	case c.Code != "":
		return "not answered: the code is wrong; for a yes type " + c.Code
	case WantsAlways(yes):
		return "not answered: for a yes to this type " + Always
	}
	return "not answered: that is no answer to this"
}

// answer is what a line means. Of what wants a code only that is a yes.
func (c Card) answer(line string, yes grant.Answer) (grant.Answer, bool) {
	switch line = strings.ToLower(line); {
	case line == "n" || line == "no":
		return grant.Answer{Kind: grant.No}, true
	case line == "l" || line == "later":
		return grant.Answer{}, true
	case c.word(yes) != "":
		return yes, line == c.word(yes)
	case line == "y" || line == "yes":
		return yes, true
	case yes.Kind != grant.Once:
		return yes, false
	case line == "s":
		return grant.Answer{Kind: grant.Session}, true
	case line == "p" && c.oneKey() != "":
		return grant.Answer{Kind: grant.Pattern, Pattern: c.oneKey()}, true
	case line == "a" && c.oneKey() != "" && c.Named:
		return grant.Answer{Kind: grant.Always, Pattern: c.oneKey()}, true
	}
	return yes, false
}

// Paused is a line that says of the last no in a row that it has paused the agent,
// "" of any other answer.
func (d *Desk) Paused(g *grant.Grant) string {
	agent := g.For.Agent
	if g.Kind != grant.No || !slices.Contains(d.Store.PausedAgents(), agent) {
		return ""
	}
	name := "the agent without a name"
	if agent != "" {
		name = spell.Name(agent)
	}
	return name + " is paused: three noes in a row. its other questions are over; to let it ask again: " +
		textsafe.Clean(grant.ResumeCommand(agent)).String() + "\n"
}

// told is a line that says what was answered.
func (d *Desk) told(g *grant.Grant) string {
	switch {
	case d.Silent:
		return ""
	case g.Kind == grant.No:
		return "denied " + g.ID + "\n"
	case g.Kind == grant.Once:
		return "approved " + g.ID + ", once, until " + g.Deadline().Local().Format(time.TimeOnly) + "\n"
	default:
		return "approved " + g.ID + ", " + string(g.Kind) + ", until " + g.Deadline().Local().Format(time.DateTime) + "; postern revoke " + g.ID + " takes it back\n"
	}
}
