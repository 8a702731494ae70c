// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// checker walks a log once.
type checker struct {
	ctx      context.Context //nolint:containedctx // lives for one call of Check
	o        Options
	r        Report
	progress progress
	watches  watches
	events   events

	file   file      // what is read
	line   int       // of it
	edge   seal.Edge // of all leaves so far
	newest time.Time // of the last record
	jumped bool      // an event said that the clock went back since then
	opened int       // checkpoints by the key
	others int       // by another one

	// last is the newest checkpoint that opened, nil before the first one.
	last *seal.Checkpoint
	// link says how much the next checkpoint must have to do with last.
	link   link
	hashed bool // of apart: the hashes are there, not the checkpoints
	// suspect: a checkpoint did not fit, and no later place has shown that the
	// tree is again the one that was signed.
	suspect bool
	good    place // the newest place at which the tree was the signed one
	lastAt  place // where last stands
	// prior is the checkpoint before last in the same segment, or nil.
	prior   *seal.Checkpoint
	priorAt place
	tail    tail // of the segment that is read
	before  tail // of the one before it
	lost    int  // the problem that names the segments missing before this one, or -1
}

type link uint8

const (
	linked link = iota // the next one names last as the one before it
	loose              // a line that may have been a checkpoint stands between
	apart              // checkpoints between are gone: pruned or missing
)

// place is a line, and how many leaves there are up to it.
type place struct {
	file string
	line int
	size int64
}

func (p place) String() string {
	if p.file == "" {
		return "the beginning"
	}
	return Finding{Segment: p.file, Line: p.line}.Place()
}

// tail is what a segment has after its last checkpoint.
type tail struct {
	file   file
	after  int // the line of that checkpoint
	leaves int64
	torn   int // the line without an end, or 0
}

func newChecker(ctx context.Context, o Options, total int64) *checker {
	c := &checker{ctx: ctx, o: o, progress: progress{total: total, tell: o.Progress}, lost: -1}
	c.events.told = map[event]place{}
	c.watches = watches{bySize: map[int64][]*watch{}, byNote: map[string][]*watch{}}
	c.r.Origin = o.Verifier.Origin()
	c.watch(o.Signed, Remembered, "the last checkpoint that this machine remembers")
	c.anchors()
	c.passed()
	return c
}

// problem adds one at the line that is read.
func (c *checker) problem(kind Kind, format string, args ...any) {
	c.problemAt(c.file.name, c.line, kind, format, args...)
}

func (c *checker) problemAt(file string, line int, kind Kind, format string, args ...any) {
	if len(c.r.Problems) == Most {
		c.r.More++
		return
	}
	c.r.Problems = append(c.r.Problems, Finding{kind, file, line, fmt.Sprintf(format, args...)})
}

func (c *checker) note(kind Kind, file string, line int, format string, args ...any) {
	if len(c.r.Notes) < Most {
		c.r.Notes = append(c.r.Notes, Finding{kind, file, line, fmt.Sprintf(format, args...)})
	}
}

// segment checks the next file.
func (c *checker) segment(f file, newest bool) error {
	c.gap(f)
	c.file, c.line = f, 0
	c.r.Segments++
	if !f.kept {
		c.missing(f.Number, f.Number+1, "the segment is not a file")
		c.link, c.hashed, c.tail = apart, false, tail{}
		return nil
	}
	src, err := regular.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	if err != nil {
		return err
	}
	defer src.Close()
	in := io.LimitReader(src, f.bytes)
	if f.Pruned {
		return c.hashes(in, newest)
	}
	return c.lines(in, newest)
}

// gap reports the numbers left out before a segment.
func (c *checker) gap(f file) {
	next := c.file.Number + 1
	if c.link != apart || f.Number > next {
		c.lost = -1
	}
	if f.Number == next {
		return
	}
	c.missing(next, min(f.Number, next+Most), "the segment is missing")
	if more := f.Number - next - Most; more > 0 {
		c.problemAt(segment.Name(next+Most), 0, MissingSegment, "this and %d more segments are missing", more-1)
	}
	c.hashed = false
	c.link = apart
}

// missing reports segments from one number to before another.
func (c *checker) missing(from, to int, text string) {
	if len(c.r.Problems) < Most {
		c.lost = len(c.r.Problems)
	}
	for n := from; n < to; n++ {
		c.problemAt(segment.Name(n), 0, MissingSegment, "%s", text)
	}
}

// lines checks a segment that has its lines.
func (c *checker) lines(in io.Reader, newest bool) error {
	r := segment.NewReader(in, 0, 0)
	c.before, c.tail = c.tail, tail{file: c.file}
	for {
		line, err := r.Next()
		c.line = r.Line()
		switch {
		case err == nil:
			c.take(line)
		case errors.Is(err, io.EOF), errors.Is(err, segment.ErrTorn):
			c.progress.done += int64(len(line))
			c.ended(len(line), newest)
			return nil
		default:
			return err
		}
		c.progress.add(int64(len(line)) + 1)
		if c.line&1023 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
	}
}

// ended looks at how a segment ends; torn is the length of a rest without a
// line end.
func (c *checker) ended(torn int, newest bool) {
	if c.line == 0 {
		c.problem(BadHead, "the segment does not begin with a head")
	}
	if torn == 0 {
		return
	}
	if newest {
		c.note(TornTail, c.file.name, c.line+1, "%d bytes without a line end: a write that is under way or that a crash cut short; the next writer moves them aside", torn)
		return
	}
	c.tail.torn = c.line + 1
}

// take checks a whole line.
func (c *checker) take(line []byte) {
	kind := seal.KindOf(line)
	switch {
	case c.line == 1 && kind == seal.KindHead:
		c.head(line)
		return
	case c.line == 1:
		c.problem(BadHead, "the segment does not begin with a head")
		c.torn()
	}
	if kind == seal.KindCheckpoint {
		c.checkpoint(line)
		return
	}
	c.leaf(line)
}

// leaf adds a line to the tree and looks at its frame.
func (c *checker) leaf(line []byte) {
	c.edge.AddLine(line)
	c.tail.leaves++
	c.passed()
	rec, kind, wrong := scan(line)
	if wrong != "" {
		c.bad(Finding{kind, c.file.name, c.line, wrong})
		return
	}
	if rec.own() {
		c.jumped = c.jumped || string(rec.event) == clockBack
		c.events.add(string(rec.event), string(rec.resource), place{c.file.name, c.line, c.edge.Size()})
	}
	const slack = time.Minute // records wait up to a second, of several processes
	if !c.jumped && rec.at.Before(c.newest.Add(-slack)) {
		c.note(ClockBack, c.file.name, c.line, "the time is %s before that of the record before, and no clock_back says so", c.newest.Sub(rec.at).Round(time.Second))
	}
	c.newest, c.jumped = rec.at, c.jumped && string(rec.event) == clockBack
}

// hashes checks a segment of which only the leaf hashes are left. Nothing in
// it is signed: the head that follows tells whether they are the right ones.
func (c *checker) hashes(in io.Reader, newest bool) error {
	c.r.Pruned++
	if c.r.Pruned != c.r.Segments {
		c.problem(Pruned, "only hashes are left of the segment, and of one before it more")
	}
	buf := make([]byte, 2048*seal.HashSize)
	for {
		n, err := io.ReadFull(in, buf)
		for b := buf[:n]; len(b) >= seal.HashSize; b = b[seal.HashSize:] {
			c.edge.Add(seal.Hash(b[:seal.HashSize]))
			c.passed()
		}
		c.progress.add(int64(n))
		if n%seal.HashSize != 0 {
			c.problem(Pruned, "the file does not hold whole hashes")
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err := errors.Join(err, c.ctx.Err()); err != nil {
			return err
		}
	}
	if newest {
		c.problem(MissingSegment, "no segment follows one of which only hashes are left")
	}
	c.link, c.hashed, c.tail = apart, true, tail{}
	c.events.pruned = c.file
	return nil
}

// progress tells how far the check is, not more often than it is worth.
type progress struct {
	done, told, total int64
	tell              func(done, total int64)
}

func (p *progress) add(n int64) {
	p.done += n
	if p.tell != nil && p.done-p.told >= 1<<20 {
		p.told = p.done
		p.tell(p.done, p.total)
	}
}
