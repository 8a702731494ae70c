// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/internal/state/grant"
)

type pauseJSON struct {
	document
	Agent  string `json:"agent"`
	Paused bool   `json:"paused"`
}

func newPause(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pause [flags] AGENT",
		Short: "refuse everything of an agent that asks, until it is resumed",
		Example: `  postern pause claude-code
  postern pause -               the agents of doors that name none`,
		Long: `nobody is asked for the agent any more, and no yes of it is used: what the
policy asks about is refused. what the policy allows goes on; deny that in the
policy, or end the agent. three noes of a person in a row do the same`,
		DisableFlagsInUseLine: true,
		Args:                  exactly("AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pause(cmd.Context(), env, args[0], true, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func pause(ctx context.Context, env *Env, agent string, on, asJSON bool) error {
	return deciding(env, true, func(s *grant.Store) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		do, verb := s.Pause, "pause"
		if !on {
			do, verb = s.Resume, "resume"
		}
		if err := do(ctx, typedAgent(agent), byCommand); err != nil {
			return named(err, verb)
		}
		out := pauseJSON{newDocument(verb), typedAgent(agent), on}
		return answer(env.Out, asJSON, out, func(w io.Writer) { fmt.Fprintln(w, verb+"d", agentName(out.Agent)) })
	})
}
