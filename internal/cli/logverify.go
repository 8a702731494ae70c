// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

const opVerify = "log verify"

type verifyOptions struct {
	anchor, key, dir string
	asJSON           bool
}

func newLogVerify(env *Env) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "check that nothing in the log was changed or cut off",
		Example: `  postern log verify
  postern log verify --anchor /media/stick/anchors
  postern log verify --dir copy/audit --key laptop.key --anchor laptop.anchor`,
		Long: `every record is hashed again and compared with every signed checkpoint. each
problem is one line with its kind and its place, file:line

without an anchor that was kept elsewhere nobody can see that a program of the
same user cut off the newest records, or wrote the log anew with its key. FILE
holds all that were kept, one after the other: each must fit. one of a log that
was put aside must fit that one, and a renewal must lead to it

--dir is the folder of the segments of another log, as a copy, or one that was
put aside. its key is --key, or the file called key in it, or this machine's

exit 0 all is as it was signed; 8 changed, cut off, or its key is gone; 5 the
key or an anchor belongs to another log, as when this one was replaced; 2 no key
or no anchor where one was given; 1 there is no log`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE:                  func(cmd *cobra.Command, _ []string) error { return o.verify(cmd.Context(), env) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	textFlag(cmd, &o.anchor, "anchor", "FILE", "a checkpoint that postern log anchor printed; - is stdin")
	textFlag(cmd, &o.key, "key", "LINE|FILE", "the verifier's line that postern log key printed")
	textFlag(cmd, &o.dir, "dir", "DIR", "the segments of another log than that of this machine")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func (o *verifyOptions) verify(ctx context.Context, env *Env) error {
	var kept []seal.Checkpoint
	var err error
	if o.anchor != "" {
		if kept, err = readAnchors(env, o.anchor); err != nil {
			return err
		}
	}
	s, err := o.find(env, kept)
	if err != nil {
		return err
	}
	check := verify.Options{Dir: s.audit()}
	if check.Signed, err = lastSigned(cmp.Or(o.dir, s.dir)); err != nil {
		return unreadable(err)
	}
	if !s.segments && kept == nil && !s.signed && !s.key {
		return s.noLog(opVerify)
	}
	if !s.segments && kept == nil && check.Signed == nil && o.dir == "" {
		return s.gone(opVerify)
	}
	if check.Verifier, err = o.verifier(env, s, kept); err != nil {
		return err
	}
	report, err := compare(ctx, env, check, kept)
	if err != nil {
		return readError(ctx, err)
	}
	return o.answer(env, s, report)
}

// compare checks the log against everything that was kept of it.
func compare(ctx context.Context, env *Env, check verify.Options, kept []seal.Checkpoint) (verify.Report, error) {
	own, others := byLog(kept, check.Verifier.Origin())
	check.Anchors = own
	tell, done := showProgress(env)
	check.Progress = tell
	report, err := verify.Check(ctx, check)
	done()
	if err == nil {
		err = settle(ctx, check.Dir, others, &report)
	}
	return report, err
}

// lastSigned is what is remembered in a folder. One that is no checkpoint is
// for the check to judge.
func lastSigned(dir string) (*seal.Checkpoint, error) {
	c, err := audit.LastSigned(dir)
	if errors.Is(err, seal.ErrFormat) {
		return &seal.Checkpoint{}, nil
	}
	return c, err
}

// find is the log that is checked.
func (o *verifyOptions) find(env *Env, kept []seal.Checkpoint) (*logState, error) {
	if o.dir == "" {
		return findLog(env)
	}
	dir, err := enforce.LocateState(env.Getenv)
	if err != nil {
		return nil, err
	}
	files, err := segment.List(o.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(err)
	}
	there := &logState{
		dir: dir, other: o.dir, segments: len(files) > 0,
		key: fileExists(filepath.Join(o.dir, "key")), signed: fileExists(filepath.Join(o.dir, "checkpoint")),
	}
	if !there.segments && !there.key && !there.signed && kept == nil {
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: opVerify, Resource: o.dir, Rule: "there is no segment of a log in it",
			Hint: "give the folder that holds files like 000001.jsonl",
		}
	}
	return there, nil
}

// verifier is the key that the log is checked with.
func (o *verifyOptions) verifier(env *Env, s *logState, kept []seal.Checkpoint) (v seal.Verifier, err error) {
	if o.key != "" {
		return readVerifier(o.key)
	}
	if inside := filepath.Join(o.dir, "key"); o.dir != "" && fileExists(inside) {
		if v, err = readVerifier(inside); err == nil {
			fmt.Fprintln(env.Err, "the key is the one that lies with the log; give --key for one that was kept elsewhere")
			return v, nil
		}
		return v, noKey(o.dir, "the file key in it holds no verifier's line")
	}
	var line string
	switch {
	case o.dir != "":
		if err := enforce.CheckState(s.dir); err != nil {
			return v, err
		}
		if line, err = audit.VerifierLine(s.dir); err != nil {
			return v, noKey(o.dir, "there is no key in it, and none of this machine")
		}
	default:
		line, err = s.verifierLine(opVerify)
	}
	if fault.CodeOf(err) == fault.PathMissing && len(kept) > 0 {
		return v, &fault.Error{
			Code: fault.AuditTruncated, Op: opVerify, Resource: s.dir,
			Rule: fmt.Sprintf("the anchor is of %d records, and there is neither a log nor its key", kept[len(kept)-1].Size),
			Hint: "put the state directory back, and find out what removed it",
		}
	}
	if err == nil {
		v, err = seal.ParseVerifier(line)
	}
	return v, err
}

func noKey(dir, because string) error {
	return &fault.Error{
		Code: fault.RequestInvalid, Op: opVerify, Resource: dir, Rule: because,
		Hint: "give --key: the line that postern log key printed where the log is from",
	}
}

func fileExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// readVerifier reads a verifier's line, or the first one in a file.
func readVerifier(given string) (seal.Verifier, error) {
	if v, err := seal.ParseVerifier(given); err == nil {
		return v, nil
	}
	text, err := readSmall(given)
	for line := range strings.Lines(text) {
		if v, err := seal.ParseVerifier(line); err == nil {
			return v, nil
		}
	}
	return seal.Verifier{}, &fault.Error{
		Code: fault.RequestInvalid, Op: opVerify, Resource: given, Rule: "it is neither a verifier's line nor a file with one",
		Hint: "give what postern log key printed", Err: err,
	}
}

type verifyJSON struct {
	document
	verify.Report
	OK   bool   `json:"ok"`
	Code string `json:"code,omitempty"`
	Hint string `json:"hint,omitempty"`
}

func (o *verifyOptions) answer(env *Env, s *logState, report verify.Report) error {
	problem := report.Err()
	out := verifyJSON{document: newDocument("log-verify"), Report: report, OK: problem == nil}
	if out.Problems == nil {
		out.Problems = []verify.Finding{}
	}
	if out.Notes == nil {
		out.Notes = []verify.Finding{}
	}
	f := fault.As(problem)
	if f != nil {
		f.Hint = o.next(s, &report, f.Code)
		out.Code, out.Hint = f.Code.String(), f.Next()
	}
	if err := answer(env.Out, o.asJSON, out, func(w io.Writer) { o.print(w, report, f) }); err != nil {
		return err
	}
	switch {
	case f == nil:
		return nil
	case o.asJSON:
		return exitCode(f.Code.Exit())
	default:
		return f
	}
}

// next is the step after a problem, "" for the table's.
func (o *verifyOptions) next(s *logState, r *verify.Report, code fault.Code) string {
	switch {
	case code == fault.ConfigInvalid && r.Signer != "":
		return "give the key of " + textsafe.Name(r.Signer) + " with --key"
	case code == fault.ConfigInvalid && r.Anchors == nil:
		return "give the key of this log with --key"
	case code == fault.ConfigInvalid:
		return "if these are anchors of this machine, keep a copy of " + textsafe.Name(s.audit()) + " and find out what replaced the log; else give those of this log"
	case onlyEnded(r):
		return "postern log verify --dir on that folder tells more; from now on keep the anchors of a log that was put aside in a file of their own"
	case o.dir != "":
		return ""
	case r.OnlyAtEnd():
		return "nothing that was signed is touched, and the next writer names it: postern log anchor"
	default:
		return "keep a copy of " + textsafe.Name(s.audit()) + ", find out what changed it, then go on: postern log anchor --renew"
	}
}

// onlyEnded reports whether nothing is wrong with the log itself.
func onlyEnded(r *verify.Report) bool {
	return r.More == 0 && !slices.ContainsFunc(r.Problems, func(p verify.Finding) bool { return p.Kind != verify.EndedAnchor })
}

// finding is a line about a problem or a note, with its place where it has one.
func finding(w io.Writer, what string, p verify.Finding) {
	at := ""
	if p.Place() != "" {
		at = " at " + textsafe.Name(p.Place())
	}
	fmt.Fprintf(w, "%s: %s%s: %s\n", what, p.Kind, at, textsafe.Clean(p.Text))
}

func problems(w io.Writer, r *verify.Report) {
	for _, p := range r.Problems {
		if p.Kind == verify.UnknownKey || p.Kind == verify.BadAnchor {
			finding(w, "not checked", p) // that says nothing about the log
			continue
		}
		finding(w, "broken", p)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "broken: %d more\n", r.More)
	}
}

func (o *verifyOptions) print(w io.Writer, r verify.Report, f *fault.Error) {
	problems(w, &r)
	for _, p := range r.Notes {
		finding(w, "note", p)
	}
	if f != nil {
		return
	}
	fmt.Fprintf(w, "ok: %d records in %s", r.Records, counted(r.Segments, "segment"))
	if r.Pruned > 0 {
		fmt.Fprintf(w, ", of %d only the hashes", r.Pruned)
	}
	fmt.Fprintf(w, "\nlog: %s\nroot: %s of %d records\n", textsafe.Name(r.Origin), r.Root, r.Sealed)
	if r.Unsealed > 0 {
		fmt.Fprintf(w, "not sealed yet: %d\n", r.Unsealed)
	}
	switch a := r.Anchors; {
	case a == nil:
		fmt.Fprintln(w, "not checked: an anchor that was kept elsewhere (--anchor)")
	case a.Checked == 0:
		fmt.Fprintf(w, "anchors: none of this log; %d fit logs that were put aside\n", a.Ended)
	case a.Ended == 0:
		fmt.Fprintf(w, "anchors: %d fit, the newest of %d records\n", a.Checked, a.Newest)
	default:
		fmt.Fprintf(w, "anchors: %d fit, the newest of %d records; %d more fit logs that were put aside\n", a.Checked, a.Newest, a.Ended)
	}
}

// showProgress tells a person how far it is, once it takes more than a second.
func showProgress(env *Env) (tell func(done, total int64), end func()) {
	if !onTerminal(env.Err) {
		return nil, func() {}
	}
	next, shown := time.Now().Add(time.Second), false
	tell = func(done, total int64) {
		if now := time.Now(); now.After(next) && total > 0 {
			next, shown = now.Add(200*time.Millisecond), true
			fmt.Fprintf(env.Err, "\rverified %d %% of %s", done*100/total, sizeText(total))
		}
	}
	return tell, func() {
		if shown {
			fmt.Fprint(env.Err, "\r                                        \r")
		}
	}
}
