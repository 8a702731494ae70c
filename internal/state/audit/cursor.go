// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// Pending is an intent without an outcome, as the record of the intent has it.
type Pending struct {
	Time     time.Time `json:"t"`
	Agent    string    `json:"agent"`
	Op       string    `json:"op"`
	Source   string    `json:"source"`
	Session  string    `json:"session"`
	Corr     string    `json:"corr"`
	Policy   string    `json:"policy"`
	Level    string    `json:"level"`
	Resource string    `json:"resource"`
	Was      string    `json:"was"`
	Folder   string    `json:"folder"`
}

// cursor reads the log once, from its last checkpoint on, and knows the tree
// of what it has read.
type cursor struct {
	segment int
	offset  int64 // after the last line that was read
	lines   int   // before that place in the segment
	// sealedAt is the place after the last checkpoint, or after the head that
	// repeats it.
	sealedAt int64
	begun    time.Time
	last     seal.Checkpoint // the newest that was read
	before   string          // the note before that
	base     seal.Edge       // of its tree
	edge     seal.Edge       // of all leaves that were read
	open     map[string][]Pending
	garbage  []string // places of lines that are no records and that no event names
	newest   time.Time

	newestLine []byte // the beginning of the last record
}

// fresh is the number of leaves that no checkpoint covers.
func (c *cursor) fresh() int64 { return c.edge.Size() - c.last.Size }

// atHead is the cursor after the head of a segment.
func atHead(line []byte, key *seal.Key) (*cursor, error) {
	h, err := seal.ParseHead(line)
	if err != nil {
		return nil, err
	}
	last, err := key.Verifier().Open(h.Note)
	if err != nil {
		return nil, err
	}
	return &cursor{
		segment: h.Segment, offset: int64(len(line)) + 1, lines: 1, begun: h.Time, sealedAt: int64(len(line)) + 1,
		last: last, base: h.Edge.Clone(), edge: h.Edge, open: map[string][]Pending{},
	}, nil
}

// advance reads on to the end of the newest segment. It fails where a
// checkpoint on the way isn't that of what was read.
func (c *cursor) advance(dir string, newest int, key *seal.Key) error {
	for {
		if err := c.readSegment(dir, key); err != nil {
			return err
		}
		if c.segment >= newest {
			return nil
		}
		if err := c.enter(dir, c.segment+1, key); err != nil {
			return err
		}
	}
}

// enter goes on to the next segment. What the one before has after its last
// checkpoint was given up with it, and so was a checkpoint that the disk didn't
// take.
func (c *cursor) enter(dir string, number int, key *seal.Key) error {
	line, err := firstLine(segment.Path(dir, number, segment.Lines))
	if err != nil {
		return missing(number, err)
	}
	next, err := atHead(line, key)
	if err != nil || next.segment != number || next.last.Note != c.last.Note && next.last.Note != c.before {
		return broken(fault.AuditBroken, fmt.Sprintf("the log's segment %d does not go on from the one before", number))
	}
	next.open, next.newest = c.open, c.newest
	*c = *next
	return nil
}

func firstLine(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, err := segment.NewReader(f, 0, 0).Next()
	return bytes.Clone(line), err
}

func (c *cursor) readSegment(dir string, key *seal.Key) error {
	f, err := regular.Open(segment.Path(dir, c.segment, segment.Lines))
	if err != nil {
		return missing(c.segment, err)
	}
	defer f.Close()
	if _, err := f.Seek(c.offset, io.SeekStart); err != nil {
		return unwritable("the log can't be read", err)
	}
	r := segment.NewReader(f, c.offset, c.lines)
	for {
		line, err := r.Next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, segment.ErrTorn):
			c.seen()
			return nil
		default:
			return unwritable("the log can't be read", err)
		}
		if err := c.take(line, r.Line(), key); err != nil {
			return err
		}
		c.offset, c.lines = r.Offset(), r.Line()
		if c.fresh() == 0 {
			c.sealedAt = c.offset
		}
	}
}

// take reads one line.
func (c *cursor) take(line []byte, number int, key *seal.Key) error {
	if seal.KindOf(line) == seal.KindCheckpoint {
		return c.pass(line, number, key)
	}
	c.edge.AddLine(line)
	if !isRecord(line) {
		if len(c.garbage) <= mostGarbage {
			c.garbage = append(c.garbage, c.place(number))
		}
		return nil
	}
	c.newestLine = append(c.newestLine[:0], line[:min(len(line), 48)]...)
	switch e := eventIn(line); e {
	case Intent, Outcome, Failure, Refusal, OutcomeUnknown, Garbage:
		var p Pending
		if json.Unmarshal(line, &p) == nil {
			c.follow(e, p)
		}
	default:
	}
	return nil
}

// place names a line of the segment.
func (c *cursor) place(number int) string {
	return fmt.Sprintf("%s:%d", segment.Name(c.segment), number)
}

// eventIn is the event of a record, which no value can pretend, since its
// quotes are escaped.
func eventIn(line []byte) Event {
	const mark = `,"event":"`
	at := bytes.LastIndex(line, []byte(mark))
	if at < 0 {
		return ""
	}
	e, _, _ := bytes.Cut(line[at+len(mark):], []byte(`"`))
	return Event(e)
}

// follow keeps what is open: intents until their outcome, or the refusal of a
// call whose intents could not all be recorded; garbage until it is named. The
// outcomes of all names of one call are written together, those
// that stayed unknown one by one.
func (c *cursor) follow(e Event, p Pending) {
	switch e {
	case Intent:
		again := func(o Pending) bool { return o.Resource == p.Resource } // moved from a lost segment
		if !slices.ContainsFunc(c.open[p.Corr], again) {
			c.open[p.Corr] = append(c.open[p.Corr], p)
		}
	case Garbage:
		c.garbage = slices.DeleteFunc(c.garbage, func(place string) bool { return place == p.Resource })
	case OutcomeUnknown:
		left := slices.DeleteFunc(c.open[p.Corr], func(o Pending) bool { return o.Resource == p.Resource })
		if len(left) > 0 {
			c.open[p.Corr] = left
			return
		}
		fallthrough
	default:
		delete(c.open, p.Corr)
	}
}

// seen keeps the time of the newest record.
func (c *cursor) seen() {
	if at, ok := timeOf(c.newestLine); ok {
		c.newest = at
	}
}

// timeOf is the time of a record by its beginning.
func timeOf(line []byte) (time.Time, bool) {
	text, ok := bytes.CutPrefix(line, []byte(recordStart))
	text, _, end := bytes.Cut(text[:min(len(text), 40)], []byte(`"`))
	at, err := time.Parse(time.RFC3339Nano, string(text))
	return at, ok && end && err == nil
}

// pass reads a checkpoint: it must be this log's, of exactly what was read.
func (c *cursor) pass(line []byte, number int, key *seal.Key) error {
	cp, err := seal.ParseCheckpoint(line)
	if err == nil {
		cp, err = key.Verifier().Open(cp.Note)
	}
	if err != nil || cp.Size != c.edge.Size() || cp.Root != c.edge.Root() || cp.Previous != c.last.After() {
		return broken(fault.AuditBroken, "the checkpoint at "+c.place(number)+" is not that of the lines before it")
	}
	c.before, c.last, c.base = c.last.Note, cp, c.edge.Clone()
	return nil
}

func missing(number int, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return broken(fault.AuditTruncated, fmt.Sprintf("the log's segment %d is missing", number))
	}
	return unwritable("the log can't be read", err)
}

// isRecord tells a record from what a broken disk may have left. Verify looks
// closer.
func isRecord(line []byte) bool {
	if !bytes.HasPrefix(line, []byte(recordStart)) || !bytes.HasSuffix(line, []byte("}")) {
		return false
	}
	for _, b := range line {
		if b < 0x20 || b > 0x7e {
			return false
		}
	}
	return true
}

// pendings returns the open intents in the order of their time.
func (c *cursor) pendings() []Pending {
	all := slices.Concat(slices.Collect(maps.Values(c.open))...)
	slices.SortFunc(all, func(a, b Pending) int { return a.Time.Compare(b.Time) })
	return all
}
