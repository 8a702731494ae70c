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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
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
		Short: "check that nothing in the log was changed, and nothing cut off",
		Example: `  postern log verify
  postern log verify --anchor /media/stick/anchors
  postern log verify --dir copy/audit --key laptop.key --anchor laptop.anchor`,
		Long: `every record is hashed again and compared with every signed checkpoint. each
problem is one line with its kind and its place, file:line

without an anchor that was kept elsewhere nobody can see that a program of the
same user cut off the newest records, or wrote the log anew with its key. FILE
may hold all that were kept, one after the other: each must fit

--dir is the folder of the segments of another log, as a copy, or one that was
put aside. its key is --key, or the file called key in it, or this machine's

exit 0 all is as it was signed; 8 changed or cut off; 5 the key or the anchor
belong to another log; 1 there is no log`,
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
	s, err := o.find(env)
	if err != nil {
		return err
	}
	var kept []seal.Checkpoint
	if o.anchor != "" {
		if kept, err = readAnchors(env, o.anchor); err != nil {
			return err
		}
	}
	check := verify.Options{Dir: s.audit()}
	if o.dir == "" {
		if check.Signed, err = audit.LastSigned(s.dir); err != nil {
			return unreadable(err)
		}
	}
	if !s.segments && kept == nil && check.Signed == nil {
		if err := s.gone(); err != nil {
			return err
		}
		return s.noLog(opVerify)
	}
	if check.Verifier, err = o.verifier(env, s, kept); err != nil {
		return err
	}
	anchors := ofLog(kept, check.Verifier.Origin())
	check.Anchor = anchors.newest
	tell, done := showProgress(env)
	check.Progress = tell
	report, err := verify.Check(ctx, check)
	done()
	if err == nil {
		err = anchors.look(s.audit(), &report)
	}
	if err != nil {
		return readError(ctx, err)
	}
	return o.answer(env, s, report)
}

// find is the log that is checked.
func (o *verifyOptions) find(env *Env) (*logState, error) {
	s, err := findLog(env)
	if err != nil || o.dir == "" {
		return s, err
	}
	files, err := segment.List(o.dir)
	if err == nil && len(files) == 0 {
		err = fs.ErrNotExist
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{
			Code: fault.PathMissing, Op: opVerify, Resource: o.dir, Rule: "there is no segment of a log in it",
			Hint: "give the folder that holds files like 000001.jsonl",
		}
	case err != nil:
		return nil, unreadable(err)
	}
	return &logState{dir: s.dir, segments: true, other: o.dir}, nil
}

// verifier is the key that the log is checked with.
func (o *verifyOptions) verifier(env *Env, s *logState, kept []seal.Checkpoint) (v seal.Verifier, err error) {
	var line string
	switch inside := filepath.Join(o.dir, "key"); {
	case o.key != "":
		return readVerifier(o.key)
	case o.dir != "" && fileExists(inside):
		fmt.Fprintln(env.Err, "the key is the one that lies with the log; give --key for one that was kept elsewhere")
		return readVerifier(inside)
	default:
		line, err = s.verifierLine(opVerify)
	}
	if fault.CodeOf(err) == fault.PathMissing && len(kept) > 0 {
		return v, &fault.Error{
			Code: fault.AuditTruncated, Op: opVerify, Resource: s.dir,
			Rule: fmt.Sprintf("the anchor is of %d records, and there is neither a log nor its key", kept[len(kept)-1].Size),
		}
	}
	if err == nil {
		v, err = seal.ParseVerifier(line)
	}
	return v, err
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
		Code: fault.ConfigInvalid, Op: opVerify, Resource: given, Rule: "it is neither a verifier's line nor a file with one",
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
		if f.Code != fault.ConfigInvalid && o.dir == "" {
			f.Hint = "keep a copy of " + textsafe.Name(s.audit()) + ", find out what changed it, then go on: postern log anchor --renew"
		}
		if f.Code == fault.ConfigInvalid {
			f.Hint = "give the key and the anchor of this log"
		}
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

func (o *verifyOptions) print(w io.Writer, r verify.Report, f *fault.Error) {
	line := func(what string, p verify.Finding) {
		at := ""
		if p.Place() != "" {
			at = " at " + textsafe.Name(p.Place())
		}
		fmt.Fprintf(w, "%s: %s%s: %s\n", what, p.Kind, at, textsafe.Clean(p.Text))
	}
	for _, p := range r.Problems {
		if p.Kind == verify.UnknownKey || p.Kind == verify.BadAnchor {
			line("not checked", p) // that says nothing about the log
			continue
		}
		line("broken", p)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "broken: %d more\n", r.More)
	}
	for _, p := range r.Notes {
		line("note", p)
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
	if o.anchor == "" {
		fmt.Fprintln(w, "not checked: an anchor that was kept elsewhere (--anchor)")
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
			fmt.Fprintf(env.Err, "\rverified %d %% of %d MiB", done*100/total, total>>20)
		}
	}
	return tell, func() {
		if shown {
			fmt.Fprint(env.Err, "\r                                        \r")
		}
	}
}
