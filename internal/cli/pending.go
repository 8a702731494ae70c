// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

type pendingJSON struct {
	document
	Questions []questionJSON `json:"questions"`
	Paused    []string       `json:"paused"`
}

func newPending(env *Env) *cobra.Command {
	var watch, asJSON bool
	cmd := &cobra.Command{
		Use:   "pending [flags]",
		Short: "show what agents ask for, and answer as it comes",
		Example: `  postern pending
  postern pending --watch       show each question as it comes, and answer it
  postern pending --json | jq -r .questions[].id`,
		Long: `the questions that wait for a person: what the policy asks about. each can be
answered until its deadline, with approve or deny. what one agent asks of one
tool, and differs in its target alone, stands together

--watch shows every question as a card on the terminal and takes the answer.
while it runs, or up on a terminal, or the page is open, a call that asks waits
(ask.wait of the policy); without any of these it is refused at once with the id
of the question, and succeeds when the agent sends it again after a yes.
questions that are alike come on one card, and are answered all or by numbers`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if watch {
				return watchPending(cmd.Context(), env, asJSON)
			}
			return pending(env, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "show questions as they come, and take the answers")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func pending(env *Env, asJSON bool) error {
	store, err := lookAtGrants(env)
	if err != nil {
		return err
	}
	out := pendingJSON{document: newDocument("pending"), Questions: []questionJSON{}, Paused: append([]string{}, store.PausedAgents()...)}
	questions := store.Pending()
	groups := grouped(questions)
	for _, group := range groups {
		for _, q := range group {
			j := questionOf(q)
			for _, other := range group {
				if other != q {
					j.Alike = append(j.Alike, other.ID)
				}
			}
			out.Questions = append(out.Questions, j)
		}
	}
	return answer(env.Out, asJSON, out, func(w io.Writer) {
		for _, group := range groups {
			printGroup(w, group)
		}
		for _, name := range out.Paused {
			fmt.Fprintf(w, "paused: %s; %s\n", agentName(name), textsafe.Clean(grant.ResumeCommand(name)))
		}
		switch {
		case len(questions) > 0:
			fmt.Fprintln(env.Err, "postern approve ID shows all of a question and asks; postern deny ID says no")
		case len(out.Paused) == 0:
			fmt.Fprintln(env.Err, "nothing is asked")
		}
	})
}

// grouped puts questions that are alike together, each group where its oldest
// stands.
func grouped(all []*grant.Question) (groups [][]*grant.Question) {
	at := map[string]int{}
	for _, q := range all {
		key := q.Alike()
		if i, ok := at[key]; ok && key != "" {
			groups[i] = append(groups[i], q)
			continue
		}
		at[key] = len(groups)
		groups = append(groups, []*grant.Question{q})
	}
	return groups
}

func printGroup(w io.Writer, group []*grant.Question) {
	all := ""
	for _, q := range group {
		left := max(0, time.Until(q.Deadline())).Round(time.Second)
		fmt.Fprintf(w, "%s %s %s%s, %s left\n", q.ID, padded(agentName(q.For.Agent), agentWidth), what(&q.For), where(&q.For), left)
		all += " " + q.ID
	}
	if len(group) > 1 {
		fmt.Fprintf(w, "  these are alike: postern approve%s\n", all)
	}
}

func watchPending(ctx context.Context, env *Env, asJSON bool) error {
	if asJSON {
		return usage("postern pending", "--watch is for a person and --json for a program", "postern pending --json")
	}
	t, err := personAt(env, "pending --watch", "run it on a terminal, or answer with: postern approve ID")
	if err != nil {
		return err
	}
	defer t.Close()
	return deciding(env, true, func(d *prompt.Desk) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		return watchGrants(ctx, d, t)
	})
}
