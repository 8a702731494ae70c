// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
)

// extent is a part of a file.
type extent struct {
	content []byte
	cut     bool  // there is more of what was asked for
	end     bool  // it is the end of the file, and what is missing is before it
	ranged  bool  // it was asked for by offset or line
	from    int64 // where it begins
	line    int64 // the number of its first line, 0 where it isn't known
	lines   int64 // how many lines the file has, where it has none of what was asked for
	to      int64 // where it ends, set by measured
	size    int64 // of the file, set by measured
}

// oneRange refuses arguments that ask for two things.
func (a *arguments) oneRange() error {
	var given []string
	for _, way := range []struct {
		name string
		on   bool
	}{
		{"head", a.head.given},
		{"tail", a.tail.given},
		{"offset or length", a.offset.given || a.length.given},
		{"line or lines", a.line.given || a.lines.given},
	} {
		if way.on {
			given = append(given, way.name)
		}
	}
	switch {
	case len(given) > 1:
		return invalid(strings.Join(given, " and ")+" can't be used together", "send one of them")
	case a.line.given && a.line.n == 0:
		return invalid("lines are counted from 1", "send line: 1 for the first")
	}
	return nil
}

// asked is how much of a range is read: what was asked for within the limit, or
// as much as is read whole.
func (c *call) asked(n count, limit int64) int64 {
	if n.given {
		return min(n.n, limit)
	}
	return min(c.o.WholeRead, limit)
}

// byteRange reads a range by offset. It begins with the first character that
// begins in it and holds no part of one: what is cut at its end is left to the
// next range, so that ranges that follow each other join to the file. A range
// that is shorter than its first character holds all of that.
func (c *call) byteRange(f *pathguard.File, limit int64) (extent, error) {
	e := extent{ranged: true, from: min(c.args.offset.n, f.Size())}
	n := min(c.asked(c.args.length, limit), f.Size()-e.from)
	most := f.Size() - e.from
	if c.args.length.given {
		most = min(most, c.args.length.n)
	}
	content, err := section(f, e.from, n)
	if err != nil {
		return e, err
	}
	e.cut = most > n
	if e.from > 0 {
		skipped := withoutTail(content)
		content, e.from = content[skipped:], e.from+int64(skipped)
	}
	if e.content = content; e.from+int64(len(content)) < f.Size() {
		e.content = dropPartial(content)
	}
	if len(e.content) == 0 && n > 0 && e.from < f.Size() {
		return e.nextRune(f)
	}
	return e, err
}

// nextRune is the range that would hold half a character, or none that begins
// in it: it holds the one that comes next.
func (e extent) nextRune(r io.ReaderAt) (_ extent, err error) {
	if e.from > 0 {
		rest, err := section(r, e.from, utf8.UTFMax)
		if err != nil {
			return e, err
		}
		e.from += int64(withoutTail(rest))
	}
	e.content, err = firstRune(r, e.from)
	return e, err
}

// withoutTail is how many bytes at the start belong to a character before.
func withoutTail(b []byte) int {
	n := 0
	for n < len(b) && n < utf8.UTFMax-1 && !utf8.RuneStart(b[n]) {
		n++
	}
	return n
}

// firstRune is the character that begins at an offset.
func firstRune(r io.ReaderAt, from int64) ([]byte, error) {
	b, err := section(r, from, utf8.UTFMax)
	_, n := utf8.DecodeRune(b)
	return b[:n], err
}

// lineRange reads lines with their line feeds.
func (c *call) lineRange(ctx context.Context, f *pathguard.File, limit int64) (extent, error) {
	e := extent{ranged: true, line: max(1, c.args.line.n)}
	var err error
	if e.from, e.lines, err = seekLine(ctx, f, e.line); err != nil || e.from < 0 {
		return e, err
	}
	n := int64(math.MaxInt64)
	if c.args.lines.given {
		n = c.args.lines.n
	} else {
		limit = min(limit, c.o.WholeRead)
	}
	e.content, e.cut, err = linesFrom(f, e.from, n, limit)
	return e, err
}

// seekLine returns where a line begins, or -1 and how many lines there are.
func seekLine(ctx context.Context, r io.ReaderAt, line int64) (from, lines int64, err error) {
	buf := make([]byte, chunk)
	ended := true // with a line feed, or it is empty
	for offset := int64(0); ; {
		if lines == line-1 && ended {
			if atEnd(r, offset) {
				return -1, lines, nil
			}
			return offset, 0, nil
		}
		if err := ctx.Err(); err != nil {
			return 0, 0, &fault.Error{Code: fault.Cancelled, Op: "fs.read", Retry: true, Err: err}
		}
		n, err := r.ReadAt(buf, offset)
		if n == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				return 0, 0, err
			}
			if !ended {
				lines++
			}
			return -1, lines, nil
		}
		for at := 0; at < n; {
			i := bytes.IndexByte(buf[at:n], '\n')
			if i < 0 {
				ended = false
				break
			}
			at += i + 1
			ended = true
			if lines++; lines == line-1 {
				n = at
			}
		}
		offset += int64(n)
	}
}

// linesFrom reads n lines that begin at an offset, at most limit bytes of them.
func linesFrom(r io.ReaderAt, from, n, limit int64) (content []byte, cut bool, err error) {
	for n > 0 {
		room := limit - int64(len(content))
		part, err := section(r, from+int64(len(content)), min(chunk, room+1))
		if err != nil || len(part) == 0 {
			return content, false, err
		}
		for at := 0; n > 0; n-- {
			i := bytes.IndexByte(part[at:], '\n')
			if i < 0 {
				break
			}
			if at += i + 1; n == 1 {
				part = part[:at]
			}
		}
		if int64(len(part)) > room {
			return dropPartial(append(content, part[:room]...)), true, nil
		}
		content = append(content, part...)
	}
	return content, false, nil
}

// measured completes an extent of a file of that size.
func (e extent) measured(size int64) extent {
	e.size, e.to = size, e.from+int64(len(e.content))
	return e
}

// tell says which part of the file was read, and how the next one is asked for.
func (e extent) tell(r *reply) {
	switch {
	case e.end || !e.ranged && !e.cut:
		return
	case e.from < 0:
		r.notes = append(r.notes, "the file has "+quantity(int(e.lines), "line", "lines"))
		return
	case len(e.content) == 0 && e.from >= e.size:
		r.notes = append(r.notes, fmt.Sprintf("the file has %d bytes", e.size))
		return
	case len(e.content) == 0:
		return
	}
	note := fmt.Sprintf("bytes %d–%d of %d", e.from, e.to-1, e.size)
	next := fmt.Sprintf("offset %d", e.to)
	r.next = fmt.Appendf(nil, `{"offset":%d}`, e.to)
	if e.line > 0 {
		feeds := int64(bytes.Count(e.content, []byte{'\n'}))
		last := e.line + feeds
		if e.content[len(e.content)-1] == '\n' {
			last--
			next = fmt.Sprintf("line %d, or offset %d", last+1, e.to)
			r.next = fmt.Appendf(nil, `{"line":%d}`, last+1)
		}
		note = fmt.Sprintf("lines %d–%d, ", e.line, last) + note
	}
	if e.to >= e.size {
		r.next = nil
		r.notes = append(r.notes, note+", the end")
		return
	}
	r.notes = append(r.notes, note+"; next: "+next)
}
