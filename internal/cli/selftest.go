// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/selftest"
)

// selftestJSON is the answer of selftest.
type selftestJSON struct {
	document
	OK         bool              `json:"ok"`
	Mechanisms []selftest.Result `json:"mechanisms"`
	Code       string            `json:"code,omitempty"`
	Hint       string            `json:"hint,omitempty"`
}

func newSelftest(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "selftest [flags] [DIR]",
		Short: "attack the guard, on this machine",
		Example: `  postern selftest
  postern selftest --json .`,
		Long: `what serve is made of is attacked in a folder of its own, made in DIR or where
the system keeps temporary files, and removed at the end. one line a mechanism:

  held      every attack was refused
  weaker    it holds in another way here, and guarantees less, as the line says
  MISSING   an attack got through
  untested  nothing can be said: an attack didn't work without the guard either

each attack is first made without the guard, on the same files, and must succeed
there: else it shows nothing

exit 0 when all hold, weaker ones too; 6 when one is missing or untested`,
		DisableFlagsInUseLine: true,
		Args:                  atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			var o selftest.Options
			if len(args) == 1 {
				o.Dir = args[0]
			}
			return runSelftest(cmd.Context(), env, o, asJSON)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// atMostOne wants no folder or one.
func atMostOne(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return usage(cmd.CommandPath(), "one argument too many: "+args[1], "")
	case len(args) == 1 && args[0] == "":
		return usage(cmd.CommandPath(), "the name of a folder is empty", "write . for this folder")
	}
	return nil
}

func runSelftest(ctx context.Context, env *Env, o selftest.Options, asJSON bool) error {
	o.ReadOnly = func(d enforce.Decider) enforce.Decider { return readOnly{d} }
	report, err := selftest.Run(ctx, o)
	if err != nil {
		return err
	}
	return tellSelftest(env, report, asJSON)
}

// tellSelftest prints the report; its error is what does not hold.
func tellSelftest(env *Env, report selftest.Report, asJSON bool) error {
	out := selftestJSON{document: newDocument("selftest"), Mechanisms: report.Results}
	problem := report.Err()
	if f := fault.As(problem); f != nil {
		out.Code, out.Hint = f.Code.String(), f.Next()
	}
	out.OK = problem == nil
	err := answer(env.Out, asJSON, out, func(w io.Writer) { printSelftest(w, report) })
	switch {
	case err != nil || problem == nil:
		return err
	case asJSON:
		return exitCode(fault.SandboxUnavailable.Exit())
	}
	return problem
}

func printSelftest(w io.Writer, report selftest.Report) {
	for _, r := range report.Results {
		fmt.Fprintf(w, "%-8s  %-23s  %3d tried: %s\n", r.Status, r.Name, r.Tried, textsafe.Clean(r.About))
	}
	if report.Err() != nil {
		return
	}
	fmt.Fprintf(w, "all %d mechanisms hold", len(report.Results))
	if weaker := report.Count(selftest.Weaker); weaker > 0 {
		fmt.Fprintf(w, ", %d of them weaker than elsewhere", weaker)
	}
	fmt.Fprintln(w)
}
