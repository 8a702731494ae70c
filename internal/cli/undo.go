// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver/edit"
	"github.com/postern-gate/postern/internal/prompt"
	"github.com/postern-gate/postern/internal/spell"
)

type undoOptions struct {
	options
	session           string
	last, dryRun, yes bool
	asJSON            bool
}

func newUndo(env *Env) *cobra.Command {
	var o undoOptions
	cmd := &cobra.Command{
		Use:   "undo [flags] [ID]",
		Short: "take back what was changed through postern",
		Example: `  postern undo list
  postern undo --last --dry-run
  postern undo 3f2a9b0c1d2e-1c
  postern undo --session c522681286cad5c6`,
		Long: `takes back one change, all of a session, or the newest one: what was there
before comes back with its mode, times and attributes, what was made is removed,
what was moved gets its old name. the plan is shown first, and asked about on
the terminal; without one it needs --yes

--last is the newest change in the folder where it is run: its root contains
that, or lies beneath it. an ID or a session, both of postern undo list, is
taken back wherever it was made; the plan says in which folder

a file that changed since is a conflict: it stays as it is, and the others are
done. exit 1 says that something was left out. an undo has an id too, and to
undo it is to redo

what is done here is done by you: the policy is not asked, but nothing new gets
a name that the policy of its folder protects. nothing outside the folders of
the changes is touched, and no link is followed`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), env, args) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	textFlag(cmd, &o.session, "session", "S", "every change of this session")
	cmd.Flags().BoolVar(&o.last, "last", false, "the newest change here that is not taken back yet")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the plan, and change nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "it is meant, don't ask")
	policyFlag(cmd, &o.options)
	jsonFlag(cmd, &o.asJSON)
	cmd.AddCommand(newUndoList(env))
	return cmd
}

type undoStepJSON struct {
	Verb    string `json:"verb"`
	Name    string `json:"name"`
	Root    string `json:"root"` // where that root lies
	To      string `json:"to,omitempty"`
	ToRoot  string `json:"to_root,omitempty"`
	Change  string `json:"change"`
	Done    bool   `json:"done"`
	Problem string `json:"problem,omitempty"`
	Why     string `json:"why,omitempty"`
	Diff    string `json:"diff,omitempty"` // of what it would change in a file
	Unshown string `json:"unshown,omitempty"`
}

type undoJSON struct {
	document
	ID        string         `json:"id"` // of the undo, "" where nothing was done
	DryRun    bool           `json:"dry_run"`
	Steps     []undoStepJSON `json:"steps"`
	Elsewhere int            `json:"elsewhere"`         // changes in other folders that --last left out
	NoDiff    int            `json:"no_diff,omitempty"` // steps whose diffs are beyond the bounds
	UndoneBy  string         `json:"undone_by,omitempty"`

	here, home, nothing string
}

// selected is what the command line means.
func (o *undoOptions) selected(args []string) (sel enforce.UndoSelect, err error) {
	given := len(args)
	if o.session != "" {
		given++
	}
	if o.last {
		given++
	}
	switch {
	case len(args) > 1:
		return sel, usage("postern undo", "one argument too many: "+args[1], "")
	case given == 0:
		return sel, usage("postern undo", "it doesn't say what to take back: an ID, --session or --last", "postern undo list")
	case given > 1:
		return sel, usage("postern undo", "an ID, --session and --last are three ways to say what: give one", "")
	case len(args) == 1 && args[0] == "":
		return sel, usage("postern undo", "the ID is empty", "postern undo list")
	}
	sel = enforce.UndoSelect{Session: o.session, Last: o.last}
	if len(args) == 1 {
		sel.ID = args[0]
	}
	return sel, nil
}

func (o *undoOptions) run(ctx context.Context, env *Env, args []string) (err error) {
	sel, err := o.selected(args)
	if err != nil {
		return err
	}
	if o.yes && !o.dryRun {
		if err := aPerson(env, "undo"); err != nil {
			return err
		}
	}
	if neverChanged(env) {
		return o.nothing(env, sel)
	}
	by, state, err := o.state(env) //nolint:contextcheck // an older state directory is brought up to date whole
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }() //nolint:contextcheck // an interrupt does not keep it from the disk
	if err := state.Settle(ctx); err != nil {
		return err
	}
	if sel.Last {
		if sel.Near, err = hereResolved(env); err != nil {
			return err
		}
	}
	plan, err := state.PlanUndo(ctx, sel, by())
	if err != nil {
		return err
	}
	o.show(by, state, plan)
	out := undoJSON{
		document: newDocument("undo"), DryRun: o.dryRun, Steps: undoSteps(plan), Elsewhere: plan.Elsewhere, NoDiff: plan.Unshown,
		UndoneBy: plan.UndoneBy, here: plan.Select.Near, home: env.Getenv("HOME"), nothing: plan.Nothing(),
	}
	if o.dryRun || plan.Problems() == len(plan.Steps) {
		return ended(answer(env.Out, o.asJSON, out, out.print), plan)
	}
	if err := o.ask(ctx, env, out); err != nil {
		return err
	}
	out.ID, err = state.Undo(ctx, plan, by())
	out.Steps, out.NoDiff = undoSteps(plan), 0
	if printErr := answer(env.Out, o.asJSON, out, out.print); err == nil {
		err = printErr
	}
	return ended(err, plan)
}

// show fills in what the plan changes, where anybody reads it.
func (o *undoOptions) show(by func() enforce.Person, state *enforce.State, plan *enforce.UndoPlan) {
	if o.dryRun || !o.yes && !o.asJSON {
		state.ShowUndo(plan, by(), edit.Diff)
	}
}

// ask shows the plan and wants a yes to it, if the flags don't say it.
func (o *undoOptions) ask(ctx context.Context, env *Env, out undoJSON) error {
	if o.yes {
		return nil
	}
	if !o.asJSON {
		if err := answer(env.Out, false, out, out.print); err != nil {
			return err // nobody says yes to what isn't shown
		}
	}
	return askUndo(ctx)
}

// nothing is the answer where nothing was ever changed.
func (o *undoOptions) nothing(env *Env, sel enforce.UndoSelect) error {
	if what := sel.ID + sel.Session; what != "" {
		return &fault.Error{
			Code: fault.PathMissing, Op: "undo", Resource: what, Rule: "there is no state directory, so nothing was ever changed", Hint: "postern status",
		}
	}
	out := undoJSON{document: newDocument("undo"), DryRun: o.dryRun, Steps: []undoStepJSON{}, nothing: (&enforce.UndoPlan{}).Nothing()}
	return answer(env.Out, o.asJSON, out, out.print)
}

// ended is exit 1 where a step was left out.
func ended(err error, plan *enforce.UndoPlan) error {
	if err == nil && plan.Problems() > 0 {
		return exitCode(fault.ExitFailed)
	}
	return err
}

// neverChanged reports whether there is no state directory, which every change
// makes. Asking what was changed does not.
func neverChanged(env *Env) bool {
	dir, err := stateToRead(env)
	if err == nil {
		_, err = os.Lstat(dir)
	}
	return errors.Is(err, fs.ErrNotExist)
}

// state opens the state directory as the policy here wants it, and says who takes
// back: by that policy, or by none where it is not valid.
func (o *undoOptions) state(env *Env) (by func() enforce.Person, state *enforce.State, err error) {
	w, err := o.loadHere(env)
	if err == nil {
		state, err = enforce.OpenState(w.stateDir, stateOptions(w.live.Current()))
		return func() enforce.Person { return o.person(env, w, "undo") }, state, err
	}
	u, dir, err := o.unreadPolicy(env, err)
	if err == nil {
		state, err = enforce.OpenState(dir, u.stateOptions())
	}
	return func() enforce.Person { return u.person(&o.options, env) }, state, err
}

// askUndo wants a yes from a person, at the terminal and nowhere else: what an agent
// can send to stdin is no answer.
func askUndo(ctx context.Context) error {
	no := &fault.Error{
		Code: fault.PolicyAsk, Op: "undo", Rule: "a person has to say yes to it",
		Hint: "run it on a terminal, or add --yes",
	}
	in, out, err := prompt.Files()
	if err != nil {
		return no
	}
	defer in.Close()
	defer out.Close()
	fmt.Fprint(out, "undo it? [y/N] ")
	answer, err := readLine(ctx, in)
	if ctx.Err() != nil {
		fmt.Fprintln(out)
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		no.Rule, no.Hint = "it was not answered with yes", "nothing was changed; to undo it after all, run it again and answer y"
		return no
	}
	return nil
}

func undoSteps(plan *enforce.UndoPlan) []undoStepJSON {
	steps := []undoStepJSON{}
	for _, s := range plan.Steps {
		steps = append(steps, undoStepJSON{s.Verb, s.Name, s.Root, s.To, s.ToRoot, s.ID, s.Done, s.Problem, s.Why, s.Change, s.Unshown})
	}
	return steps
}

func (u undoJSON) print(w io.Writer) {
	if len(u.Steps) == 0 && u.Elsewhere > 0 {
		fmt.Fprintf(w, "there is nothing to undo in %s\n%s in other folders: postern undo list\n", drawnFolder(u.here, u.home), counted(u.Elsewhere, "change"))
		return
	}
	if len(u.Steps) == 0 {
		fmt.Fprintln(w, u.nothing)
		if u.UndoneBy != "" {
			fmt.Fprintln(w, "to make it again: postern undo "+u.UndoneBy)
		}
		return
	}
	left := 0
	for _, s := range u.Steps {
		name := spell.Word(s.Name) + " in " + drawnFolder(s.Root, u.home)
		what := s.Verb + " " + name
		if s.To != "" {
			what += " to " + spell.Word(s.To) + " in " + drawnFolder(s.ToRoot, u.home)
		}
		switch {
		case s.Problem != "":
			left++
			what = s.Problem + ": " + name + " stays as it is: " + textsafe.Clean(s.Why).String()
		case s.Done:
			what = "done: " + what
		default:
			what = "would " + what
		}
		fmt.Fprintln(w, what)
		s.printDiff(w)
	}
	if u.NoDiff > 0 {
		fmt.Fprintf(w, "what it would change is not shown of %s more\n", counted(u.NoDiff, "step"))
	}
	if left > 0 {
		fmt.Fprintf(w, "left out: %d of %s\n", left, counted(len(u.Steps), "step"))
	}
	if next := u.next(); next != "" && left == len(u.Steps) {
		fmt.Fprintln(w, "next: "+next)
	}
	if u.ID != "" {
		fmt.Fprintln(w, "to take this back: postern undo "+u.ID)
	}
}

// notEmpty is why a folder that was made stays.
const notEmpty = "it is not empty"

// next is what helps where every step was left out, "" where these say it.
func (u undoJSON) next() string {
	is := func(which func(why string) bool) bool {
		return slices.ContainsFunc(u.Steps, func(s undoStepJSON) bool { return which(s.Why) })
	}
	switch {
	case is(func(why string) bool { return why == notEmpty }):
		return "empty the folder, and run it again"
	case is(func(why string) bool { return strings.Contains(why, "; next: ") }):
		return ""
	}
	return "what came on top of it first, or another change, by its ID: postern undo list"
}

// printDiff draws what a step would change as a card does, beneath it. On a
// terminal no line goes on where one of ours begins.
func (s *undoStepJSON) printDiff(w io.Writer) {
	var b strings.Builder
	for l := range strings.Lines(prompt.Text(prompt.Changed(s.Diff, s.Unshown))) {
		b.WriteString("  " + l)
	}
	text := b.String()
	if f, ok := fileOf(w); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			text = prompt.Wrap(text, columns)
		}
	}
	fmt.Fprint(w, text)
}

// hereResolved is where the command runs, as journals name folders.
func hereResolved(env *Env) (string, error) {
	here, err := env.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return "", &fault.Error{
			Code: fault.IOFailed, Op: "undo", Rule: "the folder that it runs in can't be told",
			Hint: "change to the folder, or give an ID: postern undo list", Err: err,
		}
	}
	return here, nil
}

// drawnFolder draws where a root lies, beneath home as ~.
func drawnFolder(path, home string) string {
	if path == "" {
		return "a folder that the journal doesn't name"
	}
	if rel, err := filepath.Rel(home, path); home != "" && err == nil && filepath.IsLocal(rel) {
		path = strings.TrimSuffix("~/"+filepath.ToSlash(rel), "/.")
	}
	return spell.Word(path)
}
