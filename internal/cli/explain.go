// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/config/advice"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

func newExplain(env *Env) *cobra.Command {
	var o options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain [flags] [ID]",
		Short: "say why a call was refused, and what would change it",
		Example: `  postern explain                     the newest refusal
  postern explain 4fd1c0a2b3e5-7      the call with that id
  postern explain --json 4fd1c0a2b3e5-7`,
		Long: `what was asked and what happened, as recorded; why; every rule that matches it
under the policy in force now; and what would change it. where the policy now
decides in another way than then, that comes first. names are looked up, and the
policy is read, in the folder that the call was in, as if this ran there

ID is that of a record: postern log ends the line of a refusal with it, and a
client finds it in the result of the call. without ID it is about the newest
refusal

a change is proposed only after it was tried, in memory. nothing is changed`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactly("ID")(cmd, args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.explain(cmd.Context(), env, append(args, "")[0], asJSON)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return newestIDs(cmd.Context(), env), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
	}
	policyFlag(cmd, &o)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// mostOffered is how many ids a shell is offered.
const mostOffered = 20

// logExplained is a log, without which nothing can be explained.
func logExplained(env *Env) (*logState, error) {
	s, err := findLog(env)
	if err == nil {
		err = s.gone("explain")
	}
	if err == nil && !s.segments {
		err = s.noLog("explain")
	}
	return s, err
}

// newestIDs are the ids of the newest refusals, the newest first, each with what
// it was about. A log that can't be read offers none: a shell asks here.
func newestIDs(ctx context.Context, env *Env) (ids []string) {
	s, err := logExplained(env)
	if err != nil {
		return nil
	}
	filter := records.Filter{Event: string(audit.Refusal)}
	from, _, err := records.Newest(ctx, s.audit(), &filter, mostOffered)
	if err != nil {
		return nil
	}
	r := records.NewReader(s.audit(), from)
	defer r.Close()
	_ = r.Each(ctx, func(e records.Entry) error { // what was read before an error is offered
		if filter.Match(&e) && e.Record.Corr != "" {
			ids = append(ids, cobra.CompletionWithDesc(plain(e.Record.Corr), plain(e.Record.Op)+" "+textsafe.Name(e.Record.Resource)))
		}
		return nil
	})
	slices.Reverse(ids)
	return ids
}

func (o *options) explain(ctx context.Context, env *Env, id string, asJSON bool) error {
	x, err := o.explanationOf(ctx, env, nil, id)
	if err != nil {
		return err
	}
	defer x.close()
	out := x.report(ctx)
	return answer(env.Out, asJSON, out, func(w io.Writer) { x.print(w, out) })
}

// explainedText is the same for the page, judged by what that is about.
func (o *options) explainedText(ctx context.Context, env *Env, w *workspace, id string) (string, error) {
	x, err := o.explanationOf(ctx, env, w, id)
	if err != nil {
		return "", err
	}
	defer x.close()
	var b strings.Builder
	x.print(&b, x.report(ctx))
	return b.String(), nil
}

// explanationOf judges by w, or by the policy and the roots that are here.
func (o *options) explanationOf(ctx context.Context, env *Env, w *workspace, id string) (*explanation, error) {
	s, err := logExplained(env)
	if err != nil {
		return nil, err
	}
	x := &explanation{o: o, id: id}
	if x.entries, err = recordsOf(ctx, s, id); err != nil {
		return nil, err
	}
	x.choose()
	x.people(ctx, env, s)
	x.again(ctx, env, w)
	return x, nil
}

// explanation is what is known of one call.
type explanation struct {
	o       *options
	id      string
	entries []records.Entry
	told    *records.Record // the one that says how it ended

	w       *workspace
	there   bool         // w is that of the folder that the call was in, not of where this runs
	why     string       // why it can't be judged again, "" where it was
	mend    *advice.Step // what a policy that is not valid needs first
	now     *judge
	private bool // the names are classes and hashes
	foreign bool // a policy decided that is not in force here
	persons persons
}

// mostRecords bounds what is shown of one call.
const mostRecords = 1000

// errEnough ends a reading.
var errEnough = errors.New("enough")

// recordsOf are the records of a call, or of the one that was refused last.
func recordsOf(ctx context.Context, s *logState, id string) ([]records.Entry, error) {
	if id == "" {
		var err error
		if id, err = newestRefusal(ctx, s); err != nil {
			return nil, err
		}
	}
	var found []records.Entry
	filter := records.Filter{Corr: id}
	r := records.NewReader(s.audit(), records.Cursor{})
	defer r.Close()
	err := r.Each(ctx, func(e records.Entry) error {
		if filter.Match(&e) {
			e.Text = slices.Clone(e.Text)
			found = append(found, e)
		}
		if len(found) == mostRecords {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, readError(ctx, err)
	}
	if len(found) == 0 {
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: "explain", Resource: id, Rule: "no record has this id", Hint: "postern log",
		}
	}
	return found, nil
}

func newestRefusal(ctx context.Context, s *logState) (string, error) {
	filter := records.Filter{Event: string(audit.Refusal)}
	from, _, err := records.Newest(ctx, s.audit(), &filter, 1)
	if err != nil {
		return "", readError(ctx, err)
	}
	id := ""
	r := records.NewReader(s.audit(), from)
	defer r.Close()
	err = r.Each(ctx, func(e records.Entry) error {
		if filter.Match(&e) && e.Record.Corr != "" {
			id = e.Record.Corr
		}
		return nil
	})
	if err != nil {
		return "", readError(ctx, err)
	}
	if id == "" {
		return "", &fault.Error{
			Code: fault.PathMissing, Op: "explain", Rule: "no refusal is recorded", Hint: "postern log shows what is; postern explain ID is about any record",
		}
	}
	return id, nil
}

// choose finds the record that says how the call ended. What was refused until a
// yes was used for it ended as it did then.
func (x *explanation) choose() {
	x.id = x.entries[0].Record.Corr
	after := 0
	for i := range x.entries {
		switch r := &x.entries[i].Record; audit.Event(r.Event) {
		case audit.Approved:
			x.persons.yes = r
		case audit.Spent:
			x.persons.yes, x.persons.used, after = r, true, min(i+1, len(x.entries)-1)
		default:
		}
	}
	x.told = &x.entries[len(x.entries)-1].Record
	for i := after; i < len(x.entries); i++ {
		if r := &x.entries[i].Record; r.Code != "" {
			x.told = r
			return
		}
	}
}

// names are the resources of the records that tell how it ended, each once.
func (x *explanation) names() []string {
	var names []string
	for _, e := range x.entries {
		if r := e.Record; r.Event == x.told.Event && r.Resource != "" && !slices.Contains(names, r.Resource) {
			names = append(names, r.Resource)
		}
	}
	return names
}

func (x *explanation) code() fault.Code {
	for _, c := range fault.Codes() {
		if c.String() == x.told.Code {
			return c
		}
	}
	if x.told.Code == "" {
		return fault.OK
	}
	return fault.Bug
}

// shown are the names for a person.
func shown(names []string) string {
	text := ""
	for _, n := range names {
		text += " " + textsafe.Word(n)
	}
	return text
}
