// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

// agentTime bounds how long the log is looked through for names.
const agentTime = time.Second

// Unmet is an agent that a person's own policy has rules for, and that is none as
// far as is known. Name and Known may hold anybody's text: draw them safely.
type Unmet struct {
	File  string   `json:"file"`
	Name  string   `json:"name"`
	Known []string `json:"known"` // those that are attached, else the clients that init knows
}

// String is one line about it, with the next step.
func (u Unmet) String() string {
	return "agents: " + attach.Brief(u.Name) + ": no attached client and no record of the log has this name, so its rules hold for nobody; known: " +
		strings.Join(u.Known, ", ") + "; postern log shows the name of each call"
}

// UnmetAgents are the agents with rules that neither init, nor an entry of a
// client, nor the log knows. A name that a client may have is known; a project's
// file may have rules for agents of others. What there is no time to look for is known.
func UnmetAgents(ctx context.Context, cfg *config.Config, stateDir string, entries []attach.Attachment) (unmet []Unmet) {
	ctx, stop := context.WithTimeout(ctx, agentTime)
	defer stop()
	var here []string
	for _, a := range entries {
		if name := a.Agent(); name != "" && !slices.Contains(here, attach.Brief(name)) && len(here) < mostEntries {
			here = append(here, attach.Brief(name))
		}
	}
	known := slices.Clone(here)
	if slices.Sort(known); known == nil {
		known = attach.IDs()
	}
	parts := cfg.Parts()
	for i, l := range parts.Layers {
		for name := range l.Agents {
			if !l.Tighten && !slices.Contains(attach.IDs(), name) && !slices.ContainsFunc(entries, func(a attach.Attachment) bool { return a.Agent() == name }) && !met(ctx, stateDir, name) {
				unmet = append(unmet, Unmet{parts.Files[i], name, known})
			}
		}
	}
	slices.SortFunc(unmet, func(a, b Unmet) int { return strings.Compare(a.File+"\x00"+a.Name, b.File+"\x00"+b.Name) })
	return unmet
}

// met reports whether the log has a record of the agent, or can't be asked.
func met(ctx context.Context, stateDir, name string) bool {
	_, found, err := records.Newest(ctx, filepath.Join(stateDir, "audit"), &records.Filter{Agent: name}, 0)
	return found || err != nil || ctx.Err() != nil
}

// checkAgents finds rules for an agent that nobody is.
func checkAgents(ctx context.Context, l *look) []Result {
	if l.cfg == nil {
		return one(l.noPolicy())
	}
	var all []Result
	for _, u := range UnmetAgents(ctx, l.cfg, l.Policy.StateDir, l.entries) {
		all = append(all, warn("correct the name in the policy, or let it be until that agent calls", "%s: %s", u.File, u))
	}
	if all == nil {
		return one(pass("no rule is for an agent that nobody is"))
	}
	return all
}
