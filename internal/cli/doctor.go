// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/doctor"
	"github.com/postern-gate/postern/internal/selftest"
)

// doctorJSON is the answer of doctor; of Checks and Points one is there.
type doctorJSON struct {
	document
	OK     bool            `json:"ok"`
	Checks []doctor.Result `json:"checks,omitempty"`
	Points []doctor.Point  `json:"points,omitempty"`
}

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	options
	deploy bool
	asJSON bool
}

func newDoctor(env *Env) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [flags] [DIR...]",
		Short: "look what is wrong with this machine's postern",
		Example: `  postern doctor
  postern doctor --json ~/project
  postern doctor --deploy`,
		Long: `the program, the policy, the folders, the state directory, the log and the
clients that are attached, check by check: pass, warn, fail, or skipped where
there is nothing to look at. below what is not right stands what to do about it.
nothing is repaired. without DIR the folders are the policy's, or this one

the line of each client is started as the client would, up to a refusal, with a
state directory of its own; of another program than this one only if its name is
postern and nobody but you and root can change it

--deploy goes through the checklist of docs/deploy.md instead, each point with
its command and its result, or with what to do by hand where it can't be checked

exit 1 when a check fails, else 0`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, dirs []string) error { return o.run(cmd.Context(), env, dirs) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	policyFlag(cmd, &o.options)
	cmd.Flags().BoolVar(&o.deploy, "deploy", false, "go through the deployment checklist")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func (o *doctorOptions) run(ctx context.Context, env *Env, dirs []string) error {
	about, err := o.surroundings(env, dirs)
	if err != nil {
		return err
	}
	out := doctorJSON{document: newDocument("doctor")}
	var results []doctor.Result
	if o.deploy {
		out.Points = doctor.Deploy(ctx, about)
		results = doctor.Results(out.Points)
	} else {
		out.Checks = doctor.Run(ctx, about)
		results = out.Checks
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	problem := doctor.Err(results)
	out.OK = problem == nil
	err = answer(env.Out, o.asJSON, out, func(w io.Writer) { out.print(w) })
	switch {
	case err != nil || problem == nil:
		return err
	case o.asJSON:
		return exitCode(fault.CodeOf(problem).Exit())
	}
	return problem
}

// surroundings is what is looked at. A policy that is not valid is a finding.
func (o *doctorOptions) surroundings(env *Env, dirs []string) (doctor.Options, error) {
	for _, dir := range dirs {
		if dir == "" {
			return doctor.Options{}, usage("postern doctor", "the name of a folder is empty", "write . for this folder")
		}
	}
	where, err := enforce.LocateState(env.Getenv)
	if err != nil {
		return doctor.Options{}, err
	}
	here, err := env.Getwd()
	if err != nil {
		return doctor.Options{}, &fault.Error{Code: fault.IOFailed, Op: "doctor", Rule: "the working directory can't be told", Hint: "change into a folder that exists", Err: err}
	}
	self, err := os.Executable()
	if err != nil {
		return doctor.Options{}, &fault.Error{Code: fault.IOFailed, Op: "doctor", Rule: "the path of this program can't be told", Err: err}
	}
	policy := config.Options{Dirs: dirs, PolicyFile: o.policy, WorkDir: here, StateDir: where, Env: env.Getenv, Binary: self}
	if len(dirs) == 0 {
		if _, err := config.Load(policy); fault.CodeOf(err) == fault.RequestInvalid {
			policy.Dirs = []string{"."}
		}
	}
	project := here
	if len(dirs) == 1 {
		if project = dirs[0]; !filepath.IsAbs(project) {
			project = filepath.Join(here, project)
		}
	}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	return doctor.Options{
		Self: self, Version: buildVersion(), Policy: policy, Now: time.Now,
		World:    attach.World{Home: env.Getenv("HOME"), Project: project, GOOS: runtime.GOOS, Getenv: env.Getenv, LookPath: exec.LookPath},
		Selftest: attackHere,
	}, nil
}

// attackHere is selftest without its lines.
func attackHere(ctx context.Context) error {
	report, err := selftest.Run(ctx, selftest.Options{ReadOnly: func(d enforce.Decider) enforce.Decider { return readOnly{d} }})
	if err == nil {
		err = report.Err()
	}
	return err
}

func (d doctorJSON) print(w io.Writer) {
	for _, r := range d.Checks {
		fmt.Fprintf(w, "%-7s  %-14s  %s\n", r.Status, r.Name, textsafe.Clean(r.Text))
		if r.Hint != "" {
			fmt.Fprintf(w, "         next: %s\n", textsafe.Clean(r.Hint))
		}
	}
	for _, p := range d.Points {
		word := p.Status.String()
		if !p.Checked {
			word = "can't be checked"
		}
		fmt.Fprintf(w, "%d. %s\n   %s: %s\n", p.Number, p.Title, word, textsafe.Clean(p.Text))
		if p.Command != "" {
			fmt.Fprintf(w, "   command: %s\n", p.Command)
		}
		if p.Status != doctor.Pass {
			fmt.Fprintf(w, "   by hand: %s\n", textsafe.Clean(p.ByHand))
		}
	}
}
