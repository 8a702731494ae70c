// SPDX-License-Identifier: Apache-2.0

package grep

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// Bounds of a scan, in bytes.
const (
	block = 64 << 10 // what is read at a time
	// MaxLine is how much of a line is searched.
	MaxLine = 256 << 10
	// MaxText is how much of one file's lines is returned.
	MaxText = 256 << 10
	// maxShown is how much of a line is returned, lead how much of it before
	// the match.
	maxShown = 400
	lead     = 100
	// lineCost is what a line costs beside its text: its name and number.
	lineCost = 64
)

// Cut stands in a returned line where some of it is left out.
const Cut = "…"

// Line is a line of the file, without its end, as much of it as is shown.
type Line struct {
	Number int64
	Text   string
	Match  bool // or else it is near one
	Cut    bool // it is longer than what is shown
}

// Options say what is returned of a file.
type Options struct {
	After   int64 // only matches in lines after that one
	Matches int   // at most so many
	Context int   // lines before and after each match
}

// Result is what a file holds.
type Result struct {
	Lines   []Line
	Matches int
	More    bool // there is a match after the last one
	Binary  bool // it isn't text, from some place on
	Long    int  // lines of which only MaxLine bytes were searched
}

// Scanner searches one file after the other. The zero value is ready; it is not
// for use by several goroutines at once.
type Scanner struct{ buf []byte }

// Scan searches size bytes of a file. The error is that of the reader or of the
// context; what was found until then is returned too.
func (s *Scanner) Scan(ctx context.Context, r io.ReaderAt, size int64, q *Query, o Options) (Result, error) {
	if s.buf == nil {
		s.buf = make([]byte, block)
	}
	p := pass{query: q, options: o, number: 1}
	held := 0     // bytes of a line whose end is not read yet
	skip := false // until the end of a line that is too long
	for offset, last := int64(0), size == 0; !last && !p.done; {
		if err := ctx.Err(); err != nil {
			return p.result, err
		}
		if held == len(s.buf) {
			s.grow()
		}
		n, err := r.ReadAt(s.buf[held:min(int64(len(s.buf)), int64(held)+size-offset)], offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return p.result, err
		}
		fresh := s.buf[held : held+n]
		if bytes.IndexByte(fresh, 0) >= 0 {
			p.result.Binary = true
			return p.result, nil
		}
		if offset == 0 {
			held += copy(fresh, bytes.TrimPrefix(fresh, []byte("\ufeff")))
		} else {
			held += n
		}
		offset += int64(n)
		last = offset >= size || n == 0 // it may have become shorter
		held, skip = p.take(s.buf[:held], skip, last)
	}
	return p.result, nil
}

func (s *Scanner) grow() {
	s.buf = append(s.buf, make([]byte, len(s.buf))...)
}

// take searches the whole lines at the start of b and moves the rest to the
// front. skip says that b begins within a line that is too long.
func (p *pass) take(b []byte, skip, last bool) (held int, skips bool) {
	lines := b
	if skip {
		end := bytes.IndexByte(lines, '\n')
		if end < 0 {
			return 0, true
		}
		lines = lines[end+1:]
	}
	end := bytes.LastIndexByte(lines, '\n') + 1
	switch rest := len(lines) - end; {
	case last:
		end = len(lines)
	case rest >= MaxLine:
		p.result.Long++
		p.search(lines)
		return 0, true
	}
	p.search(lines[:end])
	return copy(b, lines[end:]), false
}

// pass is one search of one file.
type pass struct {
	query   *Query
	options Options
	result  Result
	number  int64  // of the line that comes next
	near    []Line // the last lines before it that are not in the result
	after   int    // lines that still belong to the last match
	text    int    // bytes in the result
	done    bool
}

// search searches whole lines; the last one may lack its line feed.
func (p *pass) search(b []byte) {
	for len(b) > 0 && !p.done {
		from, to := p.query.find(b)
		begin := bytes.LastIndexByte(b[:max(from, 0)], '\n') + 1
		if from < 0 || begin == len(b) {
			break
		}
		p.pass(b[:begin])
		end := len(b)
		if i := bytes.IndexByte(b[begin:], '\n'); i >= 0 {
			end = begin + i + 1
		}
		if p.number > p.options.After {
			p.match(b[begin:end], from-begin, to-begin)
		} else {
			p.pass(b[begin:end])
		}
		b = b[end:]
	}
	if !p.done {
		p.pass(b)
	}
}

// pass goes over lines that don't match.
func (p *pass) pass(b []byte) {
	for p.after > 0 && len(b) > 0 {
		line, rest := cutLine(b)
		p.add(excerpt(line, 0, 0, p.number))
		p.after--
		p.number++
		b = rest
	}
	if p.options.Context > 0 {
		p.remember(b)
	}
	p.number += int64(bytes.Count(b, []byte{'\n'}))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		p.number++
	}
}

// remember keeps the last lines of b, and of those before as many as fit.
func (p *pass) remember(b []byte) {
	number := p.number
	from := len(b)
	for range p.options.Context {
		if from == 0 {
			break
		}
		from = bytes.LastIndexByte(b[:from-1], '\n') + 1
	}
	number += int64(bytes.Count(b[:from], []byte{'\n'}))
	for b = b[from:]; len(b) > 0; number++ {
		var line []byte
		line, b = cutLine(b)
		p.near = append(p.near, excerpt(line, 0, 0, number))
	}
	p.near = p.near[max(0, len(p.near)-p.options.Context):]
}

func (p *pass) match(line []byte, from, to int) {
	if p.result.Matches == p.options.Matches || p.text > MaxText {
		p.result.More, p.done = true, true
		return
	}
	for _, l := range p.near {
		p.add(l)
	}
	p.near = p.near[:0]
	line, _ = cutLine(line)
	l := excerpt(line, from, to, p.number)
	l.Match = true
	p.add(l)
	p.result.Matches++
	p.number++
	p.after = p.options.Context
}

func (p *pass) add(l Line) {
	p.result.Lines = append(p.result.Lines, l)
	p.text += len(l.Text) + lineCost
}

// cutLine is the first line without its end, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), rest
}

// excerpt is as much of a line as is shown: all of it, or what is around the
// match. It is cut between characters.
func excerpt(line []byte, from, to int, number int64) Line {
	if len(line) <= maxShown {
		return Line{Number: number, Text: string(line)}
	}
	begin := max(0, from-lead)
	if to-begin > maxShown {
		begin = max(begin, min(from, to-maxShown))
	}
	end := min(len(line), begin+maxShown)
	begin = max(0, min(begin, end-maxShown))
	for begin > 0 && begin < end && !utf8.RuneStart(line[begin]) {
		begin++
	}
	for end < len(line) && end > begin && !utf8.RuneStart(line[end]) {
		end--
	}
	text := string(line[begin:end])
	if begin > 0 {
		text = Cut + text
	}
	if end < len(line) {
		text += Cut
	}
	return Line{Number: number, Text: text, Cut: true}
}
