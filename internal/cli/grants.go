// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/internal/spell"
)

type grantsJSON struct {
	document
	Grants []grantJSON `json:"grants"`
}

func newGrants(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "grants [flags]",
		Short: "show every yes that is in force",
		Example: `  postern grants
  postern grants --json | jq -r .grants[].id`,
		Long: `what people have approved and agents may still use: by whom, for what, and until
when. postern revoke takes one back`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE:                  func(*cobra.Command, []string) error { return grants(env, asJSON) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func grants(env *Env, asJSON bool) error {
	store, err := lookAtGrants(env)
	if err != nil {
		return err
	}
	out := grantsJSON{document: newDocument("grants"), Grants: []grantJSON{}}
	all := store.Grants()
	for _, g := range all {
		out.Grants = append(out.Grants, grantOf(g))
	}
	return answer(env.Out, asJSON, out, func(w io.Writer) {
		for _, g := range all {
			fmt.Fprintf(w, "%s %s %s%s by %s, %s, until %s\n", g.ID, padded(agentName(g.For.Agent), agentWidth),
				what(&g.For), where(&g.For), spell.Name(g.Covers), g.Reach(), g.Deadline().Local().Format(time.DateTime))
		}
		if len(all) == 0 {
			fmt.Fprintln(env.Err, "nothing is approved")
		}
	})
}
