// SPDX-License-Identifier: Apache-2.0

package cli

import "github.com/spf13/cobra"

func newResume(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "resume [flags] AGENT",
		Short:   "ask for an agent again that was paused",
		Example: `  postern resume claude-code`,
		Long: `the agent's noes are forgotten, and what the policy asks about is asked again.
in an agent's own shell it is refused`,
		DisableFlagsInUseLine: true,
		Args:                  exactly("AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := aPerson(env, "resume"); err != nil {
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
