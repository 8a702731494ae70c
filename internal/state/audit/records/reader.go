// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/regular"
)

// PollEvery is how often Follow looks for new lines.
const PollEvery = 200 * time.Millisecond

// Reader reads the records of a log in their order, over its segments. It
// keeps one line in memory.
type Reader struct {
	dir   string
	file  *os.File // of the segment at, nil before the first
	read  int64    // the place in it at which the newest piece that was read begins
	seek  int64    // and the one at which it ends
	lines *segment.Reader
	at    Cursor
	next  *Cursor // where it goes on, once nothing is written to the segment any more
}

// NewReader reads the log in dir from a place on. Nothing is opened before
// Next, and a log that does not exist yet is an empty one.
func NewReader(dir string, from Cursor) *Reader { return &Reader{dir: dir, at: from} }

// Close closes what Next opened.
func (r *Reader) Close() {
	if r.file != nil {
		_ = r.file.Close() // it was only read
		r.file = nil
	}
}

// Next returns the next record, or line that should be one. Checkpoints, heads
// and pruned segments are passed over, and so is a line without its end, which
// may be one that is being written. After io.EOF it may be called again: it
// goes on with what was appended since.
func (r *Reader) Next() (Entry, error) {
	e, err := r.leaf()
	if err == nil {
		e.Record, e.Err = Parse(e.Text)
	}
	return e, err
}

// leaf is the next line that is neither a head nor a checkpoint, not parsed.
func (r *Reader) leaf() (Entry, error) {
	for {
		if r.file == nil {
			if err := r.open(); err != nil {
				return Entry{}, err
			}
		}
		text, err := r.lines.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, segment.ErrTorn) {
			if err := r.end(); err != nil {
				return Entry{}, err
			}
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		if whole, err := r.whole(text); err != nil {
			return Entry{}, err
		} else if !whole {
			continue
		}
		r.at.Line, r.at.Offset = r.lines.Line(), r.lines.Offset()
		kind := seal.KindOf(text)
		if kind == seal.KindCheckpoint || kind == seal.KindHead && r.at.Line == 1 {
			continue
		}
		return Entry{Segment: r.at.Segment, Line: r.at.Line, Text: text}, nil
	}
}

// open opens the segment at the cursor, or the first one after it. It returns
// io.EOF where there is none.
func (r *Reader) open() error {
	files, err := list(r.dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Pruned || f.Number < r.at.Segment {
			continue
		}
		info, err := os.Lstat(f.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue // pruned just now, or something that may never end
		}
		if err != nil {
			return err
		}
		file, err := regular.Open(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if f.Number > r.at.Segment {
			r.at = Cursor{Segment: f.Number}
		}
		r.file = file
		return r.rewind()
	}
	return io.EOF
}

// list is the segments of a log; none where there is no log.
func list(dir string) ([]segment.File, error) {
	files, err := segment.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// rewind goes back to the end of the last whole line.
func (r *Reader) rewind() error {
	if _, err := r.file.Seek(r.at.Offset, io.SeekStart); err != nil {
		return err
	}
	r.read, r.seek = r.at.Offset, r.at.Offset
	r.lines = segment.NewReader(pieces{r}, r.at.Offset, r.at.Line)
	return nil
}

// pieces is the file, and remembers where each piece begins.
type pieces struct{ r *Reader }

func (p pieces) Read(b []byte) (int, error) {
	n, err := p.r.file.Read(b)
	if n > 0 {
		p.r.read = p.r.seek
		p.r.seek += int64(n)
	}
	return n, err
}

// whole reports whether the line is in the file as it was read. One that came
// in two pieces may begin with a torn line that was cut off in between.
func (r *Reader) whole(text []byte) (bool, error) {
	if r.read <= r.at.Offset {
		return true, nil
	}
	again := make([]byte, len(text))
	if _, err := r.file.ReadAt(again, r.at.Offset); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if bytes.Equal(again, text) {
		return true, nil
	}
	return false, r.rewind()
}

// end looks what comes after the end of a segment. It returns io.EOF where
// that is the end of the log, nil where there is more to read.
func (r *Reader) end() error {
	if r.next != nil {
		r.Close()
		r.at, r.next = *r.next, nil
		return nil
	}
	files, err := list(r.dir)
	if err != nil {
		return err
	}
	if err := r.rewind(); err != nil {
		return err
	}
	// What was written before the next segment began is still read first.
	switch {
	case len(files) > 0 && files[len(files)-1].Number > r.at.Segment:
		r.next = &Cursor{Segment: r.at.Segment + 1}
	case r.ended():
		r.next = &Cursor{}
	default:
		return io.EOF
	}
	return nil
}

// ended reports whether a person put this log aside and began a new one. A
// segment that is gone for another reason has a successor soon.
func (r *Reader) ended() bool {
	mine, err := r.file.Stat()
	if err != nil {
		return false
	}
	name := filepath.Base(segment.Path("", r.at.Segment, segment.Lines))
	if now, err := os.Stat(filepath.Join(r.dir, name)); err == nil && os.SameFile(mine, now) {
		return false
	}
	aside, _ := filepath.Glob(filepath.Join(r.dir, "ended-*", name)) // the pattern is well-formed
	return slices.ContainsFunc(aside, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(mine, info)
	})
}

// Follow hands every record from the reader's place on to visit, then those
// that are appended, until the context ends, which is no error.
func (r *Reader) Follow(ctx context.Context, visit func(Entry) error) error {
	tick := time.NewTicker(PollEvery)
	defer tick.Stop()
	for {
		err := r.each(ctx, visit)
		if err != nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Each hands every record from the reader's place to the end of the log to
// visit. It returns the context's error where that ends first.
func (r *Reader) Each(ctx context.Context, visit func(Entry) error) error {
	if err := r.each(ctx, visit); err != nil {
		return err
	}
	return ctx.Err()
}

// EachWith is Each for the records whose line has the text in it; the others are
// not parsed, which is what takes the time.
func (r *Reader) EachWith(ctx context.Context, text []byte, visit func(Entry) error) error {
	for ctx.Err() == nil {
		e, err := r.leaf()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && bytes.Contains(e.Text, text) {
			e.Record, e.Err = Parse(e.Text)
			err = visit(e)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// Since is where records of that time or later begin, or a place before it: a
// segment that was written last before it has none.
func Since(dir string, at time.Time) (Cursor, error) {
	files, err := list(dir)
	if err != nil {
		return Cursor{}, err
	}
	var from Cursor
	for _, f := range files {
		info, err := os.Lstat(f.Path)
		if err == nil && info.ModTime().Before(at) {
			from = Cursor{Segment: f.Number + 1}
		}
	}
	return from, nil
}

func (r *Reader) each(ctx context.Context, visit func(Entry) error) error {
	for ctx.Err() == nil {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
