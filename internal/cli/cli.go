// SPDX-License-Identifier: Apache-2.0

// Package cli is the command: one file a verb. A verb reads its flags, calls
// the package that does the work, and prints. stdout is the answer or protocol
// bytes, stderr everything said about it.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
)

// Env is what a command sees of the world.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Getwd    func() (string, error)
}

// System is the process's own environment.
func System() Env {
	return Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Getwd: os.Getwd}
}

// Main runs one command line and returns its exit code. An interrupt ends it
// in order: what is buffered is written first.
func Main(args []string, env Env) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(&env)
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return fault.ExitOK
	}
	var code exitCode
	if errors.As(err, &code) {
		return int(code)
	}
	asJSON, _ := cmd.Flags().GetBool("json")
	return report(env.Err, err, asJSON)
}

// exitCode ends a command whose answer is already printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit %d", int(c)) }

// report prints an error: the three lines of a fault, or one line and the help
// command for a usage error.
func report(w io.Writer, err error, asJSON bool) int {
	var f *fault.Error
	if !errors.As(err, &f) {
		f = &fault.Error{Code: fault.RequestInvalid, Op: "postern", Rule: err.Error(), Hint: "postern help"}
	}
	if asJSON {
		_ = json.NewEncoder(w).Encode(struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Hint    string `json:"hint"`
			Exit    int    `json:"exit"`
		}{f.Code.String(), f.Error(), f.Next(), f.Code.Exit()})
	} else {
		fmt.Fprintln(w, f.Lines())
	}
	return f.Code.Exit()
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "postern",
		Short: "The guarded gate between AI agents and your machine",
		Long: `postern makes one decision before an agent, a tool or an MCP server reads,
writes or deletes, performs the operation by handle, and records it.`,
		Example: `  postern serve .                        serve this folder to an MCP client, on stdio
  postern serve --read-only ~/notes      nothing can be changed
  postern check fs.write .git/config     would it be allowed, and why
  postern status                         roots, policy and what is enforced`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Args:              cobra.NoArgs,
	}
	root.AddCommand(newServe(env), newCheck(env), newStatus(env), newVersion(env))
	return root
}

// answer prints v as one JSON document, or text.
func answer(w io.Writer, asJSON bool, v any, text func(io.Writer)) error {
	if !asJSON {
		text(w)
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// document is the head of every JSON answer. Fields are only ever added.
type document struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
}

func newDocument(verb string) document { return document{"postern/" + verb, 1} }
