// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
)

func newCompletion(env *Env) *cobra.Command {
	scripts := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       func(c *cobra.Command, w io.Writer) error { return c.GenBashCompletionV2(w, true) },
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(c *cobra.Command, w io.Writer) error { return c.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "print the completion script of a shell",
		Example: `  source <(postern completion bash)
  postern completion zsh > "${fpath[1]}/_postern"
  postern completion fish > ~/.config/fish/completions/postern.fish
  postern completion powershell | Out-String | Invoke-Expression`,
		Long: `SHELL is bash, zsh, fish or powershell. the script of bash needs the package
bash-completion, version 2; without it bash says that _get_comp_words_by_ref is
not found`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd.CommandPath(), "SHELL is missing", "postern completion with one of bash, zsh, fish, powershell")
			}
			return exactly("SHELL")(cmd, args)
		},
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			script, ok := scripts[args[0]]
			if !ok {
				return usage(cmd.CommandPath(), textsafe.Name(args[0])+" is not bash, zsh, fish or powershell", "")
			}
			return script(cmd.Root(), env.Out)
		},
	}
}
