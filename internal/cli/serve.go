// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver"
)

func newServe(env *Env) *cobra.Command {
	var o options
	var envelope string
	cmd := &cobra.Command{
		Use:   "serve [flags] [DIR...]",
		Short: "serve folders to an MCP client, on stdio",
		Example: `  postern serve .
  postern serve --read-only ~/notes ~/papers
  postern serve --agent codex --policy team.yaml .`,
		Long: `a filesystem server for MCP clients that takes the place of the reference
server: the same 14 tools, and three more. nothing beneath it leaves the
folders given, every call is decided by the policy and recorded. without DIR
the policy must name roots

what comes from files is marked as data for the model, by an envelope around
it; --envelope=off gives the reference server's plain text, scrubbed

a change of the policy is in force within a second; one that is not valid is
reported here, and the last good policy stays. it ends with its input, or when
interrupted`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return o.serve(cmd.Context(), env, dirs, envelope)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	agentFlag(cmd, &o)
	policyFlag(cmd, &o)
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "nothing can be changed, and no tool that would is offered")
	textFlag(cmd, &envelope, "envelope", "on|off", "mark text from files as data (on, unless the policy says off)", "on", "off")
	return cmd
}

// terminal reports whether a person types there rather than a client.
func terminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (o *options) serve(ctx context.Context, env *Env, dirs []string, envelope string) (err error) {
	// A client that went away is an error of the write, not the end of this
	// process: what is buffered for the log is still written.
	signal.Ignore(syscall.SIGPIPE)
	w, err := o.load(env, dirs)
	if err != nil {
		return err
	}
	// The state comes before the roots, so that they know it by identity too.
	state, err := enforce.OpenState(w.stateDir, stateOptions(w.live.Current()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }() //nolint:contextcheck // an interrupt does not keep it from the disk
	if err := w.open(env); err != nil {
		return err
	}
	if err := state.Problem(); err != nil {
		f := *fault.As(err)
		f.Op = "record"
		fmt.Fprintln(env.Err, "nothing can be recorded, so every change is refused\n"+explained(&f))
	}
	o.unknownAgent(env, w.live.Current())
	s := w.live.Current().Settings
	server, err := fsserver.New(fsserver.Options{
		Gate: o.gate(w, state, state), Bare: bare(envelope, s.Envelope), ReadOnly: o.readOnly, Off: s.ToolsOff,
		Answer: s.Limits.Answer, WholeRead: s.Limits.WholeRead, WalkEntries: s.Limits.WalkEntries,
		CallTime: s.Limits.Call, Version: buildVersion(), Log: slog.New(slog.NewTextHandler(env.Err, nil)),
	})
	if err != nil {
		return err
	}
	defer lookAfter(ctx, state)()
	if terminal(env.In) {
		fmt.Fprintln(env.Err, "waiting for an MCP client on stdin: put this command into a client's configuration; ctrl-c ends it")
	}
	return connection(ctx, server.ServeStdio(ctx, env.In, env.Out))
}

// lookAfter finds out, while the server already answers, what became of the
// changes of processes that were killed. A log that can't be used is said
// elsewhere, and the next start looks again.
func lookAfter(ctx context.Context, state *enforce.State) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = state.Recover(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// bare: the flag says more than the policy.
func bare(flag string, policy bool) bool {
	if flag == "" {
		return !policy
	}
	return flag == "off"
}

// connection is how serving ended: by an interrupt, or because the client's
// side broke.
func connection(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &fault.Error{Code: fault.IOFailed, Op: "serve", Rule: "the connection to the client broke", Hint: "start it again", Err: err}
}
