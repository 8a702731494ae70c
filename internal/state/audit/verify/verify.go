// SPDX-License-Identifier: Apache-2.0

// Package verify checks a log against its verifier's line. It changes nothing,
// takes no lock and reads each byte once, with one line in memory.
//
// Guaranteed for a log without a problem: every record that a checkpoint covers
// is byte for byte the one that was signed, in its order and with none missing
// between; with an anchor, the records before the anchor are those that were
// there when it was taken. Not guaranteed: that the key is still the secret of
// one program, that records which no checkpoint covers yet are unchanged, and,
// without an anchor that was kept elsewhere, that nothing was cut off at the
// end. docs/audit-log.md is the format, and says the same to somebody who
// does not trust this package.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// Options says which log is checked against what.
type Options struct {
	Dir      string // the folder of the segments; one that is missing is an empty log
	Verifier seal.Verifier
	// Signed is the last checkpoint by the state directory's own memory, nil
	// where there is none. Writers go on meanwhile, so it must have been read
	// before Check is called: a newer one than the log that Check sees is a log
	// that was cut off.
	Signed *seal.Checkpoint
	// Anchors are checkpoints that were kept elsewhere, Anchor one more or nil:
	// each must fit. Their signatures are checked here.
	Anchors []seal.Checkpoint
	Anchor  *seal.Checkpoint
	// Progress, when not nil, is told now and then how many of all bytes are done.
	Progress func(done, total int64)
}

// Kind is the stable word for what was found.
type Kind string

// The problems. Each means that the log is not what was signed.
const (
	Root           Kind = "root"            // records are not those that a checkpoint was signed for
	Sequence       Kind = "sequence"        // a checkpoint's size is not the number of records before it
	Previous       Kind = "previous"        // a checkpoint was left out
	Checkpoint     Kind = "checkpoint"      // a checkpoint's line is damaged or gone
	Signature      Kind = "signature"       // a checkpoint's signature is wrong
	Foreign        Kind = "foreign"         // a checkpoint of another log or key among those of this one
	BadHead        Kind = "head"            // a segment's first line is not the one that belongs there
	MissingSegment Kind = "missing_segment" // a number is left out
	Unsealed       Kind = "unsealed"        // lines at the end of an old segment that nothing covers
	Torn           Kind = "torn"            // a line without its end in an old segment
	Garbage        Kind = "garbage"         // a line that is not a record and that no event names; the next writer may
	Record         Kind = "record"          // a record without the fields that each has
	Pruned         Kind = "pruned"          // hashes in the place of a segment, and no event says why
	Truncated      Kind = "truncated"       // fewer records than were signed
	Anchor         Kind = "anchor"          // the records before the anchor are other ones
	EndedAnchor    Kind = "ended_anchor"    // an anchor of a log that was put aside doesn't fit that one
	Remembered     Kind = "remembered"      // the same for the state directory's own memory
	UnknownKey     Kind = "unknown_key"     // log or anchor belong to another key
	BadAnchor      Kind = "bad_anchor"      // the anchor is no signed checkpoint
)

// The notes. None of them means that anything is wrong.
const (
	TornTail     Kind = "torn_tail"     // a crash, or a write that is under way
	UnsealedTail Kind = "unsealed_tail" // records that no checkpoint covers yet
	ClockBack    Kind = "clock_back"    // the time went back without an event
	GivenUp      Kind = "given_up"      // lines that don't count, and an event says so
	Recovered    Kind = "recovered"     // an event says that a segment was lost, and it is whole
	Unchecked    Kind = "unchecked"     // what could not be compared because of a problem before
)

// Finding is a problem or a note, with its place.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Segment string `json:"segment,omitempty"` // the file's name
	Line    int    `json:"line,omitempty"`    // from 1, 0 for the whole file
	Text    string `json:"text"`
}

// Place returns file:line, or what of it there is.
func (f Finding) Place() string {
	if f.Line == 0 {
		return f.Segment
	}
	return fmt.Sprintf("%s:%d", f.Segment, f.Line)
}

// Most is how many problems, and how many notes, a report has at most.
const Most = 20

// Report is what a check found.
type Report struct {
	Origin   string    `json:"origin"`               // by the key
	Signer   string    `json:"log_origin,omitempty"` // by the log, where it is another one
	Records  int64     `json:"records"`              // leaves of the tree; garbage counts, checkpoints don't
	Sealed   int64     `json:"sealed"`               // of them beneath the newest checkpoint
	Unsealed int64     `json:"unsealed"`             // of them after it
	Root     string    `json:"root"`                 // by the newest checkpoint
	Segments int       `json:"segments"`             // files, pruned ones too
	Pruned   int       `json:"pruned"`               // of them only hashes
	Newest   string    `json:"-"`                    // the note of the newest checkpoint
	Problems []Finding `json:"problems"`
	Notes    []Finding `json:"notes"`
	More     int       `json:"more,omitempty"`    // problems beyond Most
	Anchors  *Anchors  `json:"anchors,omitempty"` // nil where none was given
	// Renewed are the folders beside the segments that a record of this log
	// says an older log was put aside in.
	Renewed []string `json:"-"`
	AtEnd   int      `json:"-"` // of the problems those that the next writer mends by naming them
}

// Anchors is how many checkpoints that were kept elsewhere fit.
type Anchors struct {
	Checked int   `json:"checked"`         // of this log, and they fit
	Newest  int64 `json:"newest"`          // how many records the largest of them covers
	Ended   int   `json:"ended,omitempty"` // more of them, of logs that were put aside, and they fit those
}

// OnlyAtEnd reports whether all problems are lines after the last checkpoint
// that are no records. Nothing that was signed is touched: the next writer
// names them and goes on.
func (r Report) OnlyAtEnd() bool { return r.AtEnd > 0 && r.AtEnd == len(r.Problems)+r.More }

// Err returns nil for a log without a problem, else one of them as a fault:
// audit.truncated where records are missing at the end, audit.broken where
// anything else is wrong with the log, and config.invalid where all that is
// wrong is that the key or an anchor is not one of this log.
func (r Report) Err() error {
	if len(r.Problems) == 0 {
		return nil
	}
	code := fault.ConfigInvalid
	p := r.Problems[0]
	for _, f := range r.Problems {
		switch {
		case f.Kind == UnknownKey, f.Kind == BadAnchor:
		case f.Kind == Truncated:
			code, p = fault.AuditTruncated, f
		case code == fault.ConfigInvalid:
			code, p = fault.AuditBroken, f
		}
	}
	return &fault.Error{Code: code, Op: "log verify", Resource: p.Place(), Rule: p.Text}
}

// errMoved says that a file went away between listing and reading it.
var errMoved = errors.New("the log is being moved while it is read")

// Check reads the log as it is when it is called; what is appended meanwhile
// isn't looked at. An error says only what could not be read.
func Check(ctx context.Context, o Options) (Report, error) {
	for range 2 {
		r, err := check(ctx, o)
		if !errors.Is(err, errMoved) {
			return r, err
		}
	}
	return check(ctx, o)
}

// file is a segment with the part of it that is looked at.
type file struct {
	segment.File
	name  string
	bytes int64
	kept  bool // a regular file
}

func check(ctx context.Context, o Options) (Report, error) {
	files, total, err := snapshot(o.Dir)
	if err != nil {
		return Report{}, err
	}
	c := newChecker(ctx, o, total)
	for i, f := range files {
		if err := c.segment(f, i == len(files)-1); err != nil {
			return Report{}, err
		}
	}
	return c.finish(), nil
}

// snapshot takes the sizes of all segments. Only the newest grows.
func snapshot(dir string) (files []file, total int64, err error) {
	list, err := segment.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	for _, f := range list {
		info, err := os.Stat(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, 0, errMoved
		}
		if err != nil {
			return nil, 0, err
		}
		files = append(files, file{f, filepath.Base(f.Path), info.Size(), info.Mode().IsRegular()})
		total += info.Size()
	}
	return files, total, nil
}
