// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
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
answered until its deadline, with approve or deny

--watch shows every question as a card on the terminal and takes the answer.
while it runs, a call that asks waits for it (ask.wait of the policy); without
it the call is refused at once with the id of the question, and succeeds when
the agent sends it again after a yes`,
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
	for _, q := range questions {
		out.Questions = append(out.Questions, questionOf(q))
	}
	return answer(env.Out, asJSON, out, func(w io.Writer) {
		for _, q := range questions {
			left := max(0, time.Until(q.Deadline())).Round(time.Second)
			fmt.Fprintf(w, "%s %s %s%s, %s left\n", q.ID, padded(agentName(q.For.Agent), agentWidth), what(&q.For), where(&q.For), left)
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

func watchPending(ctx context.Context, env *Env, asJSON bool) error {
	if asJSON {
		return usage("postern pending", "--watch is for a person and --json for a program", "postern pending --json")
	}
	t, err := personAt(env, "pending --watch", "run it on a terminal, or answer with: postern approve ID")
	if err != nil {
		return err
	}
	defer t.Close()
	return deciding(env, true, func(s *grant.Store) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		return watchGrants(ctx, s, t)
	})
}
