// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

func newDeny(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "deny [flags] ID...",
		Short: "say no to what an agent asks for",
		Example: `  postern deny k3xq9m2d
  postern deny k3xq9m2d b7w2m0fa`,
		Long: `the call is refused, and the identical one in its session for a minute without
asking. after three noes in a row the agent is paused until a person resumes it`,
		DisableFlagsInUseLine: true,
		Args:                  someIDs,
		RunE:                  func(cmd *cobra.Command, args []string) error { return deny(cmd.Context(), env, args, asJSON) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ids(env, pendingIDs), cobra.ShellCompDirectiveNoFileComp
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func deny(ctx context.Context, env *Env, ids []string, asJSON bool) error {
	return deciding(env, false, func(d *prompt.Desk) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		return each(env, "deny", ids, asJSON, func(id string) (*grant.Grant, error) {
			q, err := d.Store.Question(ctx, id)
			if err != nil {
				return nil, err
			}
			g, err := d.Store.Decide(ctx, id, grant.Answer{Kind: grant.No, Approver: byCommand, Shown: prompt.Draw(q).Digest})
			if err == nil {
				fmt.Fprint(env.Err, d.Paused(g))
			}
			return g, err
		})
	})
}
