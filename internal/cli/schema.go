// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/schema"
)

func newSchema(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "print a JSON Schema",
		Example: `  postern schema > policy.schema.json
  postern schema event`,
		Long: `NAME is policy, which an editor checks and completes a policy by, result, which
is what results of tools say in _meta, or event, a record of the audit log.
without NAME it is policy. the first line of a policy file names the copy:
  # yaml-language-server: $schema=policy.schema.json`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("NAME")(cmd, args)
			}
			return nil
		},
		ValidArgs: schema.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := append(args, schema.Names()[0])[0]
			text, ok := schema.Named(name)
			if !ok {
				return usage(cmd.CommandPath(), "there is no schema "+textsafe.Name(name), "one of "+strings.Join(schema.Names(), " "))
			}
			_, err := env.Out.Write(text)
			return err
		},
	}
}
