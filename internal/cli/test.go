// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/doctor"
)

func newTest(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test [flags] [FILE...]",
		Short: "run the examples of a policy",
		Example: `  postern test
  postern test team.yaml policies/*.yaml
  postern test .postern/policy.yaml`,
		Long: `a policy can say in examples what it decides. each is one line with its place:
ok, or what was decided instead and by which rule. without FILE the policies in
force here are tested; a FILE is taken in the place of your own policy, or, if
it is the .postern/policy.yaml of a folder, as the policy of that project. of
other attached folders those are named whose servers would not start

a policy that says something wrong in an example is refused by every other
verb. the folders that it names need not be there. exit 1 when an example fails,
5 when a file is not valid`,
		DisableFlagsInUseLine: true,
		RunE:                  func(cmd *cobra.Command, files []string) error { return testPolicies(cmd.Context(), env, files, asJSON) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

type exampleJSON struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Action   string   `json:"action"`
	Resource string   `json:"resource"`
	Agent    string   `json:"agent,omitempty"`
	OK       bool     `json:"ok"`
	Want     string   `json:"want"`
	Decision string   `json:"decision"`
	Because  ruleJSON `json:"because"`
}

type testJSON struct {
	document
	Files    []string      `json:"files"`
	Examples []exampleJSON `json:"examples"`
	Failed   int           `json:"failed"`
	beyond                 // without FILE

	tried []config.Tried
}

func testPolicies(ctx context.Context, env *Env, files []string, asJSON bool) error {
	out := &testJSON{document: newDocument("test"), Files: []string{}, Examples: []exampleJSON{}, beyond: beyond{Elsewhere: []doctor.Broken{}, Unmet: []doctor.Unmet{}}}
	var broken error // what is wrong with the last file that isn't valid
	targets := files
	if len(targets) == 0 {
		targets = []string{""}
	}
	for _, file := range targets {
		if err := out.try(ctx, env, file, len(files) > 0); err != nil {
			if len(files) > 0 {
				err = untested(err, file)
			}
			if broken != nil {
				report(env.Err, broken, asJSON)
			}
			broken = err
		}
	}
	if broken == nil || len(out.Files) > 0 {
		if err := answer(env.Out, asJSON, out, out.print); err != nil {
			return err
		}
	}
	switch {
	case broken != nil:
		return broken
	case out.Failed > 0:
		return exitCode(fault.ExitFailed)
	}
	return nil
}

// untested is the error of a file that was named, which may be in force nowhere.
func untested(err error, file string) error {
	f := *fault.As(err)
	if f.Code == fault.ConfigInvalid {
		f.Hint = "correct it, or name another file, and then: postern test " + textsafe.Word(file)
	}
	return &f
}

// try runs the examples of one file, or of the policies in force.
func (out *testJSON) try(ctx context.Context, env *Env, file string, named bool) error {
	o, err := tryOptions(env, file, named)
	if err != nil {
		return err
	}
	c, tried, err := config.Try(o)
	if fault.CodeOf(err) == fault.RequestInvalid && len(o.Dirs) == 0 {
		o.Dirs = []string{"."}
		c, tried, err = config.Try(o)
	}
	if err != nil {
		return err
	}
	if !named {
		out.look(ctx, env, o, c)
	}
	only := o.PolicyFile
	if named && only == "" {
		only = filepath.Join(o.Dirs[0], ".postern", "policy.yaml")
	}
	files := c.Files
	if only != "" {
		files = []string{only}
	}
	for _, f := range files {
		out.Files = append(out.Files, f)
		n := 0
		for _, t := range tried {
			if t.Pos.File == f {
				n++
				out.add(t)
			}
		}
		if n == 0 && only != "" {
			fmt.Fprintf(env.Err, "warning: %s has no examples\n", textsafe.Name(f))
		}
	}
	return nil
}

// look tells what the policies in force do beyond this folder, and that there are none.
func (out *testJSON) look(ctx context.Context, env *Env, o config.Options, c *config.Config) {
	out.beyond = lookBeyond(ctx, env, o, c)
	for _, l := range out.lines() {
		fmt.Fprintln(env.Err, "warning: "+l)
	}
	if len(c.Files) == 0 {
		fmt.Fprintln(env.Err, "warning: no policy file is in force here: postern init writes one")
	}
}

func (out *testJSON) add(t config.Tried) {
	out.tried = append(out.tried, t)
	out.Examples = append(out.Examples, exampleJSON{
		t.Pos.File, t.Pos.Line, t.Pos.Column, t.Request.Action.String(), t.Resource, t.Request.Subject.Agent,
		t.OK(), t.Want.String(), t.Verdict.Decision.String(), newRule(t.Verdict.Reason),
	})
	if !t.OK() {
		out.Failed++
	}
}

// tryOptions say where the policy is looked for.
func tryOptions(env *Env, file string, named bool) (config.Options, error) {
	if named && file == "" {
		return config.Options{}, usage("postern test", "the name of a file is empty", "")
	}
	here, err := env.Getwd()
	if err != nil {
		return config.Options{}, &fault.Error{Code: fault.IOFailed, Op: "test", Rule: "the working directory can't be told", Hint: "change into a folder that exists", Err: err}
	}
	state, _ := enforce.LocateState(env.Getenv) // a policy can be tested without one
	self, _ := os.Executable()
	o := config.Options{WorkDir: here, StateDir: state, Env: env.Getenv, Binary: self}
	if !named {
		return o, nil
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(here, file)
	}
	if dir := filepath.Dir(file); filepath.Base(dir) == ".postern" && filepath.Base(file) == "policy.yaml" {
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			return o, &fault.Error{Code: fault.PathMissing, Op: "test", Resource: file, Rule: "there is no such file", Hint: "name another"}
		}
		o.Dirs = []string{filepath.Dir(dir)}
		return o, nil
	}
	o.PolicyFile = filepath.Clean(file)
	return o, nil
}

func (out *testJSON) print(w io.Writer) {
	for _, t := range out.tried {
		what := t.Request.Action.String() + " " + drawn(t.Resource)
		if t.Request.Subject.Agent != "" {
			what += " by " + textsafe.Name(t.Request.Subject.Agent)
		}
		place := textsafe.Name(t.Pos.String())
		if t.OK() {
			fmt.Fprintf(w, "ok      %s: %s: %s\n", place, what, t.Want)
			continue
		}
		fmt.Fprintf(w, "failed  %s: %s: the example says %s, the policy decides %s: %s\n", place, what, t.Want, t.Verdict.Decision, textsafe.Clean(t.Verdict.Reason.String()))
	}
	fmt.Fprintf(w, "%s in %s, %d failed\n", counted(len(out.tried), "example"), counted(len(out.Files), "file"), out.Failed)
}
