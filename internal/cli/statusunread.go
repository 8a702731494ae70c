// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/doctor"
	"github.com/postern-gate/postern/internal/state/grant"
)

// statusUnread prints what can be told beside a policy that is not valid: that is
// told as an error, after it. What can't be found out is left out.
func statusUnread(ctx context.Context, env *Env, dirs []string, problem error) {
	line := func(what, text string) { fmt.Fprintf(env.Out, "%-9s %s\n", what, text) }
	line("policy", "not valid: "+textsafe.Clean(whereInvalid(problem)).String()+"; no server starts with it, and servers that run keep the last good policy")
	stateDir, err1 := enforce.LocateState(env.Getenv)
	here, err2 := env.Getwd()
	self, err3 := os.Executable()
	if err1 != nil || err2 != nil || err3 != nil {
		return
	}
	_, err := os.Stat(stateDir)
	made, usable := err == nil, enforce.CheckState(stateDir)
	switch state := textsafe.Name(stateDir); {
	case usable != nil:
		line("state", state+": "+textsafe.Clean(fault.As(usable).Because()).String())
	case !made:
		line("state", state+" (not made yet)")
	default:
		line("state", state)
		line("log", logOf(stateDir).String())
		for _, a := range grant.Open(stateDir, grant.Options{}).PausedAgents() {
			line("paused", agentName(a)+"; "+plain(grant.ResumeCommand(a)))
		}
	}
	world := attach.World{Home: homeOf(env), Project: here, GOOS: runtime.GOOS, Getenv: env.Getenv, LookPath: exec.LookPath}
	if len(dirs) == 1 {
		if world.Project = dirs[0]; !filepath.IsAbs(world.Project) {
			world.Project = filepath.Join(here, world.Project)
		}
	}
	world.Project = resolved(world.Project)
	trust := doctor.NewTrust(self, stateDir, here, world, nil)
	trust.Unknown = true // which folders are served isn't known
	var s surroundings
	s.clients(trust)
	if usable == nil {
		s.served(ctx, stateDir)
	}
	s.print(line)
}
