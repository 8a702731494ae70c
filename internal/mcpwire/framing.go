// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"sync"
)

// MaxFrame is the cap on one line that a server uses unless told otherwise:
// room for the content of a large file, small enough for a few at once.
const MaxFrame = 64 << 20

// TooLong is the error of one line beyond the cap. The reader stays usable.
type TooLong struct {
	ID    ID // of the request, if it can be told
	Limit int
}

// Error names the cap.
func (e *TooLong) Error() string { return "a line is longer than " + strconv.Itoa(e.Limit) + " bytes" }

// Reader splits a stream into frames: one a line, ended by LF. White space
// around the message, so also a CR before the LF, is left for Parse to skip.
// It isn't safe for concurrent use.
type Reader struct {
	r     *bufio.Reader
	limit int
}

// NewReader returns a Reader with a cap of limit bytes a line.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// Next returns the next line that isn't blank, without its LF, in memory of
// its own. A last line without LF counts. The error is io.EOF at the end, a
// *TooLong after which the next line can be read, or the stream's.
func (r *Reader) Next() ([]byte, error) {
	for {
		line, err := r.line()
		if err != nil || !isBlank(line) {
			return line, err
		}
	}
}

func isBlank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

func (r *Reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := r.r.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if len(line)+len(part) > r.limit {
			return nil, r.discard(line, part, err)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil // the next call returns io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// discard reads on to the end of the line and looks for its id on the way.
func (r *Reader) discard(line, part []byte, err error) error {
	var f idFinder
	f.write(line)
	f.write(part)
	for errors.Is(err, bufio.ErrBufferFull) {
		part, err = r.r.ReadSlice('\n')
		f.write(part)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return &TooLong{ID: f.found(), Limit: r.limit}
}

// Writer writes frames, one whole line at a time. It is safe for concurrent
// use; a slow reader at the other end holds the callers up.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes frame and a newline in one call. The frame must be one line,
// with room for the newline where its capacity allows: that byte is used.
func (w *Writer) Write(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(append(frame, '\n'))
	return err
}
