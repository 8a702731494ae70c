// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpWidth is how wide help is, in columns.
const helpWidth = 80

// help prints the help of a verb: what it is, examples, then the rest.
func help(cmd *cobra.Command) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\n", cmd.CommandPath(), cmd.Short)
	if cmd.Example != "" {
		fmt.Fprintf(&b, "%s\n\n", cmd.Example)
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, "usage: %s\n", cmd.UseLine())
	} else {
		fmt.Fprintf(&b, "usage: %s VERB [flags] [arguments]\n", cmd.Name())
	}
	if cmd.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", cmd.Long)
	}
	verbs := ""
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			verbs += fmt.Sprintf("  %-12s %s\n", c.Name(), c.Short)
		}
	}
	if verbs != "" {
		fmt.Fprintf(&b, "\nverbs:\n%s\n%s VERB --help tells more about one\n", verbs, cmd.CommandPath())
	}
	if flags := cmd.LocalFlags().FlagUsagesWrapped(helpWidth); flags != "" && (verbs == "" || cmd.HasParent()) {
		fmt.Fprintf(&b, "\nflags:\n%s", flags)
	}
	fmt.Fprint(cmd.OutOrStdout(), b.String())
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [VERB]",
		Short:   "show how a verb is used",
		Example: "  postern help serve",
		Args: func(cmd *cobra.Command, args []string) error {
			if _, rest, err := cmd.Root().Find(args); len(args) > 1 && (err != nil || len(rest) > 0) {
				return exactly("VERB")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() && len(args) == 0 {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(cmd, args[0])
			}
			found.InitDefaultHelpFlag()
			help(found)
			return nil
		},
	}
}
