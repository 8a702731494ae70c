// SPDX-License-Identifier: Apache-2.0

// Package cli is the command: one file a verb. A verb reads its flags, calls
// the package that does the work, and prints. stdout is the answer or protocol
// bytes, stderr everything said about it. There is no colour.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/prompt"
)

// Env is what a command sees of the world.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Getwd    func() (string, error)
	// Terminal opens the one that the person is at; nil where there is none.
	Terminal func() (*prompt.Terminal, error)
}

// System is the process's own environment.
func System() Env {
	return Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Getwd: os.Getwd, Terminal: prompt.Open}
}

// Main runs one command line and returns its exit code. An interrupt ends it
// in order: what is buffered is written first. A second one ends it at once.
func Main(args []string, env Env) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, args, env)
}

func run(ctx context.Context, args []string, env Env) int {
	out := &stdout{to: env.Out}
	env.Out = out
	root := newRoot(&env) //nolint:contextcheck // a verb gets its context from ExecuteContext
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := out.ended(root.ExecuteContext(ctx))
	var code exitCode
	var f *fault.Error
	switch {
	case err == nil:
		return fault.ExitOK
	case errors.As(err, &code):
		return int(code)
	case out.unread(err):
		return fault.ExitFailed
	case ctx.Err() != nil && !errors.As(err, &f):
		fmt.Fprintln(env.Err, "interrupted")
		return fault.ExitInterrupted
	}
	return report(env.Err, err, wantsJSON(args))
}

// exitCode ends a command whose answer is already printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit %d", int(c)) }

// wantsJSON looks by itself, since the flags may be what is wrong.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "postern",
		Short: "the guarded gate between AI agents and your machine",
		Long: `one decision is made before an agent, a tool or an MCP server reads, writes or
deletes; the operation is then performed by handle, and recorded`,
		Example: `  postern init                         attach the agents here to this folder
  postern up                           guard it, and show each decision
  postern check fs.write .git/config   would it be allowed, and why
  postern explain                      why the newest refusal was one
  postern status                       what is guarded, and what isn't
  postern log                          what was decided and done, and verify it`,
		Version:                    buildVersion(),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs, // so that an unknown verb comes to RunE
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.SetVersionTemplate("postern {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if before := cmd.Flags().Args(); !cmd.HasParent() && len(before) > 0 { // its flags would be those of a verb
			return unknownVerb(cmd, before[0])
		}
		return usage(cmd.CommandPath(), err.Error(), "")
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd) })
	root.SetHelpCommand(newHelp())
	root.AddCommand(verbs(env)...)
	return root
}

// verbs are all that there are, in the order of what a person does.
func verbs(env *Env) []*cobra.Command {
	return []*cobra.Command{
		newInit(env),
		newServe(env),
		newUp(env),
		newCheck(env),
		newExplain(env),
		newTest(env),
		newSchema(env),
		newPaths(env),
		newMan(env),
		newStatus(env),
		newPage(env),
		newPending(env),
		newApprove(env),
		newDeny(env),
		newGrants(env),
		newRevoke(env),
		newPause(env),
		newResume(env),
		newSelftest(env),
		newDoctor(env),
		newLog(env),
		newUndo(env),
		newVersion(env),
		newCompletion(env),
	}
}

// exactly wants these arguments, and names what is missing or too much.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > len(names):
			return usage(cmd.CommandPath(), "one argument too many: "+args[len(names)], "")
		case len(args) < len(names):
			return usage(cmd.CommandPath(), names[len(args)]+" is missing", "")
		}
		return nil
	}
}

// usage is the error of a command line that says nothing that can be done. The
// next step is the help of the verb unless one is given.
func usage(op, because, next string) error {
	if next == "" {
		next = op + " --help"
	}
	return &fault.Error{Code: fault.RequestInvalid, Op: op, Rule: because, Hint: next}
}

func unknownVerb(cmd *cobra.Command, verb string) error {
	next := ""
	if near := cmd.Root().SuggestionsFor(verb); len(near) > 0 {
		next = "postern " + near[0] + " --help"
	}
	return usage("postern", "there is no verb "+verb, next)
}
