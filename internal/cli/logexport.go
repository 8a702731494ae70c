// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/postern-gate/postern/internal/state/audit/export"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

type exportOptions struct {
	logFilter
	format, last string
	follow       bool
}

func newLogExport(env *Env) *cobra.Command {
	var o exportOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export --format FORMAT [flags]",
		Short: "print the records in the words of OCSF or OpenTelemetry",
		Example: `  postern log export --format ocsf --since 2026-11-30
  postern log export --format otel --follow --last 0 >> postern.otlp.jsonl
  postern log export --format ocsf --event refusal`,
		Long: `one JSON object a line: an event of OCSF ` + export.OCSFVersion + `, or a message of OTLP
with one log record, in the names of ` + export.OTelVersion + `.
docs/log.md has the mapping

all that fit are printed, with --follow too, so that one that is started again
prints them again: --last 0 begins with what is new, --since closes a gap

what comes out can't be verified: the stored records are the evidence. lines
that are not records are left out and counted on stderr`,
		DisableFlagsInUseLine: true,
		Args:                  exactly(),
		RunE:                  func(cmd *cobra.Command, _ []string) error { return o.export(cmd.Context(), env) },
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
	textFlag(cmd, &o.format, "format", "FORMAT", "ocsf or otel", "ocsf", "otel")
	o.flags(cmd)
	textFlag(cmd, &o.last, "last", "N", "the newest N of those that fit; 0 with --follow: only new ones")
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with what is recorded from now on, until interrupted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print errors as JSON too; the records always are")
	return cmd
}

func (o *exportOptions) export(ctx context.Context, env *Env) error {
	if o.format == "" {
		return usage("postern log export", "--format is missing", "--format ocsf, or --format otel")
	}
	filter, err := o.parse("postern log export", time.Now())
	if err != nil {
		return err
	}
	last := -1
	if o.last != "" {
		if last, err = parseLast("postern log export", o.last); err != nil {
			return err
		}
	}
	s, err := logToRead(env, "log export")
	if err != nil || !s.segments && !o.follow {
		return err
	}
	what := reading{filter: &filter, follow: o.follow, empty: last == 0}
	if _, err := what.begin(ctx, s, last); err != nil {
		return err
	}
	left := 0
	err = eachRecord(ctx, env, s, what, o.printer(&left))
	if left > 0 {
		fmt.Fprintf(env.Err, "lines that are not records were left out: %d; postern log verify tells more\n", left)
	}
	return err
}

// printer prints a record in the words of the format, and counts what is none.
func (o *exportOptions) printer(left *int) func(io.Writer, *records.Entry) error {
	host, _ := os.Hostname() // without a name the event has none
	origin := export.Origin{Host: host, Version: buildVersion()}
	return func(w io.Writer, e *records.Entry) error {
		switch record := e.Err == nil; {
		case record && o.format == "ocsf":
			return encode(w, export.OCSF(&e.Record, origin), "")
		case record:
			return encode(w, export.OTel(&e.Record, origin), "")
		}
		*left++
		return nil
	}
}
