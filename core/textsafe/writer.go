// SPDX-License-Identifier: Apache-2.0

package textsafe

import (
	"io"
	"unicode/utf8"
)

// Writer filters text that arrives in parts, such as the output of a program.
// A code point or a run of selectors cut over two writes is judged whole, so
// C2 and 9B in two writes never become a control. It isn't safe for
// concurrent use.
type Writer struct {
	w       io.Writer
	f       filter
	part    [utf8.UTFMax]byte // the start of a code point
	partLen int
}

// NewLineWriter returns a Writer by the contract of a Line.
func NewLineWriter(w io.Writer) *Writer { return &Writer{w: w} }

// NewBlockWriter returns a Writer by the contract of a Text.
func NewBlockWriter(w io.Writer) *Writer { return &Writer{w: w, f: filter{block: true}} }

// Write filters p and passes on what can be judged. It keeps at most three
// bytes and two selectors back. The error is the underlying writer's; then
// nothing of p counts as written.
func (w *Writer) Write(p []byte) (int, error) {
	rest := p
	for ; w.partLen > 0 && len(rest) > 0; rest = rest[1:] {
		w.part[w.partLen] = rest[0]
		w.partLen++
		w.drain(false)
	}
	for utf8.FullRune(rest) {
		r, size := utf8.DecodeRune(rest)
		w.f.add(r)
		rest = rest[size:]
	}
	w.partLen += copy(w.part[w.partLen:], rest)
	if err := w.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on what was kept back: half a code point becomes U+FFFD a
// byte. It doesn't close the underlying writer.
func (w *Writer) Close() error {
	w.drain(true)
	w.f.endRun()
	return w.flush()
}

// drain judges the code points that are complete, at the end all of them.
func (w *Writer) drain(end bool) {
	for w.partLen > 0 && (end || utf8.FullRune(w.part[:w.partLen])) {
		r, size := utf8.DecodeRune(w.part[:w.partLen])
		w.f.add(r)
		w.partLen = copy(w.part[:], w.part[size:w.partLen])
	}
}

func (w *Writer) flush() error {
	if len(w.f.out) == 0 {
		return nil
	}
	_, err := w.w.Write(w.f.out)
	w.f.out = w.f.out[:0]
	return err
}
