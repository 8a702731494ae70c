// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// text is what was read of a file.
type text struct {
	content string
	name    pathguard.Name
	etag    string
	cut     bool // there is more than max_bytes, or than an answer holds
	raced   bool // the file changed while it was read
	names   uint64
	extent  extent
}

func readTextFile(ctx context.Context, c *call) (reply, error) {
	t, err := c.readText(ctx, c.args.path)
	if err != nil {
		return reply{}, err
	}
	r := reply{kind: untrusted.File, source: t.name.String(), etag: t.etag, body: t.content}
	r.outcome.Partial, r.outcome.RescanPending = t.cut, t.raced
	t.extent.tell(&r)
	if t.names > 1 {
		r.notes = append(r.notes, hardLinks(t.names))
	}
	return r, nil
}

// hardLinks marks a file that may be known outside every root under another
// name: then what was read is what lies there too.
func hardLinks(names uint64) string {
	return "hard_links: " + strconv.FormatUint(names, 10) + ", the file has other names"
}

// readText reads a text file, whole or in part.
func (c *call) readText(ctx context.Context, path string) (text, error) {
	if err := c.args.oneRange(); err != nil {
		return text{}, err
	}
	if err := c.bad[path]; err != nil {
		return text{}, err
	}
	f, err := c.gate.Open(ctx, path)
	if err != nil {
		return text{}, err
	}
	defer f.Close()
	t := text{name: f.Name(), etag: f.Fingerprint().String(), names: f.Info().Nlink}
	e, err := c.part(ctx, f)
	if err != nil {
		return t, err
	}
	if bytes.IndexByte(e.content, 0) >= 0 || !utf8.Valid(e.content) {
		return t, notText(f)
	}
	now, err := f.Stat()
	c.fit(&e)
	t.content, t.cut, t.raced = string(e.content), e.cut, err != nil || now.Fingerprint != f.Fingerprint()
	t.extent = e.measured(f.Size())
	return t, nil
}

// part reads what the arguments ask for, whole code points of it. What turns out
// to be large is read again in a place for that.
func (c *call) part(ctx context.Context, f *pathguard.File) (extent, error) {
	limit := c.o.Answer
	if c.args.maxBytes.given {
		limit = min(limit, c.args.maxBytes.n)
	}
	e, err := c.within(ctx, f, min(limit, large))
	if err != nil || !e.cut || limit <= large {
		return e, err
	}
	if err := c.large(ctx); err != nil {
		return e, err
	}
	return c.within(ctx, f, limit)
}

// fit keeps what was read within the limit for answers, which counts it as it
// is sent: with escapes, of which a byte may take six.
func (c *call) fit(e *extent) {
	limit := int(c.o.Answer)
	if c.args.tail.given {
		from := mcpwire.FitEnd(e.content, limit)
		e.content, e.cut = fromRune(e.content[from:]), e.cut || from > 0
		return
	}
	if n := mcpwire.Fit(e.content, limit); n < len(e.content) {
		e.content, e.cut = dropPartial(e.content[:n]), true
	}
}

// within reads at most limit bytes.
func (c *call) within(ctx context.Context, f *pathguard.File, limit int64) (e extent, err error) {
	switch {
	case c.args.head.given:
		e.content, e.cut, err = head(f, c.args.head.n, limit)
		return e, err
	case c.args.tail.given:
		e.content, e.cut, err = tail(f, f.Size(), c.args.tail.n, limit)
		e.end = true
		return e, err
	case c.args.offset.given || c.args.length.given:
		return c.byteRange(f, limit)
	case c.args.line.given || c.args.lines.given:
		return c.lineRange(ctx, f, limit)
	case f.Size() > c.o.WholeRead && !c.args.maxBytes.given:
		return e, &fault.Error{
			Code: fault.LimitExceeded, Op: "fs.read", Resource: f.Name().String(),
			Rule: "the file has " + strconv.FormatInt(f.Size(), 10) + " bytes, and at most " + strconv.FormatInt(c.o.WholeRead, 10) + " are read whole",
			Hint: "read a part with offset and length, line and lines, head, tail or max_bytes",
		}
	}
	e.content, err = section(f, 0, min(f.Size(), limit))
	if e.cut = f.Size() > limit; e.cut {
		e.content = dropPartial(e.content)
	}
	return e, err
}

func notText(f *pathguard.File) error {
	return &fault.Error{
		Code: fault.TextUnsafe, Op: "fs.read", Resource: f.Name().String(),
		Rule: "it is binary, " + strconv.FormatInt(f.Size(), 10) + " bytes, not UTF-8 text",
		Hint: "read it with read_media_file",
	}
}

// section reads n bytes from an offset, fewer where the file has become
// shorter.
func section(r io.ReaderAt, from, n int64) ([]byte, error) {
	buf := make([]byte, n)
	got, err := r.ReadAt(buf, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:got], err
}

// chunk is how much is read at a time where the place of a line is sought.
const chunk = 64 << 10

// head reads the first lines, without the line feed of the last one, as the
// reference server does; at most limit bytes.
func head(r io.ReaderAt, lines, limit int64) (content []byte, cut bool, err error) {
	for lines > 0 {
		room := limit - int64(len(content))
		part, err := section(r, int64(len(content)), min(chunk, room+1))
		if err != nil {
			return nil, false, err
		}
		for at := 0; ; {
			i := bytes.IndexByte(part[at:], '\n')
			if i < 0 {
				break
			}
			at += i + 1
			if lines--; lines == 0 {
				part = part[:at-1]
				break
			}
		}
		if int64(len(part)) > room {
			content = append(content, part[:room]...)
			if string(part[room:]) == "\n" && atEnd(r, limit+1) {
				return content, false, nil // only the line feed that is left off
			}
			return dropPartial(content), true, nil
		}
		content = append(content, part...)
		if lines > 0 && len(part) == 0 {
			return bytes.TrimSuffix(content, []byte("\n")), false, nil
		}
	}
	return content, false, nil
}

func atEnd(r io.ReaderAt, offset int64) bool {
	next, err := section(r, offset, 1)
	return err == nil && len(next) == 0
}

// tail reads the last lines of size bytes with their line feeds; a final line
// feed ends the last line and begins none. Of more than limit bytes it is the
// end. Memory is bounded by limit.
func tail(r io.ReaderAt, size, lines, limit int64) (content []byte, cut bool, err error) {
	if lines == 0 {
		return nil, false, nil
	}
	// One byte more tells whether the first that fits begins a line.
	start, least := size, max(0, size-limit-1)
	for start > least && lines > 0 {
		from := max(least, start-chunk)
		part, err := section(r, from, start-from)
		if err != nil {
			return nil, false, err
		}
		end := len(part)
		if start == size && end > 0 && part[end-1] == '\n' {
			end--
		}
		start = from
		for lines > 0 {
			i := bytes.LastIndexByte(part[:end], '\n')
			if i < 0 {
				break
			}
			if lines--; lines == 0 {
				start = from + int64(i) + 1
			}
			end = i
		}
	}
	if cut = size-start > limit; cut {
		start = size - limit
	}
	content, err = section(r, start, size-start)
	if cut {
		content = fromRune(content)
	}
	return content, cut, err
}

// fromRune drops the end of a code point that was cut.
func fromRune(b []byte) []byte {
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	return b
}

// dropPartial drops the start of a code point that was cut.
func dropPartial(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return b[:len(b)-n]
			}
			return b
		}
	}
	return b
}

// readMultipleFiles reads one after the other until the answer is full. A file
// that fails says so in its place. Without envelopes it is one text, as the
// reference server's.
func readMultipleFiles(ctx context.Context, c *call) (reply, error) {
	r := reply{kind: untrusted.File}
	var parts []string
	total := 0
	for _, path := range c.args.paths {
		if err := ctx.Err(); err != nil {
			return reply{}, &fault.Error{Code: fault.Cancelled, Op: "fs.read", Resource: path, Retry: true, Err: err}
		}
		t, err := c.readText(ctx, path)
		if err == nil && total+len(t.content) > large {
			err = c.large(ctx)
		}
		if err == nil && int64(total+mcpwire.TextLen(t.content)) > c.o.Answer {
			err = &fault.Error{Code: fault.LimitExceeded, Op: "fs.read", Resource: path, Rule: "the answer is full", Hint: "read it alone"}
		}
		if err != nil {
			f := *fault.As(err)
			f.Resource = path
			failed := textsafe.Name(path) + ": Error - " + f.Lines()
			total += mcpwire.TextLen(failed)
			r.outcome.Partial = r.outcome.Partial || f.Code == fault.LimitExceeded
			parts, r.blocks = append(parts, failed), append(r.blocks, piece{own: failed})
			continue
		}
		total += mcpwire.TextLen(t.content)
		parts = append(parts, textsafe.Name(path)+":\n"+t.content+"\n")
		r.blocks = append(r.blocks, piece{source: t.name.String(), etag: t.etag, body: t.content})
		r.outcome.Partial = r.outcome.Partial || t.cut
		r.outcome.RescanPending = r.outcome.RescanPending || t.raced
	}
	if c.o.Bare {
		r.body, r.blocks = strings.Join(parts, "\n---\n"), nil
	}
	return r, nil
}
