// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/grant"
)

// approver is how the records name an answer that was typed on a terminal.
const approver = "terminal"

// ErrLater puts a question off.
var ErrLater = errors.New("later")

// Watch shows each question as it comes, until ctx ends or the person presses
// ctrl-c, which is ErrInterrupted. While it runs, calls wait for it.
func Watch(ctx context.Context, store *grant.Store, t *Terminal) error {
	here, err := store.Attend(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = here.Leave() }() //nolint:contextcheck // it is over, whatever ended it
	if err := t.print("questions of agents are shown here; ctrl-c ends it\n"); err != nil {
		return err
	}
	later := map[string]time.Time{}
	for {
		if q := next(store, later, time.Now()); q != nil {
			if err := putOff(later, q.ID, show(ctx, store, t, q), time.Now()); err != nil {
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
func Beside(ctx context.Context, store *grant.Store, open func() (*Terminal, error), hold func() (release func())) error {
	here, err := store.Attend(ctx)
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
		q := next(store, later, time.Now())
		if q == nil {
			continue
		}
		if err := putOff(later, q.ID, alone(ctx, store, q, open, hold), time.Now()); err != nil {
			return err
		}
	}
}

// errAgain says that an answer was not taken, and may be in a moment.
var errAgain = errors.New("again")

// pauseAgain is how long a question is left alone then.
const pauseAgain = 5 * time.Second

// putOff remembers until when a question isn't shown: one that a person put off,
// never again; one whose answer met a passing fault, for a moment. Any other
// error is returned.
func putOff(later map[string]time.Time, id string, err error, now time.Time) error {
	switch {
	case errors.Is(err, ErrLater):
		later[id] = time.Time{}
	case errors.Is(err, errAgain):
		later[id] = now.Add(pauseAgain)
	default:
		return err
	}
	return nil
}

// alone asks one question with the terminal to itself.
func alone(ctx context.Context, store *grant.Store, q *grant.Question, open func() (*Terminal, error), hold func() (release func())) error {
	defer hold()()
	t, err := open()
	if err != nil {
		return err
	}
	defer t.Close()
	return show(ctx, store, t, q)
}

func next(store *grant.Store, later map[string]time.Time, now time.Time) *grant.Question {
	for _, q := range store.Pending() {
		if until, off := later[q.ID]; !off || !until.IsZero() && !now.Before(until) {
			return q
		}
	}
	return nil
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

// show asks one question of a watch. What can't be answered any more is told
// and left.
func show(ctx context.Context, store *grant.Store, t *Terminal, q *grant.Question) error {
	_, err := Ask(ctx, store, t, q, grant.Answer{Kind: grant.Once})
	var f *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		if said, ok := elsewhere(f); ok {
			return t.print(t.wrap("answered: "+q.ID+", "+said) + "\n\n")
		}
		_ = t.print(t.wrap(f.Lines()) + "\n\n")
		if f.Code != fault.PreconditionFailed && f.Code != fault.GrantExpired {
			return errAgain // it stays a question
		}
		return nil
	}
	return err
}

// elsewhere says what was answered by somebody else meanwhile.
func elsewhere(f *fault.Error) (said string, ok bool) {
	return strings.CutPrefix(textsafe.Clean(f.Because()).String(), "it was answered before: ")
}

// Ask shows the whole question and takes the answer. yes is what a plain yes
// gives. An error that isn't a fault ends without an answer.
func Ask(ctx context.Context, store *grant.Store, t *Terminal, q *grant.Question, yes grant.Answer) (*grant.Grant, error) {
	card := Draw(q)
	gone := func() error {
		if _, err := store.Question(ctx, q.ID); err != nil {
			return err
		}
		return nil
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
		if !ok && card.Code != "" && line != "" {
			if err := t.print("not answered: the code is wrong\n"); err != nil {
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
		g, err := store.Decide(ctx, q.ID, a)
		if err == nil {
			err = t.print(told(g) + "\n\n")
		}
		return g, err
	}
}

// choices is the prompt.
func (c Card) choices(yes grant.Answer) string {
	word := map[grant.Kind]string{
		grant.Once: "once", grant.Session: "this session", grant.Until: "until " + time.Now().Add(yes.Life).Format(time.DateTime), grant.Pattern: "this session on " + textsafe.Name(yes.Pattern),
	}[yes.Kind]
	switch {
	case c.Code != "":
		return "a yes to this wants its code: " + c.Code + " yes, " + word + " · n no · l later: "
	case yes.Kind != grant.Once:
		return "y yes, " + word + " · n no · l later: "
	case c.Pattern != "":
		return "y yes, once · s this session · p this session, " + textsafe.Name(c.Pattern) + " · n no · l later: "
	}
	return "y yes, once · s this session · n no · l later: "
}

// answer is what a line means. Of what wants a code only that is a yes.
func (c Card) answer(line string, yes grant.Answer) (grant.Answer, bool) {
	switch line = strings.ToLower(line); {
	case line == "n" || line == "no":
		return grant.Answer{Kind: grant.No}, true
	case line == "l" || line == "later":
		return grant.Answer{}, true
	case c.Code != "":
		return yes, line == c.Code
	case line == "y" || line == "yes":
		return yes, true
	case yes.Kind != grant.Once:
		return yes, false
	case line == "s":
		return grant.Answer{Kind: grant.Session}, true
	case line == "p" && c.Pattern != "":
		return grant.Answer{Kind: grant.Pattern, Pattern: c.Pattern}, true
	}
	return yes, false
}

// told says what was answered.
func told(g *grant.Grant) string {
	switch g.Kind {
	case grant.No:
		return "denied " + g.ID
	case grant.Once:
		return "approved " + g.ID + ", once, until " + g.Deadline().Local().Format(time.TimeOnly)
	default:
		return "approved " + g.ID + ", " + string(g.Kind) + ", until " + g.Deadline().Local().Format(time.DateTime) + "; postern revoke " + g.ID + " takes it back"
	}
}
