// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

type pruneOptions struct {
	keep           string
	dryRun, asJSON bool
}

func newLogPrune(env *Env) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune [flags]",
		Short: "remove old records, and keep the rest verifiable",
		Example: `  postern log prune --dry-run
  postern log prune --keep 30d`,
		Long: `the records of each segment that ended longer ago than audit.keep of the policy
are removed. the hashes of its lines stay, so that everything else, and every
anchor, can still be verified. that it was done is recorded. a segment that is
not as it was signed stays: it is evidence

DURATION is 36h or 90d`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE:                  func(*cobra.Command, []string) error { return o.prune(env) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	textFlag(cmd, &o.keep, "keep", "DURATION", "in the place of audit.keep")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

type prunedJSON struct {
	Segment string    `json:"segment"`
	Records int64     `json:"records"`
	Newest  time.Time `json:"newest"`
	Bytes   int64     `json:"bytes"`
}

type pruneJSON struct {
	document
	Keep     string       `json:"keep"`
	DryRun   bool         `json:"dry_run"`
	Segments []prunedJSON `json:"segments"`
}

func (o *pruneOptions) prune(env *Env) error {
	keep, err := o.age(env)
	if err != nil {
		return err
	}
	s, err := logToWrite(env, "log prune")
	if err == nil {
		err = cmp.Or(s.gone("log prune"), s.keyless("log prune"))
	}
	if err != nil {
		return err
	}
	l, err := audit.Open(s.dir, audit.Options{})
	if err != nil {
		return err
	}
	pruned, failed := l.Prune(keep, o.dryRun)
	failed = named(errors.Join(failed, l.Close()), "log prune")
	out := pruneJSON{newDocument("log-prune"), keep.String(), o.dryRun, []prunedJSON{}}
	for _, p := range pruned {
		out.Segments = append(out.Segments, prunedJSON{segment.Path("", p.Number, segment.Lines), p.Records, p.Newest, p.Bytes})
	}
	if err := answer(env.Out, o.asJSON, out, out.print); err != nil {
		return err
	}
	return failed
}

// age is how old a segment may get.
func (o *pruneOptions) age(env *Env) (time.Duration, error) {
	if o.keep == "" {
		var policy options
		w, err := policy.loadHere(env)
		if err != nil {
			return 0, err
		}
		return w.live.Current().Settings.Audit.Keep, nil
	}
	keep, err := records.ParseAge(o.keep)
	if err != nil {
		return 0, usage("postern log prune", "--keep "+textsafe.Name(o.keep)+": "+err.Error(), "")
	}
	return keep, nil
}

func (p pruneJSON) print(w io.Writer) {
	done := "removed"
	if p.DryRun {
		done = "would be removed"
	}
	var bytes int64
	for _, s := range p.Segments {
		bytes += s.Bytes
		fmt.Fprintf(w, "%s: %s, %d records, the newest of %s\n", done, s.Segment, s.Records, s.Newest.Local().Format(time.DateTime))
	}
	if len(p.Segments) == 0 {
		fmt.Fprintln(w, "nothing is old enough")
		return
	}
	fmt.Fprintf(w, "in all: %s, %s\n", counted(len(p.Segments), "segment"), sizeText(bytes))
}
