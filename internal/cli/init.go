// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/attach"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/policies"
)

// opInit is what its refusals are about.
const opInit = "init"

type initOptions struct {
	clients []string
	yes     bool
	dry     bool
	undo    bool
	asJSON  bool
}

func newInit(env *Env) *cobra.Command {
	var o initOptions
	ids := attach.IDs()
	half := len(ids) / 2
	cmd := &cobra.Command{
		Use:   "init [flags] [DIR]",
		Short: "attach the agents that are here to a folder, guarded",
		Example: `  postern init                          find the clients, show each change, ask
  postern init --dry-run                show what would be written
  postern init --yes --client codex     attach one client without asking
  postern init --undo                   take out what init added`,
		Long: `finds the MCP clients of this machine, and shows as a diff what it would write:
a policy for the folder, your own policy where there is none, and one entry in
each client's file. nothing is written before a person says yes on the terminal

every other byte of a file stays as it is. a file that can't be edited without
a guess is refused, and then nothing at all is written. whatever is answered but
yes, and without a terminal to ask on, it writes nothing and ends with exit 4.
with --json nobody is asked: it takes --yes or --dry-run. --yes counts as a
person's word, so it is refused in an agent's own shell

what was added is remembered, so that --undo takes out exactly that, also after
other changes; of a --client that is named also an entry that reads as init
writes it. what it can't take out is named, the rest goes, and it ends with
exit 1. after the last folder it says what of postern stays, and where

clients: ` + strings.Join(ids[:half], ", ") + ",\n  " + strings.Join(ids[half:], ", "),
		DisableFlagsInUseLine: true,
		Args:                  atMostOne,
		RunE:                  func(cmd *cobra.Command, dirs []string) error { return o.run(cmd.Context(), env, dirs) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	cmd.Flags().StringArrayVar(&o.clients, "client", nil, "a `CLIENT` to attach, found or not; may be given again")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "write without asking")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show what would be written, and write nothing")
	cmd.Flags().BoolVar(&o.undo, "undo", false, "take out what init added")
	jsonFlag(cmd, &o.asJSON)
	// The error is about a flag that doesn't exist.
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(attach.IDs(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// initRun is one run of init, once it is known what it is about.
type initRun struct {
	*initOptions
	env      *Env
	dir      string // as it was given
	world    attach.World
	server   attach.Server
	stateDir string
	userFile string // of the user's policy
	found    []attach.Found
	chosen   []attach.Client
	plan     *attach.Plan
}

func (o *initOptions) run(ctx context.Context, env *Env, dirs []string) error {
	if o.yes && o.dry {
		return usage("postern init", "--yes and --dry-run contradict each other", "")
	}
	if o.asJSON && !o.yes && !o.dry {
		return usage("postern init", "with --json nobody can be asked", "postern init --json --dry-run, or with --yes")
	}
	r := &initRun{initOptions: o, env: env}
	err := r.choose()
	if err == nil {
		err = r.look(dirs)
	}
	if err == nil {
		err = r.prepare()
	}
	if err != nil {
		return err
	}
	defer r.plan.Close()
	return r.carryOut(ctx)
}

// choose takes the clients of the command line.
func (r *initRun) choose() error {
	for _, id := range r.clients {
		c, ok := attach.ByID(id)
		if !ok {
			return usage("postern init", "there is no client "+id, "--client with one of "+strings.Join(attach.IDs(), ", "))
		}
		if !slices.ContainsFunc(r.chosen, func(o attach.Client) bool { return o.ID == c.ID }) {
			r.chosen = append(r.chosen, c)
		}
	}
	return nil
}

// look finds the folder, the program and the clients.
func (r *initRun) look(dirs []string) error {
	r.dir = "."
	if len(dirs) > 0 {
		r.dir = dirs[0]
	}
	project, err := r.folder(r.dir)
	if err != nil {
		return err
	}
	r.world = attach.World{
		Home: homeOf(r.env), Project: project, GOOS: runtime.GOOS, Getenv: r.env.Getenv, LookPath: exec.LookPath,
	}
	if r.stateDir, err = enforce.LocateState(r.env.Getenv); err != nil {
		return err
	}
	if err := r.fit(); err != nil {
		return err
	}
	if r.server.Command, err = program(); err != nil && !r.undo { // which needs none
		return err
	}
	r.found = attach.Find(r.world)
	if r.clients == nil {
		for _, f := range r.found {
			r.chosen = append(r.chosen, f.Client)
		}
	}
	return nil
}

// folder is the absolute path of the project, its links resolved.
func (r *initRun) folder(dir string) (string, error) {
	if dir == "" {
		return "", usage("postern init", "the name of a folder is empty", "write . for this folder")
	}
	here, err := r.env.Getwd()
	if err != nil {
		return "", &fault.Error{Code: fault.IOFailed, Op: opInit, Rule: "the working directory can't be told", Hint: "change into a folder that exists", Err: err}
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(here, dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", &fault.Error{Code: fault.RequestInvalid, Op: opInit, Resource: dir, Rule: "there is no such folder", Hint: "name a folder that exists", Err: err}
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", &fault.Error{Code: fault.RequestInvalid, Op: opInit, Resource: dir, Rule: "it is not a folder", Hint: "name the folder of a project: postern init DIR", Err: err}
	}
	return real, nil
}

// homeOf is the home folder, "" where the environment doesn't say.
func homeOf(env *Env) string {
	if home := statedHome(env); home != "" {
		return filepath.Clean(home)
	}
	return ""
}

// statedHome is homeOf as the variable says it: what a .. in it means, its links say.
func statedHome(env *Env) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := env.Getenv(name); filepath.IsAbs(home) {
			return home
		}
	}
	return ""
}

// fit refuses folders that are no project: what is in them isn't one person's
// work, and an agent would get all of it.
func (r *initRun) fit() error {
	refused := func(why string) error {
		return &fault.Error{Code: fault.PathDenied, Op: opInit, Resource: r.world.Project, Rule: why, Hint: "name the folder of one project: postern init DIR"}
	}
	state := r.stateDir
	if real, err := filepath.EvalSymlinks(state); err == nil {
		state = real
	}
	if why := tooWide(r.env, r.world.Project); why != "" {
		return refused(why)
	}
	if beneath(r.world.Project, state) {
		return refused("postern keeps its own state there, which no agent may reach")
	}
	return nil
}

// beneath reports whether a path is a folder or lies in it.
func beneath(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// program is the absolute path that a client starts this program by: the one of
// PATH where that is this program, since it outlives an update.
func program() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", &fault.Error{Code: fault.IOFailed, Op: opInit, Rule: "the path of this program can't be told", Hint: "start it by its absolute path", Err: err}
	}
	if found, err := exec.LookPath("postern"); err == nil && filepath.IsAbs(found) && sameFile(found, self) {
		self = found
	}
	if err := attach.Installed(self); err != nil {
		return "", err
	}
	if name := strings.TrimSuffix(filepath.Base(self), ".exe"); name != "postern" {
		return "", &fault.Error{
			Code: fault.RequestInvalid, Op: opInit, Resource: self, Rule: "the program has another name than postern, by which its entries are known again",
			Hint: "name it postern",
		}
	}
	return self, nil
}

// replaceable reports whether the program lies in the project, by the path that
// clients start it by or by where that leads.
func (r *initRun) replaceable() bool {
	real, err := filepath.EvalSymlinks(r.server.Command)
	return beneath(r.server.Command, r.world.Project) || err == nil && beneath(real, r.world.Project)
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// prepare computes the plan. The policies that are there must be valid.
func (r *initRun) prepare() (err error) {
	if r.undo {
		var only []attach.Client
		if r.clients != nil {
			only = r.chosen
		}
		r.plan, err = attach.PlanUndo(r.world, r.server, r.stateDir, only)
		return err
	}
	cfg, err := config.Load(config.Options{
		Dirs: []string{r.world.Project}, WorkDir: r.world.Project, StateDir: r.stateDir, Env: r.env.Getenv, Binary: r.server.Command,
	})
	if err != nil {
		return err
	}
	files := []attach.File{{Path: filepath.Join(r.world.Project, ".postern", "policy.yaml"), InProject: true, Text: policies.Project()}}
	if r.userFile = cfg.UserFile; r.userFile != "" {
		files = append(files, attach.File{Path: r.userFile, Text: policies.User()})
	}
	r.plan, err = attach.NewPlan(r.world, r.server, r.chosen, files)
	return err
}

// carryOut shows the plan, asks, writes, and says what comes next.
func (r *initRun) carryOut(ctx context.Context) error {
	out := r.report()
	if !r.asJSON {
		if _, err := fmt.Fprint(r.env.Out, out.intro(), out.changes()); err != nil {
			return err // what can't be shown isn't written
		}
	}
	if !r.dry {
		if err := r.ask(ctx, out); err != nil {
			return err
		}
		if err := r.plan.Apply(ctx, r.stateDir); err != nil {
			return err
		}
		out.Applied, out.Stays = !out.idle(), r.remains()
	}
	return cmp.Or(r.told(out), r.complete(out))
}

// told prints what came of it. That it can't be printed takes nothing back.
func (r *initRun) told(out *initJSON) error {
	err := answer(r.env.Out, r.asJSON, out, func(w io.Writer) { fmt.Fprint(w, out.after()) })
	if err == nil || !out.Applied {
		return err
	}
	return &fault.Error{
		Code: fault.IOFailed, Op: opInit, Rule: "stdout can't be written; the files are changed all the same",
		Hint: "postern status shows what is attached; postern init --undo takes it back", Err: err,
	}
}

// complete is an error where undoing has left something.
func (r *initRun) complete(out *initJSON) error {
	if r.dry || len(out.Left) == 0 {
		return nil
	}
	return &fault.Error{
		Code: fault.IOFailed, Op: r.op(), Resource: r.world.Project, Rule: "what init added is still there in part: " + strings.Join(out.Left, "; "),
		Hint: "see to it, then run postern init --undo again, or take out one client alone: postern init --undo --client ID",
	}
}
