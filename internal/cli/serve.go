// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver"
)

func newServe(env *Env) *cobra.Command {
	var o options
	var envelope string
	cmd := &cobra.Command{
		Use:   "serve [DIR...]",
		Short: "Serve folders to an MCP client, on stdio",
		Long: `serve is a filesystem server for MCP clients, a drop-in for the reference
server's 14 tools. Nothing beneath it leaves the folders given; every call is
decided by the policy and recorded. Without DIR the policy must name roots.

What comes from files is wrapped in an envelope that tells a model that it is
data. --envelope=off gives the reference server's plain text, scrubbed.`,
		Example: `  postern serve .
  postern serve --read-only ~/notes ~/papers
  postern serve --agent codex --policy team.yaml .`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if envelope != "on" && envelope != "off" && envelope != "" {
				return &fault.Error{Code: fault.RequestInvalid, Op: "serve", Rule: "--envelope is on or off"}
			}
			return o.serve(cmd, env, dirs, envelope)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "offer only the tools that change nothing")
	cmd.Flags().StringVar(&envelope, "envelope", "", "`on|off`: mark text from files as data (default from the policy: on)")
	return cmd
}

// openState comes before the roots, so that they know the state directory by
// its identity too.
func openState(env *Env) (*enforce.State, error) {
	where, err := enforce.LocateState(env.Getenv)
	if err != nil {
		return nil, err
	}
	return enforce.OpenState(where)
}

func (o *options) serve(cmd *cobra.Command, env *Env, dirs []string, envelope string) (err error) {
	state, err := openState(env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	w, err := o.open(env, dirs)
	if err != nil {
		return err
	}
	cfg := w.live.Current()
	s := cfg.Settings
	bare := !s.Envelope
	if envelope != "" {
		bare = envelope == "off"
	}
	server, err := fsserver.New(fsserver.Options{
		Gate: w.gate(o.subject("serve"), state), Bare: bare, ReadOnly: o.readOnly, Off: s.ToolsOff,
		Answer: s.Limits.Answer, WholeRead: s.Limits.WholeRead, WalkEntries: s.Limits.WalkEntries,
		CallTime: s.Limits.Call, Version: buildVersion(), Log: slog.New(slog.NewTextHandler(env.Err, nil)),
	})
	if err != nil {
		return err
	}
	for _, r := range cfg.Roots {
		if r.Path == "/" {
			fmt.Fprintf(env.Err, "warning: the root %s is /, the whole machine\n", r.Name)
		}
	}
	return server.ServeStdio(cmd.Context(), env.In, env.Out)
}
