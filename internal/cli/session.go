// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
)

// options are the flags that every verb about a workspace has.
type options struct {
	agent    string
	policy   string
	readOnly bool
}

func (o *options) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.agent, "agent", "", "`NAME` of the agent that this line is installed for")
	cmd.Flags().StringVar(&o.policy, "policy", "", "`FILE` in the place of your own policy")
}

// workspace is what a verb works on: the policy and the roots that it guards.
type workspace struct {
	*pathguard.Workspace
	live     *config.Live
	stateDir string
}

// open loads the policy and opens the roots. Nothing is served or answered
// before all of it is known to be valid.
func (o *options) open(env *Env, dirs []string) (*workspace, error) {
	where, err := enforce.LocateState(env.Getenv)
	if err != nil {
		return nil, err
	}
	here, err := env.Getwd()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	live, err := config.OpenLive(config.Options{
		Dirs: dirs, PolicyFile: o.policy, WorkDir: here, Env: env.Getenv, Binary: self,
	}, time.Now, func(err error) { complain(env, err) })
	if err != nil {
		return nil, err
	}
	cfg := live.Current()
	ws, err := openRoots(cfg, append([]string{where, self}, cfg.Files...))
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		fmt.Fprintln(env.Err, "warning:", textsafe.Clean(w))
	}
	return &workspace{ws, live, where}, nil
}

// complain says what is wrong with a policy file that was changed while the
// last good one is in force.
func complain(env *Env, err error) {
	if err == nil {
		fmt.Fprintln(env.Err, "the policy is valid again and in force")
		return
	}
	fmt.Fprintln(env.Err, "the changed policy is not in force, the last good one is")
	report(env.Err, err, false)
}

// openRoots opens what the policy names. own are postern's own files, wherever
// they lie: the state directory first, the program and the policy files.
func openRoots(cfg *config.Config, own []string) (*pathguard.Workspace, error) {
	var roots []*pathguard.Root
	for _, r := range cfg.Roots {
		root, err := pathguard.OpenRoot(r.Path, pathguard.Options{
			Name: r.Name, Alias: r.Alias, Mounts: r.Mounts, DenyHardlinks: r.DenyHardlinks,
			Forbidden: own[:1],
		})
		if err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	ws, err := pathguard.NewWorkspace(roots...)
	if err != nil {
		return nil, err
	}
	return ws, ws.Protect(own...)
}

func (o *options) subject(source string) core.Subject {
	return core.Subject{Agent: o.agent, Source: source, Level: core.LevelSDK, Proven: o.agent != ""}
}

// gate are the parts of a gate over the workspace.
func (w *workspace) gate(s core.Subject, state *enforce.State) enforce.Options {
	cfg := w.live.Current()
	return enforce.Options{
		Workspace: w.Workspace, Decider: w.live, Recorder: state, Locker: state, Subject: s,
		PolicyFile: cfg.UserFile, ReadsNeedAudit: cfg.Settings.Audit.DenyReads,
	}
}
