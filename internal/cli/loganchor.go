// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

type anchorOptions struct{ renew, yes, asJSON bool }

func newLogAnchor(env *Env) *cobra.Command {
	var o anchorOptions
	cmd := &cobra.Command{
		Use:   "anchor [flags]",
		Short: "print a checkpoint to keep elsewhere, or go on after a break",
		Example: `  postern log anchor
  postern log anchor | ssh vault 'cat >> anchors/laptop'
  postern log anchor --renew`,
		Long: `the log is verified, what is not sealed yet is sealed, and the newest signed
checkpoint is printed; of a log that is broken none is. kept where no program of
this user can change it, it shows later that nothing before it was changed or
cut off: postern log verify --anchor FILE

--renew is for a person, once it is clear why the log is broken: it is put aside
as it is, and another one begins, with a new key and name, whose first record
has the old size and root. on a terminal it asks; without one it needs --yes`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.renew {
				return o.again(cmd.Context(), env)
			}
			return o.anchor(cmd.Context(), env)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&o.renew, "renew", false, "put a broken log aside and begin another one")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --renew: it is meant, don't ask")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// logToWrite is the state directory for a verb that writes to its log. No verb
// but serve makes one.
func logToWrite(env *Env, op string) (*logState, error) {
	s, err := findLog(env)
	if err != nil {
		return nil, err
	}
	if !s.segments && !s.key && !s.signed {
		return nil, s.noLog(op)
	}
	dir, err := state.Open(s.dir)
	if err != nil {
		return nil, err
	}
	s.dir = dir.Path()
	return s, nil
}

type anchorJSON struct {
	document
	Origin string `json:"origin"`
	Size   int64  `json:"size"`
	Root   string `json:"root"`
	Note   string `json:"note"`
}

const opAnchor = "log anchor"

func (o *anchorOptions) anchor(ctx context.Context, env *Env) error {
	if o.yes {
		return usage("postern log anchor", "--yes is for --renew", "")
	}
	s, err := logToWrite(env, opAnchor) //nolint:contextcheck // what is upgraded is small
	if err == nil {
		err = cmp.Or(s.gone(opAnchor), s.keyless(opAnchor))
	}
	if err != nil {
		return err
	}
	note, err := s.sealed(ctx, env)
	if err != nil {
		return named(err, opAnchor)
	}
	c, err := seal.Peek(note)
	if err != nil {
		return err
	}
	if !o.asJSON && onTerminal(env.Err) { // cron mails what is said
		fmt.Fprintf(env.Err, "a checkpoint of %d records; keep it where no program of this user can change it\n", c.Size)
	}
	out := anchorJSON{newDocument("log-anchor"), c.Origin, c.Size, c.Root.String(), note}
	return answer(env.Out, o.asJSON, out, func(w io.Writer) { fmt.Fprint(w, textsafe.Block(note)) })
}

// sealed verifies the log, seals it and returns its newest checkpoint: a
// checkpoint of a broken log would only cover up the break. Lines at the end
// that are no records are no break. They are named, and then it is verified
// again.
func (s *logState) sealed(ctx context.Context, env *Env) (string, error) {
	r, err := s.check(ctx, env)
	if err != nil {
		return "", readError(ctx, err)
	}
	if f := fault.As(r.Err()); f != nil && !r.OnlyAtEnd() {
		return "", refused(f)
	}
	note, err := sealOnce(s.dir, r.AtEnd)
	if err != nil || r.AtEnd == 0 {
		return note, err
	}
	fmt.Fprintf(env.Err, "lines at the end that are not records were named: %d\n", r.AtEnd)
	if r, err = s.check(ctx, env); err != nil {
		return "", readError(ctx, err)
	}
	if f := fault.As(r.Err()); f != nil {
		return "", refused(f)
	}
	return note, nil
}

// refused is the answer in the place of an anchor.
func refused(f *fault.Error) error {
	f.Op, f.Hint = opAnchor, "no anchor is given of it: postern log verify tells what is wrong"
	return f
}

// check compares the log with its own key and what is remembered of it.
func (s *logState) check(ctx context.Context, env *Env) (verify.Report, error) {
	signed, err := lastSigned(s.dir)
	if err != nil {
		return verify.Report{}, err
	}
	line, err := s.verifierLine(opAnchor)
	if err != nil {
		return verify.Report{}, err
	}
	v, err := seal.ParseVerifier(line)
	if err != nil {
		return verify.Report{}, err
	}
	return compare(ctx, env, verify.Options{Dir: s.audit(), Verifier: v, Signed: signed}, nil)
}

// namedAtOnce is how many lines that are no records a writer names before each
// checkpoint.
const namedAtOnce = 100

// sealOnce seals the log, with lines to be named, and returns its newest
// checkpoint.
func sealOnce(dir string, lines int) (note string, err error) {
	l, err := audit.Open(dir, audit.Options{})
	if err != nil {
		return "", err
	}
	for range 1 + lines/namedAtOnce {
		if note, err = l.Anchor(); err != nil {
			break
		}
	}
	if closing := l.Close(); err == nil {
		err = closing
	}
	return note, err
}

// named gives a fault of the log the name of the verb that met it.
func named(err error, op string) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Op != "" {
		return err
	}
	known := *f
	known.Op = op
	return &known
}

type renewJSON struct {
	document
	OldOrigin string `json:"old_origin"`
	OldSize   int64  `json:"old_size"`
	OldRoot   string `json:"old_root"`
	Found     int64  `json:"found"`
	Aside     string `json:"aside"`
	Note      string `json:"note"`
}

func (o *anchorOptions) again(ctx context.Context, env *Env) error {
	if o.yes || !terminal(env.In) {
		if err := aPerson(env, "log anchor --renew"); err != nil {
			return err
		}
	}
	s, err := logToWrite(env, "log anchor --renew") //nolint:contextcheck // what is upgraded is small
	if err != nil {
		return err
	}
	if !o.yes {
		if err := o.ask(ctx, env, s); err != nil {
			return err
		}
	}
	r, err := audit.Renew(s.dir)
	if err != nil {
		return named(err, "log anchor --renew")
	}
	out := renewJSON{newDocument("log-renew"), r.OldOrigin, r.OldSize, r.OldRoot, r.Found, r.Aside, r.Note}
	return answer(env.Out, o.asJSON, out, func(w io.Writer) {
		if r.OldOrigin == "" {
			fmt.Fprintln(w, "renewed: a log of which neither key nor checkpoint was left")
		} else {
			fmt.Fprintf(w, "renewed: the old log %s\n", textsafe.Name(r.OldOrigin))
		}
		if r.OldRoot == "" {
			fmt.Fprintf(w, "recorded: nothing is remembered of what was signed; %d found\n", r.Found)
		} else {
			fmt.Fprintf(w, "recorded: %d records signed, root %s; %d found\n", r.OldSize, textsafe.Name(r.OldRoot), r.Found)
		}
		fmt.Fprintf(w, "put aside: %s\n", textsafe.Name(r.Aside))
		if c, err := seal.Peek(r.Note); err == nil {
			fmt.Fprintf(w, "goes on as: %s\n", textsafe.Name(c.Origin))
		}
		fmt.Fprintln(w, "its key is a new one: postern log key")
	})
}

// ask shows what would be put aside and wants a yes from a person.
func (o *anchorOptions) ask(ctx context.Context, env *Env, s *logState) error {
	no := &fault.Error{
		Code: fault.PolicyAsk, Op: "log anchor --renew", Rule: "a person has to say yes to it",
		Hint: "run it on a terminal, or add --yes",
	}
	if o.asJSON || !terminal(env.In) {
		return no
	}
	fmt.Fprintln(env.Err, "this puts the log aside as it is and begins another one, with a new key")
	describe(ctx, env, s)
	fmt.Fprint(env.Err, "type yes to go on: ")
	line, err := readLine(ctx, env.In)
	if ctx.Err() != nil {
		return err
	}
	if line != "yes\n" && line != "yes\r\n" {
		no.Rule, no.Hint = "it was not answered with yes", "nothing was changed; to renew it after all, run it again and type yes"
		return no
	}
	return nil
}

// describe says what of the log is there and what is wrong with it, as far as
// that can be told.
func describe(ctx context.Context, env *Env, s *logState) {
	signed, _ := audit.LastSigned(s.dir) // then nothing is said of it
	if signed != nil && signed.Origin != "" {
		fmt.Fprintf(env.Err, "signed: %d records, root %s\n", signed.Size, signed.Root)
	}
	if err := s.keyless(opAnchor); err != nil {
		fmt.Fprintln(env.Err, "broken: its key is gone")
		return
	}
	r, err := s.check(ctx, env)
	if err != nil {
		fmt.Fprintln(env.Err, "it can't be read")
		return
	}
	fmt.Fprintf(env.Err, "found: %d records in %s\n", r.Records, counted(r.Segments, "segment"))
	problems(env.Err, &r)
	if len(r.Problems) == 0 {
		fmt.Fprintln(env.Err, "nothing is wrong with it")
	}
}
