// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/grant"
)

// otherJSON is a request beside the one that was asked about, which is decided
// otherwise.
type otherJSON struct {
	Action   string   `json:"action"`
	Agent    string   `json:"agent,omitempty"`
	Without  string   `json:"without,omitempty"` // a key of the policy
	Decision string   `json:"decision"`
	Because  ruleJSON `json:"because"`

	why, reason string
}

// text is what check says of it.
func (r *otherJSON) text() string {
	return fmt.Sprintf("but: %s: %s\nbecause: %s", r.why, r.Decision, textsafe.Clean(r.reason))
}

// maxAgents is of how many agents check tells what is decided for them: a policy of a
// project can name any number, and each may mean a walk.
const maxAgents = 20

// others are the requests that whoever asks may mean as well, where they are decided
// otherwise: a person asks about a name, and it is an agent that writes it. more is how
// many agents were left out.
func (j *judge) others(ctx context.Context, o *options, names []string) (all []otherJSON, more int, err error) {
	tell := func(k *judge, than core.Decision, r otherJSON) {
		if err != nil {
			return
		}
		if err = k.find(ctx, o, names[0], names[1:]...); err == nil && k.verdict.Decision != than {
			why := k.verdict.Reason
			r.Action, r.Decision, r.Because, r.reason = k.request.Action.String(), k.verdict.Decision.String(), newRule(why), why.String()
			all = append(all, r)
		}
	}
	request, usual := j.request, j.verdict.Decision // as the doors would ask
	if action, why := j.really(); why != "" {
		request.Action = action
		k := judge{w: j.w, request: request}
		tell(&k, usual, otherJSON{why: why})
		usual = k.verdict.Decision
	}
	actions := []core.Action{request.Action}
	if len(names) > 1 { // a move also makes and may replace the other name
		actions = append(actions, core.FSWrite, core.FSCreate)
	}
	agents := j.agents(actions)
	if more = len(agents) - maxAgents; more > 0 {
		agents = agents[:maxAgents]
	}
	for _, agent := range agents {
		of, k := *o, judge{w: j.w, request: request}
		of.agent = agent
		k.request.Subject = of.subject(request.Subject.Source)
		tell(&k, usual, otherJSON{Agent: agent, why: "for " + textsafe.Word(agent)})
	}
	if parts := j.w.live.Current().Parts(); len(parts.Lift) > 0 {
		parts.Lift = nil
		unlifted, bad := policy.Compile(parts.Config)
		if bad != nil {
			return nil, 0, bad
		}
		tell(&judge{w: j.w, request: request, other: unlifted}, usual, otherJSON{Without: "allow_sensitive", why: "without allow_sensitive"})
	}
	return all, max(0, more), errors.Join(err, ctx.Err())
}

// really is the action that the doors ask for instead, and why, "" for the one that was
// asked about.
func (j *judge) really() (a core.Action, why string) {
	switch {
	case j.request.Action == core.FSWrite && j.new:
		return core.FSCreate, "nothing has this name yet, so writing it is fs.create"
	case j.request.Action == core.FSCreate && j.file:
		return core.FSWrite, "a file has this name, so writing it is fs.write"
	}
	return a, ""
}

// warnPaused says that nothing is asked for the agent: what the policy asks about is
// refused.
func (w *workspace) warnPaused(env *Env, agent string) {
	if agent != "" && slices.Contains(grant.Open(w.stateDir, grant.Options{}).PausedAgents(), agent) {
		fmt.Fprintf(env.Err, "warning: %s is paused, and what asks is refused: %s\n", agentName(agent), plain(grant.ResumeCommand(agent)))
	}
}

// agents are those that have rules of their own for one of the actions, where none is
// asked about.
func (j *judge) agents(actions []core.Action) (names []string) {
	if j.request.Subject.Agent != "" {
		return nil
	}
	for _, agent := range j.w.live.Agents() {
		if slices.ContainsFunc(actions, func(a core.Action) bool { return j.w.live.Ruled(agent, a) }) {
			names = append(names, agent)
		}
	}
	return names
}
