// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/core/textsafe"
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

// others are the requests that whoever asks may mean as well, where they are decided
// otherwise: a person asks about a name, and it is an agent that writes it.
func (j *judge) others(ctx context.Context, o *options, names []string) (all []otherJSON, err error) {
	try := func(k judge, r otherJSON) {
		if err != nil {
			return
		}
		if err = k.find(ctx, o, names[0], names[1:]...); err == nil && k.verdict.Decision != j.verdict.Decision {
			why := k.verdict.Reason
			r.Action, r.Decision, r.Because, r.reason = k.request.Action.String(), k.verdict.Decision.String(), newRule(why), why.String()
			all = append(all, r)
		}
	}
	k := judge{w: j.w, request: j.request}
	switch {
	case j.request.Action == core.FSWrite && j.new:
		k.request.Action = core.FSCreate
		try(k, otherJSON{why: "nothing has this name yet, so writing it is fs.create"})
	case j.request.Action == core.FSCreate && j.file:
		k.request.Action = core.FSWrite
		try(k, otherJSON{why: "a file has this name, so writing it is fs.write"})
	}
	for _, agent := range j.agents() {
		of := *o
		of.agent = agent
		k := judge{w: j.w, request: j.request}
		k.request.Subject = of.subject(j.request.Subject.Source)
		try(k, otherJSON{Agent: agent, why: "for " + textsafe.Name(agent)})
	}
	if parts := j.w.live.Current().Parts(); len(parts.Lift) > 0 {
		parts.Lift = nil
		unlifted, bad := policy.Compile(parts.Config)
		if bad != nil {
			return nil, bad
		}
		try(judge{w: j.w, request: j.request, other: unlifted}, otherJSON{Without: "allow_sensitive", why: "without allow_sensitive"})
	}
	return all, err
}

// agents are those that have rules of their own for the action, where none is asked
// about.
func (j *judge) agents() (names []string) {
	if j.request.Subject.Agent != "" {
		return nil
	}
	for _, agent := range j.w.live.Agents() {
		if j.w.live.Ruled(agent, j.request.Action) {
			names = append(names, agent)
		}
	}
	return names
}
