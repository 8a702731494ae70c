// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

func newResume(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "resume [flags] AGENT",
		Short:   "ask for an agent again that was paused",
		Example: `  postern resume claude-code`,
		Long: `the agent's noes are forgotten, and what the policy asks about is asked again.
a name that is not paused is refused, as one that is misspelled. in an agent's
own shell all of it is refused`,
		DisableFlagsInUseLine: true,
		Args:                  exactly("AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := aPerson(env, "resume"); err != nil {
				return err
			}
			if err := unpaused(env, typedAgent(args[0])); err != nil {
				return err
			}
			return pause(cmd.Context(), env, args[0], false, asJSON)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			store, err := lookAtGrants(env)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return store.PausedAgents(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// unpaused refuses a name that is not paused: it may be misspelled, and the agent
// that is meant would stay paused.
func unpaused(env *Env, agent string) error {
	store, err := lookAtGrants(env)
	if err != nil {
		return err
	}
	paused := store.PausedAgents()
	if slices.Contains(paused, agent) {
		return nil
	}
	f := &fault.Error{Code: fault.RequestInvalid, Op: "resume", Resource: agent, Rule: "it is not paused, and no other agent is", Hint: "postern status"}
	if len(paused) > 0 {
		f.Rule, f.Hint = "it is not paused; paused: "+strings.Join(paused, ", "), grant.ResumeCommand(paused[0])
	}
	return f
}
