// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"bytes"
	"sort"
	"strings"
)

// span is a piece of the text, as byte offsets.
type span struct{ start, end int }

// locate finds what an edit seeks, in at most that many places. literal says that it was found byte for
// byte with its own line endings written out, so that what is put there is
// taken byte for byte too.
func locate(src []byte, e Edit, limit int) (spans []span, literal bool) {
	old := []byte(e.OldText)
	step, most := 1, maxListed // overlapping matches make a place ambiguous too
	if e.ReplaceAll {
		step, most = len(old), limit
	}
	if bytes.IndexByte(old, '\r') >= 0 {
		if spans := find(src, old, step, most); len(spans) > 0 {
			return spans, true
		}
		old = flatten(old).text
		step = min(step, len(old))
	} else if bytes.IndexByte(old, '\n') < 0 {
		return find(src, old, step, most), false
	}
	flat := flatten(src)
	spans = find(flat.text, old, step, most)
	for i, s := range spans {
		spans[i] = span{flat.back(s.start), flat.back(s.end)}
	}
	return spans, false
}

// find returns the places of old, at most that many, each begun step bytes or
// more after the one before it.
func find(text, old []byte, step, most int) []span {
	var spans []span
	for at := 0; len(spans) < most; {
		i := bytes.Index(text[at:], old)
		if i < 0 {
			break
		}
		spans = append(spans, span{at + i, at + i + len(old)})
		at += i + step
	}
	return spans
}

// flat is a text with each CR LF seen as LF, and the way back.
type flat struct {
	text []byte
	crs  []uint32 // offsets in text, which MaxText bounds of the line feeds that lost a CR
}

func flatten(src []byte) flat {
	n := bytes.Count(src, []byte("\r\n"))
	if n == 0 {
		return flat{text: src}
	}
	f := flat{text: make([]byte, 0, len(src)-n), crs: make([]uint32, 0, n)}
	for i, c := range src {
		if c == '\r' && i+1 < len(src) && src[i+1] == '\n' {
			f.crs = append(f.crs, uint32(len(f.text))) //nolint:gosec // within MaxText
			continue
		}
		f.text = append(f.text, c)
	}
	return f
}

// back turns an offset in the flat text into one in the source. The offset of
// a line feed that lost its CR becomes that of the CR.
func (f flat) back(offset int) int {
	return offset + sort.Search(len(f.crs), func(i int) bool { return int(f.crs[i]) >= offset })
}

// endings decides the line ending of each line that is put in.
type endings struct {
	text    string
	literal bool
	// lines is the text at its line feeds; explicit says which of these were
	// written as CR LF, and stay so.
	lines    []string
	explicit []bool
	// kept counts the line ends, from the top and from the bottom, whose
	// lines are the same in what is replaced: they keep their endings.
	keptTop, keptBottom int
}

func newEndings(e Edit, literal bool) endings {
	n := endings{text: e.NewText, literal: literal}
	old := strings.Split(strings.ReplaceAll(e.OldText, "\r\n", "\n"), "\n")
	// Written-out CRs that matched bare line feeds were a guess about the
	// file; the guess is not put into it either.
	guessed := !literal && strings.Contains(e.OldText, "\r")
	for _, line := range strings.Split(e.NewText, "\n") {
		bare, cr := strings.CutSuffix(line, "\r")
		n.lines = append(n.lines, bare)
		n.explicit = append(n.explicit, cr && !guessed)
	}
	if last := len(n.lines) - 1; strings.HasSuffix(e.NewText, "\r") {
		n.lines[last] += "\r" // a CR at the very end ends no line
	}
	most := min(len(old), len(n.lines)) - 1
	for n.keptTop < most && old[n.keptTop] == n.lines[n.keptTop] {
		n.keptTop++
	}
	for n.keptBottom < most-n.keptTop && old[len(old)-1-n.keptBottom] == n.lines[len(n.lines)-1-n.keptBottom] {
		n.keptBottom++
	}
	return n
}

// put appends the new text with the endings that fit the place.
func (n endings) put(out, src []byte, at span) []byte {
	if n.literal || len(n.lines) == 1 {
		return append(out, n.text...)
	}
	crs := lineEnds(src[at.start:at.end])
	around := len(crs) == 0 && crlfAround(src, at)
	ends := len(n.lines) - 1
	for i, line := range n.lines[:ends] {
		out = append(out, line...)
		cr := around
		switch left := ends - i; {
		case len(crs) == 0:
		case left <= n.keptBottom:
			cr = crs[len(crs)-left]
		default:
			// A line has the ending of the line in its place; added ones that
			// of the last line replaced, or of the line they precede.
			cr = crs[min(i, max(n.keptTop, len(crs)-n.keptBottom-1), len(crs)-1)]
		}
		if cr || n.explicit[i] {
			out = append(out, '\r')
		}
		out = append(out, '\n')
	}
	return append(out, n.lines[ends]...)
}

// lineEnds tells for each line feed whether a CR is before it.
func lineEnds(text []byte) []bool {
	var crs []bool
	for i, c := range text {
		if c == '\n' {
			crs = append(crs, i > 0 && text[i-1] == '\r')
		}
	}
	return crs
}

// crlfAround tells whether the line that holds a place ends in CR LF, or else
// the line before it.
func crlfAround(src []byte, at span) bool {
	if i := bytes.IndexByte(src[at.end:], '\n'); i >= 0 {
		return at.end+i > 0 && src[at.end+i-1] == '\r'
	}
	i := bytes.LastIndexByte(src[:at.start], '\n')
	return i > 0 && src[i-1] == '\r'
}

// replace returns src with the new text at each place.
func replace(src []byte, spans []span, n endings) []byte {
	room := len(src) + len(spans)*len(n.text)
	for _, s := range spans {
		room -= s.end - s.start
	}
	out := make([]byte, 0, room+len(spans)*(len(n.lines)-1)) // each line feed may become CR LF
	last := 0
	for _, s := range spans {
		out = append(out, src[last:s.start]...)
		out = n.put(out, src, s)
		last = s.end
	}
	return append(out, src[last:]...)
}
