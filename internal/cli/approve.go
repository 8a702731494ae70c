// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

type approveOptions struct {
	session     bool
	always      bool
	pattern     string
	until       string
	yes, asJSON bool
	code        string
}

func newApprove(env *Env) *cobra.Command {
	var o approveOptions
	cmd := &cobra.Command{
		Use:   "approve [flags] ID...",
		Short: "say yes to what an agent asks for, after seeing all of it",
		Example: `  postern approve k3xq9m2d
  postern approve k3xq9m2d b7w2m0fa          alike ones on one card
  postern approve --session k3xq9m2d         the identical call, in this session
  postern approve --pattern 'project://src/**' k3xq9m2d
  postern approve --pattern 'project://src/**' --always k3xq9m2d
  postern approve --until 2h k3xq9m2d        the identical call, in any session`,
		Long: `shows the whole question on the terminal and takes the answer there; of several
each, or on one card all, by their numbers. a yes is
for once: for the same call, with the same arguments, on what is there now, in
the same session, until the question's deadline; the agent has to call again

--session and --until are for the identical call whatever is there by then,
--pattern is for the operations asked about on every name that GLOB covers, in
the same session for 8 hours; with --always in any session of this agent, for a
year, until the policy changes or postern revoke takes it back. what has a code
on its card is approved once each time: what is destructive, what controls a
running program, what nobody knows, what isn't shown whole. so are, but for the
identical call, names of the built-in lists

TIME is how long, as 30m, 2h or 1d, or when: 18:00, 2026-11-30 18:00; 7 days at
most. without a terminal --yes stands for the answer: it prints the card and its
digest, and where the card has a code a yes also wants --code CODE. in
an agent's own shell --yes is refused`,
		DisableFlagsInUseLine: true,
		Args:                  someIDs,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.approve(cmd.Context(), env, args) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ids(env, pendingIDs), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&o.session, "session", false, "for the identical call in this session, 8 hours at most")
	textFlag(cmd, &o.pattern, "pattern", "GLOB", "for the same operations on what GLOB covers, in this session")
	cmd.Flags().BoolVar(&o.always, "always", false, "with --pattern, in any session of this agent")
	textFlag(cmd, &o.until, "until", "TIME", "for the identical call of this agent, until then")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "it is meant, don't ask")
	textFlag(cmd, &o.code, "code", "CODE", "with --yes, the code that is on the card, where a yes wants one")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// answer is the yes that the flags describe.
func (o *approveOptions) answer(now time.Time) (grant.Answer, error) {
	given := 0
	for _, on := range []bool{o.session, o.pattern != "", o.until != ""} {
		if on {
			given++
		}
	}
	switch {
	case given > 1:
		return grant.Answer{}, usage("postern approve", "--session, --pattern and --until exclude each other", "")
	case o.always && o.pattern == "":
		return grant.Answer{}, usage("postern approve", "--always goes with --pattern", "")
	case o.code != "" && !o.yes:
		return grant.Answer{}, usage("postern approve", "--code goes with --yes; on a terminal it is typed", "")
	case o.session:
		return grant.Answer{Kind: grant.Session}, nil
	case o.always:
		return grant.Answer{Kind: grant.Always, Pattern: o.pattern}, nil
	case o.pattern != "":
		return grant.Answer{Kind: grant.Pattern, Pattern: o.pattern}, nil
	case o.until != "":
		life, ok := grant.ParseUntil(o.until, now)
		if !ok {
			return grant.Answer{}, usage("postern approve", "--until: it is no time and no duration: "+o.until, "")
		}
		return grant.Answer{Kind: grant.Until, Life: life}, nil
	}
	return grant.Answer{Kind: grant.Once}, nil
}

func (o *approveOptions) approve(ctx context.Context, env *Env, ids []string) error {
	yes, err := o.answer(time.Now())
	if err == nil && o.code != "" && len(ids) > 1 {
		err = usage("postern approve", "--code is that of one card", "")
	}
	if err == nil && o.yes {
		err = aPerson(env, "approve")
	}
	if err != nil {
		return err
	}
	return deciding(env, false, func(d *prompt.Desk) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		d.Silent = onTerminal(env.Out) && !o.asJSON
		if alike, err := o.alike(ctx, d, ids); alike != nil || err != nil {
			return o.together(ctx, env, d, alike, err)
		}
		return each(env, "approve", ids, o.asJSON, func(id string) (*grant.Grant, error) {
			q, err := d.Store.Question(ctx, id)
			if err == nil {
				err = o.mayNot(q, yes)
			}
			switch {
			case err != nil:
				return nil, err
			case o.yes:
				return o.unasked(ctx, env, d, q, yes)
			}
			return o.answered(ctx, env, d, q, yes)
		})
	})
}

// alike are the questions, if they can be answered on one card.
func (o *approveOptions) alike(ctx context.Context, d *prompt.Desk, ids []string) (all []*grant.Question, err error) {
	if len(ids) == 1 || o.yes || o.session || o.pattern != "" || o.until != "" {
		return nil, nil
	}
	for _, id := range ids {
		q, err := d.Store.Question(ctx, id)
		if err != nil {
			return nil, named(err, "approve")
		}
		all = append(all, q)
	}
	if !d.Together(all) {
		return nil, nil
	}
	return all, nil
}

// together answers questions that are alike, on one card.
func (o *approveOptions) together(ctx context.Context, env *Env, d *prompt.Desk, all []*grant.Question, err error) error {
	if err != nil {
		return err
	}
	t, err := personAt(env, "approve", "run it on a terminal, or add --yes")
	if err != nil {
		return err
	}
	defer t.Close()
	given, err := d.AskMany(ctx, t, all)
	if err != nil && !errors.Is(err, prompt.ErrSome) {
		return named(unanswered(err, all[0].ID, o.command(all[0].ID, grant.Answer{Kind: grant.Once})), "approve")
	}
	printErr := answers(env, "approve", given, o.asJSON)
	if err != nil {
		return exitCode(fault.ExitFailed)
	}
	return printErr
}

// answered shows the card on the terminal and takes the answer there.
func (o *approveOptions) answered(ctx context.Context, env *Env, d *prompt.Desk, q *grant.Question, yes grant.Answer) (*grant.Grant, error) {
	t, err := personAt(env, "approve", "run it on a terminal, or add --yes")
	if err != nil {
		return nil, err
	}
	defer t.Close()
	g, err := d.Ask(ctx, t, q, yes)
	return g, unanswered(err, q.ID, o.command(q.ID, yes))
}

// unanswered says that a person did not answer.
func unanswered(err error, id, next string) error {
	switch {
	case errors.Is(err, prompt.ErrLater):
		return &fault.Error{Code: fault.PolicyAsk, Resource: id, Rule: "it was not answered", Hint: next}
	case errors.Is(err, prompt.ErrInterrupted):
		return &fault.Error{Code: fault.Cancelled, Resource: id, Rule: "it was not answered", Hint: next}
	}
	return err
}

// unasked takes --yes for the answer, after printing what it is for.
func (o *approveOptions) unasked(ctx context.Context, env *Env, d *prompt.Desk, q *grant.Question, yes grant.Answer) (*grant.Grant, error) {
	card := prompt.Draw(q)
	no := &fault.Error{
		Code: fault.PolicyAsk, Resource: q.ID, Rule: card.WhyCode + ", so a yes wants its code",
		Hint: "postern approve --yes --code " + card.Code + " " + q.ID,
	}
	coded := card.Code == "" || o.code == card.Code
	if !coded && o.asJSON {
		if o.code != "" {
			no.Rule = "the code is wrong; " + no.Rule
		}
		return nil, no
	}
	fmt.Fprint(env.Err, card.Text)
	fmt.Fprintln(env.Err, "card sha256", card.Digest)
	if !coded {
		why := "the code is wrong"
		if o.code == "" {
			why = q.ID
		}
		fmt.Fprintf(env.Err, "code %s\nnot answered: %s\nbecause: %s\nnext: %s\n", card.Code, why, no.Rule, no.Hint) // it isn't denied
		return nil, exitCode(fault.ExitAsk)
	}
	yes.Approver, yes.Shown = byCommand, card.Digest
	return d.Decide(ctx, q, yes)
}

// outcomeOf says what was answered.
func outcomeOf(g *grant.Grant) string {
	if g.Kind == grant.No {
		return "denied " + g.ID + ": " + what(&g.For)
	}
	line := "approved " + g.ID + ": " + what(&g.For) + where(&g.For) + ", " + g.Reach() + ", until " + g.Deadline().Local().Format(time.DateTime)
	if g.Kind == grant.Once {
		return line + "; a call that waits goes on, else the agent has to call again"
	}
	return line + "; postern revoke " + g.ID + " takes it back"
}
