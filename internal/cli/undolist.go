// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
)

const listDefault = 50

func newUndoList(env *Env) *cobra.Command {
	var o undoOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "list what can be taken back, the newest first",
		Example: `  postern undo list
  postern undo list --session c522681286cad5c6 --json`,
		Long: `each change that went through postern and is still kept: its id, when, by whom,
in which session, what, in which folder, and whether it can be taken back now.
every folder's, the newest ` + strconv.Itoa(listDefault) + `, or all with --all

what other programs changed is not listed, and no undo touches it. it is counted
in the last line, as far as a postern up over the folder saw it, from an hour
before the oldest change of the list`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE:                  func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context(), env, all) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	textFlag(cmd, &o.session, "session", "S", "the changes of this session only")
	cmd.Flags().BoolVar(&all, "all", false, "every one, not the newest alone")
	policyFlag(cmd, &o.options)
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

type undoEntryJSON struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Agent   string    `json:"agent"`
	Session string    `json:"session"`
	Source  string    `json:"source"`
	Op      string    `json:"op"`
	Undoes  bool      `json:"undo"` // it is itself an undo
	Names   []string  `json:"names"`
	Roots   []string  `json:"roots"` // where the roots of those lie
	State   string    `json:"state"` // undoable, undone, or a problem
	Why     string    `json:"why,omitempty"`
}

type undoListJSON struct {
	document
	Entries []undoEntryJSON `json:"entries"`
	More    int             `json:"more"`    // older ones that are not shown
	Damaged int             `json:"damaged"` // lines of the journals that can't be read, and Odd
	Odd     []string        `json:"odd"`     // entries of undo/ that are no journals, and not read
	Outside *outsideJSON    `json:"outside"` // null where the log can't be read

	home string
}

func (o *undoOptions) list(ctx context.Context, env *Env, all bool) (err error) {
	out := undoListJSON{document: newDocument("undo-list"), Entries: []undoEntryJSON{}, Odd: []string{}, home: env.Getenv("HOME")}
	if neverChanged(env) {
		out.Outside = &outsideJSON{Since: time.Now()}
		return answer(env.Out, o.asJSON, out, out.print)
	}
	_, state, err := o.state(env) //nolint:contextcheck // an older state directory is brought up to date whole
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }() //nolint:contextcheck // an interrupt does not keep it from the disk
	_ = state.Settle(ctx)                                    // else what was killed is shown as still running
	limit := listDefault
	if all {
		limit = -1
	}
	found, more, damaged, err := state.UndoList(o.session, limit)
	if err != nil {
		return err
	}
	out.More, out.Damaged = more, damaged
	odd, err := state.UndoOdd()
	if err != nil {
		return err
	}
	out.Odd = append(out.Odd, odd...)
	for _, e := range found {
		if e.Undoes {
			e.Session = "" // no undo of a session takes it back
		}
		out.Entries = append(out.Entries, undoEntryJSON(e))
	}
	if out.Outside, err = outsideOf(ctx, state, found); err != nil {
		return err
	}
	return answer(env.Out, o.asJSON, out, out.print)
}

var _ = undoEntryJSON(enforce.UndoEntry{})

func (u undoListJSON) print(w io.Writer) {
	if len(u.Entries) == 0 {
		fmt.Fprintln(w, "there is nothing to undo")
	}
	for _, e := range u.Entries {
		fmt.Fprintln(w, e.drawn(u.home))
	}
	if u.More > 0 {
		fmt.Fprintf(w, "and %d older: --all shows them\n", u.More)
	}
	if lines := u.Damaged - len(u.Odd); lines > 0 {
		fmt.Fprintln(w, counted(lines, "line")+" of the journals can't be read")
	}
	for _, name := range u.Odd {
		fmt.Fprintln(w, "undo/"+textsafe.Name(name)+" in the state directory is no journal of postern's, and was not read")
	}
	u.Outside.print(w)
}

func (e *undoEntryJSON) drawn(home string) string {
	who, session := cmp.Or(e.Agent, "-"), cmp.Or(e.Session, "-")
	if e.Undoes {
		who = "undo"
	}
	var what string
	for i, n := range e.Names {
		if i == 3 {
			what += fmt.Sprintf(" and %d more", len(e.Names)-i)
			break
		}
		what += " " + textsafe.Name(n)
	}
	for i, root := range e.Roots {
		what += []string{" in ", " and "}[min(i, 1)] + drawnFolder(root, home)
	}
	state := e.State
	if e.Why != "" {
		state += " (" + textsafe.Clean(e.Why).String() + ")"
	}
	return fmt.Sprintf("%s  %s  %s  %s  %s%s  %s",
		e.ID, e.Time.Local().Format(time.DateTime), textsafe.Name(who), textsafe.Name(session), e.Op, what, state)
}
