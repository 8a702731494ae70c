// SPDX-License-Identifier: Apache-2.0

package textsafe

import (
	"html"
	"unicode/utf8"
)

// Line is text that is safe to draw on one line. Only Clean makes it; the
// zero value is the empty line.
type Line struct{ s string }

// Text is text that is safe to draw and keeps its newlines and tabs. Only
// Block makes it; the zero value is empty.
type Text struct{ s string }

// Clean returns s by the contract of a Line. It doesn't allocate when s needs
// no change.
func Clean(s string) Line { return Line{clean(s, false)} }

// Block returns s by the contract of a Text. It doesn't allocate when s needs
// no change.
func Block(s string) Text { return Text{clean(s, true)} }

// String returns the line.
func (l Line) String() string { return l.s }

// HTML returns the line with <, >, &, ' and " escaped, fit for the text of an
// element and for a quoted attribute.
func (l Line) HTML() string { return html.EscapeString(l.s) }

// String returns the text.
func (t Text) String() string { return t.s }

// Hidden counts the code points of s that a reader wouldn't see: controls
// other than tab, LF and CR, and everything that Clean removes.
func Hidden(s string) int {
	n, run := 0, 0
	for i := 0; i < len(s); {
		next := skipPlain(s, i, true)
		if next > i {
			n, run = n+excess(run), 0
		}
		if i = next; i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch classify(r) {
		case variation:
			run++
		case remove: // ends no run: what is around it moves together
			n++
		case control:
			n, run = n+excess(run)+1, 0
		default:
			n, run = n+excess(run), 0
		}
	}
	return n + excess(run)
}

// maxRun is how many variation selectors in a row are kept: one for the
// presentation, one more in faulty but harmless text. A longer run carries
// data, eight bits a selector.
const maxRun = 2

// excess is how many selectors of a run are removed: a run that is too long
// goes as a whole.
func excess(run int) int {
	if run > maxRun {
		return run
	}
	return 0
}

// clean finds the first code point that must change and filters from there;
// before it the text is copied, and without one it is returned as it is.
func clean(s string, block bool) string {
	first := firstChange(s, block)
	if first == len(s) {
		return s
	}
	f := filter{block: block, out: make([]byte, 0, len(s)+utf8.UTFMax)}
	f.out = append(f.out, s[:first]...)
	for i := first; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		f.add(r)
		i += size
	}
	f.endRun()
	return string(f.out)
}

// firstChange returns where the text first may change, or len(s). A run of
// selectors that a removed code point interrupts counts from its start.
func firstChange(s string, block bool) int {
	run, start := 0, 0
	for i := 0; i < len(s); {
		next := skipPlain(s, i, block)
		if next > i {
			run = 0
		}
		if i = next; i == len(s) {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch c := classify(r); {
		case c == variation:
			if run == 0 {
				start = i
			}
			if run++; run > maxRun {
				return start
			}
		case c == keep && (r != utf8.RuneError || size > 1), c == breaks && block && r != '\r':
			run = 0
		case run > 0:
			return start
		default:
			return i
		}
		i += size
	}
	return len(s)
}

// filter applies the classes to one code point after the other.
type filter struct {
	out   []byte
	block bool
	held  [maxRun]rune // the run that may still grow too long
	run   int
}

func (f *filter) add(r rune) {
	c := classify(r)
	if c == variation {
		if f.run < maxRun {
			f.held[f.run] = r
		}
		f.run++
	}
	if c == variation || c == remove {
		return
	}
	f.endRun()
	switch {
	case c == keep, c == breaks && f.block && r != '\r':
		f.out = utf8.AppendRune(f.out, r)
	case c == replace:
		f.out = utf8.AppendRune(f.out, utf8.RuneError)
	default:
		f.out = append(f.out, ' ')
	}
}

func (f *filter) endRun() {
	if f.run <= maxRun {
		for _, r := range f.held[:f.run] {
			f.out = utf8.AppendRune(f.out, r)
		}
	}
	f.run = 0
}
