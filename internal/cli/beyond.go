// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/doctor"
)

// beyond is what a policy that is valid here does elsewhere, and for nobody.
type beyond struct {
	Elsewhere []doctor.Broken `json:"elsewhere"` // attached folders whose servers would not start
	Unseen    int             `json:"elsewhere_not_seen"`
	Unmet     []doctor.Unmet  `json:"unmet_agents"` // that have rules
}

// lookBeyond is about the policy that o loaded as cfg. The own one is what holds
// elsewhere, whatever was given here.
func lookBeyond(ctx context.Context, env *Env, o config.Options, cfg *config.Config) beyond {
	world := attach.World{Home: homeOf(env), Project: o.WorkDir, GOOS: runtime.GOOS, Getenv: env.Getenv, LookPath: exec.LookPath}
	if len(cfg.Roots) > 0 {
		world.Project = cfg.Roots[0].Path
	}
	entries, _ := attach.Attached(world) // what can't be read is told by status
	b := beyond{Elsewhere: []doctor.Broken{}, Unmet: append([]doctor.Unmet{}, doctor.UnmetAgents(ctx, cfg, o.StateDir, entries)...)}
	o.PolicyFile = ""
	broken, unseen := doctor.Elsewhere(ctx, o, cfg)
	b.Elsewhere, b.Unseen = append(b.Elsewhere, broken...), unseen
	return b
}

// lines tell it, each with its next step.
func (b beyond) lines() (all []string) {
	for _, e := range b.Elsewhere {
		all = append(all, plain(e.String()))
	}
	if b.Unseen > 0 {
		all = append(all, fmt.Sprintf("%s attached elsewhere not looked at; next: postern test there", counted(b.Unseen, "folder")))
	}
	for _, u := range b.Unmet {
		all = append(all, plain(u.File+": "+u.String()))
	}
	return all
}
