// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/postern-gate/postern/internal/state/grant"
)

// checkPaused: an agent that is paused is refused all that the policy asks about,
// until somebody remembers.
func checkPaused(_ context.Context, l *look) []Result {
	if !l.made() {
		return l.notMade()
	}
	var found []Result
	for _, agent := range grant.Open(l.Policy.StateDir, grant.Options{}).PausedAgents() {
		name := agent
		if name == "" {
			name = "every agent without a name"
		}
		found = append(found, warn(grant.ResumeCommand(agent), "%s is paused: what the policy asks about is refused", name))
	}
	if found == nil {
		return one(pass("no agent is paused"))
	}
	return found
}
