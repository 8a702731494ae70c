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
	"github.com/postern-gate/postern/internal/mcpserver"
)

func newServe(env *Env) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve [flags] [DIR...]",
		Short: "serve folders to an MCP client, on stdio or HTTP",
		Example: `  postern serve .
  postern serve --read-only ~/notes ~/papers
  postern serve --agent codex --policy team.yaml .
  postern serve --http auto .`,
		Long: `a filesystem server for MCP clients that takes the place of the reference
server: the same 14 tools, and four more. nothing beneath it leaves the
folders given, every call is decided by the policy and recorded. without DIR
the policy must name roots

what comes from files is marked as data for the model, by an envelope around
it; --envelope=off gives the reference server's plain text, scrubbed

a change of the policy is in force within a second; one that is not valid is
reported here, and the last good policy stays. it ends with its input, or when
interrupted

--http serves any number of clients at http://127.0.0.1:PORT/mcp instead. who
sends the token may use it; port and token of the same folders stay the same`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return o.serve(cmd.Context(), env, dirs)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	agentFlag(cmd, &o.options)
	policyFlag(cmd, &o.options)
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "nothing can be changed, and no tool that would is offered")
	textFlag(cmd, &o.envelope, "envelope", "on|off", "mark text from files as data (on, unless the policy says off)", "on", "off")
	textFlag(cmd, &o.http, "http", "ADDR", "serve on HTTP: 127.0.0.1:PORT, PORT, or auto")
	textFlag(cmd, &o.accept, "accept", "expose", "let --http listen where other machines reach it", "expose")
	cmd.Flags().BoolVar(&o.json, "json", false, "with --http, print the endpoint as one JSON document")
	return cmd
}

// serveOptions are the flags of serve.
type serveOptions struct {
	options
	envelope string
	http     string
	accept   string
	json     bool
	up       bool // as postern up: entries before the endpoint, decisions after it
}

// terminal reports whether a person types there rather than a client.
func terminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (o *serveOptions) serve(ctx context.Context, env *Env, dirs []string) (err error) {
	// A client that went away is an error of the write, not the end of this
	// process: what is buffered for the log is still written.
	signal.Ignore(syscall.SIGPIPE)
	address, err := o.address()
	if err != nil {
		return err
	}
	w, err := o.load(env, dirs)
	if err != nil {
		return err
	}
	// The state comes before the roots, so that they know it by identity too.
	state, err := enforce.OpenState(w.stateDir, stateOptions(w.live.Current())) //nolint:contextcheck // an older state directory is brought up to date whole
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
	w.warnWide(env)
	asking := enforce.ApprovalOptions{Times: w.askTimes, Policy: w.live.Version, Folders: w.folders(), Door: w.door}
	approvals := state.Approvals(asking)                         //nolint:contextcheck // it ends with Close
	defer func() { err = errors.Join(err, approvals.Close()) }() //nolint:contextcheck // an interrupt ends the session all the same
	server, err := o.server(env, w, state, approvals)
	if err != nil {
		return err
	}
	defer lookAfter(ctx, env, state)()
	if o.http != "" {
		return o.serveHTTP(ctx, env, w, state, server, address)
	}
	if terminal(env.In) {
		fmt.Fprintln(env.Err, "waiting for an MCP client on stdin: put this command into a client's configuration; ctrl-c ends it")
	}
	return connection(ctx, server.ServeStdio(ctx, env.In, env.Out))
}

// server is the table of tools, the same on every transport.
func (o *serveOptions) server(env *Env, w *workspace, state *enforce.State, approver enforce.Approver) (*mcpserver.Server, error) {
	s := w.live.Current().Settings
	gate := o.gate(w, state, state, approver)
	gate.Subject = o.subject(o.source())
	return fsserver.New(fsserver.Options{
		Gate: gate, Bare: bare(o.envelope, s.Envelope), ReadOnly: o.readOnly, Off: s.ToolsOff,
		Answer: s.Limits.Answer, WholeRead: s.Limits.WholeRead, WalkEntries: s.Limits.WalkEntries,
		CallTime: s.Limits.Call, Version: buildVersion(), Log: slog.New(slog.NewTextHandler(env.Err, nil)),
	})
}

// lookAfter finds out, while the server already answers, what became of the
// changes of processes that were killed. A log that can't be used is said
// elsewhere, and the next start looks again.
func lookAfter(ctx context.Context, env *Env, state *enforce.State) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := state.Recover(ctx); fault.CodeOf(err) == fault.AuditBroken || fault.CodeOf(err) == fault.AuditTruncated {
			report(env.Err, err, false)
		}
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
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(err, mcpserver.ErrDrain): // an interrupt is how this ends
		return nil
	case err == nil || ctx.Err() != nil:
		return err
	}
	return &fault.Error{Code: fault.IOFailed, Op: "serve", Rule: "the connection to the client broke", Hint: "start it again", Err: err}
}
