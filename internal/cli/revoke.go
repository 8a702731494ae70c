// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/internal/prompt"
)

type revokeJSON struct {
	document
	Revoked []string `json:"revoked"`
}

func newRevoke(env *Env) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke [flags] [ID]",
		Short: "take a yes back, or all of them",
		Example: `  postern revoke k3xq9m2d
  postern revoke --all`,
		Long: `once it returns, no call is let through by it. a call that has begun goes on. it
holds even if it can't be recorded; then this ends with exit 8`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.MaximumNArgs(1),
		RunE:                  func(cmd *cobra.Command, args []string) error { return revoke(cmd.Context(), env, args, all, asJSON) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ids(env, grantIDs), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every yes that is in force")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func revoke(ctx context.Context, env *Env, args []string, all, asJSON bool) error {
	if all == (len(args) > 0) {
		return usage("postern revoke", "it takes one ID, or --all", "postern grants")
	}
	return deciding(env, false, func(d *prompt.Desk) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		out := revokeJSON{document: newDocument("revoke"), Revoked: []string{}}
		if all {
			args = d.Store.InForce()
		}
		var failed error
		for _, id := range args {
			if _, err := d.Store.Revoke(ctx, id, byCommand); err != nil {
				failed = named(err, "revoke")
				continue
			}
			out.Revoked = append(out.Revoked, id)
		}
		if failed != nil {
			return failed
		}
		return answer(env.Out, asJSON, out, func(w io.Writer) {
			for _, id := range out.Revoked {
				fmt.Fprintln(w, "revoked", id)
			}
			if len(out.Revoked) == 0 {
				fmt.Fprintln(env.Err, "nothing was in force")
			}
		})
	})
}
