// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/grant"
)

type pauseJSON struct {
	document
	Agent  string `json:"agent"`
	Paused bool   `json:"paused"`
}

func newPause(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pause [flags] AGENT",
		Short: "refuse everything of an agent that asks, until it is resumed",
		Example: `  postern pause claude-code
  postern pause -               the agents of doors that name none`,
		Long: `nobody is asked for the agent any more, and no yes of it is used: what the
policy asks about is refused. what the policy allows goes on; deny that in the
policy, or end the agent. three noes of a person in a row do the same`,
		DisableFlagsInUseLine: true,
		Args:                  exactly("AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return pause(cmd.Context(), env, args[0], true, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func pause(ctx context.Context, env *Env, agent string, on, asJSON bool) error {
	return deciding(env, true, func(d *prompt.Desk) error { //nolint:contextcheck // an interrupt does not keep a record from the disk
		s := d.Store
		do, verb := s.Pause, "pause"
		if !on {
			do, verb = s.Resume, "resume"
		}
		asked := askers(s) // a pause empties the desk
		out := pauseJSON{newDocument(verb), typedAgent(agent), on}
		if err := do(ctx, out.Agent, byCommand); err != nil {
			return named(err, verb)
		}
		if on {
			unseen(ctx, env, out.Agent, asked)
			fmt.Fprintln(env.Err, "to have it asked for again:", textsafe.Clean(grant.ResumeCommand(out.Agent)))
		}
		return answer(env.Out, asJSON, out, func(w io.Writer) { fmt.Fprintln(w, verb+"d", agentName(out.Agent)) })
	})
}

// unseen warns of a name that nothing here knows, which is paused all the same:
// it may be misspelled, and may be an agent that hasn't come yet.
func unseen(ctx context.Context, env *Env, agent string, asked []string) {
	known := append(configured(ctx, env), asked...)
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	slices.Sort(known)
	known = slices.Compact(known)
	if agent == "" || slices.Contains(known, agent) {
		return
	}
	names := "none"
	if len(known) > 0 {
		var drawn []string
		for _, name := range known {
			drawn = append(drawn, textsafe.Name(name))
		}
		names = strings.Join(drawn, ", ")
	}
	verb := "are"
	if len(known) < 2 {
		verb = "is"
	}
	fmt.Fprintf(env.Err, "no agent of this name was seen here: %s %s known\n", names, verb)
}

// configured are the names that the policy and the clients attached here have.
func configured(ctx context.Context, env *Env) (all []string) {
	w, err := new(options).loadHere(env)
	if err != nil {
		return nil // a policy that isn't valid names nobody
	}
	all = append(all, w.live.Current().Agents...)
	if w.open(env) != nil {
		return all // the folders are not there; the name is paused all the same
	}
	for _, a := range w.surroundings(ctx, env).Agents {
		all = append(all, a.Client)
	}
	return all
}

// askers are the agents whose questions and answers there are.
func askers(store *grant.Store) (all []string) {
	for _, g := range store.Grants() {
		all = append(all, g.For.Agent)
	}
	for _, q := range store.Pending() {
		all = append(all, q.For.Agent)
	}
	return all
}
