// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/state/audit/records"
	"github.com/postern-gate/postern/internal/state/grant"
)

type pauseJSON struct {
	document
	Agent  string `json:"agent"`
	Paused bool   `json:"paused"`
}

func newPause(env *Env) *cobra.Command {
	var asJSON, yes bool
	cmd := &cobra.Command{
		Use:   "pause [flags] AGENT",
		Short: "refuse everything of an agent that asks, until it is resumed",
		Example: `  postern pause claude-code
  postern pause -               the agents of doors that name none`,
		Long: `nobody is asked for the agent any more, and no yes of it is used: what the
policy asks about is refused. what the policy allows goes on; deny that in the
policy, or end the agent. three noes of a person in a row do the same

a name that nothing here knows may be misspelled: it is paused with --yes only`,
		DisableFlagsInUseLine: true,
		Args:                  exactly("AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				if err := unseen(cmd.Context(), env, typedAgent(args[0])); err != nil {
					return err
				}
			}
			return pause(cmd.Context(), env, args[0], true, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "pause an agent that was never seen here, too")
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
		out := pauseJSON{newDocument(verb), typedAgent(agent), on}
		waiting := 0
		for _, q := range s.Pending() {
			if q.For.Agent == out.Agent {
				waiting++
			}
		}
		if err := do(ctx, out.Agent, byCommand); err != nil {
			return named(err, verb)
		}
		if on && waiting > 0 {
			fmt.Fprintln(env.Err, "over, unanswered:", counted(waiting, "question"))
		}
		if on {
			fmt.Fprintln(env.Err, "to let it ask again:", textsafe.Clean(grant.ResumeCommand(out.Agent)))
		}
		return answer(env.Out, asJSON, out, func(w io.Writer) { fmt.Fprintln(w, verb+"d", agentName(out.Agent)) })
	})
}

// unseen refuses a name that nothing here knows: it may be misspelled, and then
// the agent that is meant would go on.
func unseen(ctx context.Context, env *Env, agent string) error {
	known := configured(ctx, env)
	if store, err := lookAtGrants(env); err == nil {
		known = append(append(known, askers(store)...), store.PausedAgents()...)
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	slices.Sort(known)
	known = slices.Compact(known)
	if agent == "" || slices.Contains(known, agent) || recorded(ctx, env, agent) {
		return nil
	}
	why := "no agent of this name was seen here, and no other"
	if len(known) > 0 {
		why = "no agent of this name was seen here, only " + strings.Join(known, ", ")
	}
	return &fault.Error{
		Code: fault.RequestInvalid, Op: "pause", Resource: agent, Rule: why,
		Hint: "postern pause with one of these, or with --yes to pause it before it comes",
	}
}

// recorded reports whether the agent is in the log.
func recorded(ctx context.Context, env *Env, agent string) bool {
	s, err := logExplained(env)
	if err != nil {
		return false
	}
	filter := records.Filter{Agent: agent}
	seen := false
	r := records.NewReader(s.audit(), records.Cursor{})
	defer r.Close()
	_ = r.Each(ctx, func(e records.Entry) error { // what was read before an error counts
		if seen = filter.Match(&e); seen {
			return errEnough
		}
		return nil
	})
	return seen
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
