// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

const (
	lastOnTerminal = 50     // a screen or two
	lastBefore     = 10     // of --follow, as tail -f has it
	lastMost       = 100000 // places that are kept in memory
)

// logOptions are the flags of postern log.
type logOptions struct {
	logFilter
	last                      string
	all, follow, long, asJSON bool
}

func newLog(env *Env) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "log [flags] [VERB]",
		Short: "show what was decided and done, and verify the record of it",
		Example: `  postern log                                  the newest records
  postern log --follow --event refusal         refusals, as they happen
  postern log --since 2h --op 'fs.*' --resource src
  postern log --corr 4fd1c0a2b3e5-7            all that belongs to one call
  postern log --json --all | jq .op
  postern log verify                           was anything changed or cut off`,
		Long: `one line a record: time, agent, event, operation and resource; of what was
refused or failed also the code and the reason. a folder that a call was in is
told where this one doesn't lie in it. this only reads, and so do the verbs
export, key and verify; anchor and prune write to the log

of the records that fit, all are shown, but on a terminal and without a filter
the newest 50. --follow begins with the newest 10, in a pipe too and with any
filter, and ends when nobody reads it any more. --last N or --all changes both

a filter chooses what is equal; --op and --code also take the beginning of a
name and a star. PATTERN is one of the policy's: it stands for what it names and
all beneath, and root:// before it names the root. a name that is private is
recorded as a class and a hash: 'dotenv:*'

TIME is 2026-11-30, 2026-11-30 14:05 or RFC 3339, or how long ago: 90m, 2h, 3d

--json prints the records as they are stored, one a line. a line that is not a
record has an object with "place" and "garbage" in its stead`,
		DisableFlagsInUseLine:      true,
		Args:                       noLogVerb,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return o.show(cmd.Context(), env) },
		ValidArgsFunction:          cobra.NoFileCompletions,
	}
	o.flags(cmd)
	cmd.Flags().VarP(&text{value: &o.last, kind: "N"}, "last", "n", "the newest N of those that fit; 0 with --follow: only new ones")
	cmd.Flags().BoolVar(&o.all, "all", false, "every record, on a terminal and with --follow too")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with what is recorded from now on, until interrupted")
	cmd.Flags().BoolVar(&o.long, "long", false, "every field of a record (with --corr too)")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print the records as JSON lines, errors as JSON")
	cmd.AddCommand(newLogVerify(env), newLogKey(env), newLogAnchor(env), newLogPrune(env), newLogExport(env))
	return cmd
}

// noLogVerb is for what stands where a verb of log would.
func noLogVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	next := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		next = "postern log " + near[0] + " --help"
	}
	return usage("postern log", "there is no verb "+textsafe.Name(args[0]), next)
}

// logState is the state directory, and of its log whether there is one.
type logState struct {
	dir      string
	other    string // the folder of its segments where that is elsewhere
	segments bool   // there is at least one segment
	key      bool   // there was a log: its key is there
	signed   bool   // there was a log: its last checkpoint is remembered
}

func (s *logState) audit() string {
	if s.other != "" {
		return s.other
	}
	return filepath.Join(s.dir, "audit")
}

// stateToRead is the state directory for a verb that only reads. Nothing is made,
// so it may be absent; what is there is this user's own and of a known layout.
func stateToRead(env *Env) (string, error) {
	dir, err := enforce.LocateState(env.Getenv)
	if err == nil {
		err = enforce.CheckState(dir)
	}
	return dir, err
}

// findLog looks what there is, and makes nothing.
func findLog(env *Env) (*logState, error) {
	dir, err := stateToRead(env)
	if err != nil {
		return nil, err
	}
	s := &logState{dir: dir}
	files, err := segment.List(s.audit())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(err)
	}
	s.segments = len(files) > 0
	_, err = audit.VerifierLine(dir)
	s.key = !errors.Is(err, fs.ErrNotExist)
	signed, err := audit.LastSigned(dir)
	s.signed = signed != nil || err != nil
	return s, nil
}

// gone is the error of a log of which there is no segment any more.
func (s *logState) gone(op string) error {
	left := "its key is there"
	switch {
	case s.segments || !s.key && !s.signed:
		return nil
	case !s.key:
		left = "its last checkpoint is remembered"
	}
	return &fault.Error{
		Code: fault.AuditTruncated, Op: op, Resource: s.audit(), Rule: "there is no segment left, and there was a log: " + left,
		Hint: "put the files back, or go on without them: postern log anchor --renew",
	}
}

func unreadable(err error) error {
	return &fault.Error{Code: fault.IOFailed, Op: "log", Rule: "the log can't be read", Hint: "look at who may read the state directory", Err: err}
}

func (o *logOptions) show(ctx context.Context, env *Env) error {
	filter, err := o.parse("postern log", time.Now())
	if err != nil {
		return err
	}
	last, err := o.count(env, filter.Zero())
	if err != nil {
		return err
	}
	s, err := logToRead(env, "log")
	if err != nil || !s.segments && !o.follow {
		return err
	}
	what := reading{filter: &filter, follow: o.follow, empty: last == 0}
	more, err := what.begin(ctx, s, last)
	if err != nil {
		return err
	}
	if more && o.last == "" && !o.follow {
		fmt.Fprintln(env.Err, "older ones are not shown; --all shows every record")
	}
	print := (&logPrinter{long: o.long || o.corr != "", here: workDir(env), home: homeOf(env)}).text
	if o.asJSON {
		print = printJSON
	}
	return eachRecord(ctx, env, s, what, print)
}

// workDir is where the command runs, as it was entered and without links; none
// where that can't be told.
func workDir(env *Env) (here []string) {
	dir, err := env.Getwd()
	if err != nil {
		return nil
	}
	here = append(here, dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		here = append(here, real)
	}
	return here
}

// logToRead is the state directory for a verb that shows records. That there
// is no log yet is said and is no error.
func logToRead(env *Env, op string) (*logState, error) {
	s, err := findLog(env)
	if err == nil {
		err = s.gone(op)
	}
	if err == nil && !s.segments {
		fmt.Fprintln(env.Err, "there is no log yet: nothing was recorded in "+textsafe.Name(s.dir))
	}
	return s, err
}

// noneFits says that an empty answer is the answer.
func noneFits(env *Env, filter *records.Filter) {
	if filter.Zero() {
		fmt.Fprintln(env.Err, "there is no record in the log")
		return
	}
	fmt.Fprintln(env.Err, "no record fits")
}

// count is how many of the newest records are shown, -1 for all.
func (o *logOptions) count(env *Env, unfiltered bool) (int, error) {
	switch {
	case o.last != "" && o.all:
		return 0, usage("postern log", "--last and --all exclude each other", "")
	case o.last != "":
		return parseLast("postern log", o.last)
	case o.all:
		return -1, nil
	case o.follow:
		return lastBefore, nil
	case unfiltered && onTerminal(env.Out):
		return lastOnTerminal, nil
	default:
		return -1, nil
	}
}

func parseLast(verb, s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > lastMost {
		return 0, usage(verb, "--last takes a number up to "+strconv.Itoa(lastMost), "")
	}
	return n, nil
}

// onTerminal reports whether a person sees what is written there.
func onTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// reading is which records are read: those that the filter chooses, from a
// place on, and perhaps those that come later.
type reading struct {
	from   records.Cursor
	filter *records.Filter
	follow bool
	empty  bool // none was asked for
}

// begin goes to the place before the newest ones, all of them for less than 0,
// and reports whether there are older ones.
func (r *reading) begin(ctx context.Context, s *logState, last int) (more bool, err error) {
	if last < 0 {
		return false, nil
	}
	r.from, more, err = records.Newest(ctx, s.audit(), r.filter, last)
	return more, readError(ctx, err)
}

// eachRecord prints them, and says where none fits. What follows is written at
// once, and the end of whoever reads it ends this too.
func eachRecord(ctx context.Context, env *Env, s *logState, what reading, print func(io.Writer, *records.Entry) error) error {
	fit := false
	out := bufio.NewWriterSize(env.Out, 64<<10)
	r := records.NewReader(s.audit(), what.from)
	defer r.Close()
	one := func(e records.Entry) error {
		if !what.filter.Match(&e) {
			return nil
		}
		fit = true
		return print(out, &e)
	}
	err := r.Each(ctx, one)
	if err == nil && what.follow {
		if err = out.Flush(); err == nil {
			read, stop := whileRead(ctx, env.Out)
			err = r.Follow(read, func(e records.Entry) error { return errors.Join(one(e), out.Flush()) })
			stop()
		}
		err = errors.Join(err, ctx.Err())
	}
	if err = errors.Join(err, out.Flush()); err == nil && !fit && !what.empty && !what.follow {
		noneFits(env, what.filter)
	}
	return readError(ctx, err)
}

// whileRead is a context that ends when nobody reads w any more. Without that a
// follower would wait for one more record before it notices.
func whileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	f, ok := fileOf(w)
	if !ok {
		return ctx, stop
	}
	go func() {
		tick := time.NewTicker(records.PollEvery)
		defer tick.Stop()
		for !readerGone(f) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		stop()
	}()
	return ctx, stop
}

// readError leaves an interrupt and a fault as they are.
func readError(ctx context.Context, err error) error {
	var f *fault.Error
	if err == nil || ctx.Err() != nil || errors.As(err, &f) {
		return err
	}
	return unreadable(err)
}
