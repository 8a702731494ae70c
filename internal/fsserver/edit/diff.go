// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"github.com/postern-gate/postern/core/textsafe"
)

// Limits of a diff that is computed and shown, counted between the first and
// the last changed line; the bytes with the lines of context.
const (
	maxDiffLines = 20000
	maxDiffBytes = 1 << 20
	context      = 4 // unchanged lines around a change
)

// Diff returns the change as a unified diff in the form of the reference
// server: file names, hunks with four lines of context, line endings as they
// are. It is "" when nothing changed. ok is false when the change is too large
// to show; the text is then a line that says how large it is.
func Diff(name string, before, after []byte) (text string, ok bool) {
	if bytes.Equal(before, after) {
		return "", true
	}
	lo, hiA, hiB := changed(before, after)
	numA, numB := countLines(before[lo:hiA]), countLines(after[lo:hiB])
	from, to := around(before, lo, hiA)
	if numA+numB > maxDiffLines || to-from+hiB-lo > maxDiffBytes {
		return fmt.Sprintf("the change is too large to show: of %d lines, %d are replaced by %d\n", countLines(before), numA, numB), false
	}
	w := window{
		a: cutLines(string(before[from:to])), b: cutLines(string(after[from:hiB])),
		first: bytes.Count(before[:from], []byte("\n")),
	}
	top := countLines(before[from:lo])
	changes := lcs.DiffLines(w.a[top:top+numA], w.b[top:])
	for i := range changes {
		changes[i].Start += top
		changes[i].End += top
		changes[i].ReplStart += top
		changes[i].ReplEnd += top
	}
	label := textsafe.Name(name)
	var out strings.Builder
	fmt.Fprintf(&out, "Index: %s\n%s\n--- %s\toriginal\n+++ %s\tmodified\n", label, strings.Repeat("=", 67), label, label)
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].Start-changes[n-1].End <= 2*context {
			n++
		}
		w.writeHunk(&out, changes[:n])
		changes = changes[n:]
	}
	return out.String(), true
}

// changed returns where the first line that differs begins, and where the lines
// that are the same again begin in each text. It holds nothing of a line in
// memory: a text may be all line feeds.
func changed(a, b []byte) (lo, hiA, hiB int) {
	n := common(len(a), len(b), func(i int) bool { return a[i] == b[i] })
	lo = bytes.LastIndexByte(a[:n], '\n') + 1
	n = common(len(a)-lo, len(b)-lo, func(i int) bool { return a[len(a)-1-i] == b[len(b)-1-i] })
	hiA, hiB = len(a)-n, len(b)-n
	if begins(a, lo, hiA) && begins(b, lo, hiB) {
		return lo, hiA, hiB
	}
	skip := bytes.IndexByte(a[hiA:], '\n') + 1
	if skip == 0 {
		skip = n // the rest of the one line
	}
	return lo, hiA + skip, hiB + skip
}

// begins reports whether a line begins there; one does at lo.
func begins(text []byte, lo, at int) bool { return at == lo || text[at-1] == '\n' }

// around widens a range of whole lines by the lines of context.
func around(text []byte, lo, hi int) (from, to int) {
	from, to = lo, hi
	for range context {
		if from > 0 {
			from = bytes.LastIndexByte(text[:from-1], '\n') + 1
		}
		if i := bytes.IndexByte(text[to:], '\n'); i >= 0 {
			to += i + 1
		} else {
			to = len(text)
		}
	}
	return from, to
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// Fence puts a diff between lines of backticks that it can't hold itself, as
// the reference server does.
func Fence(diff string) string {
	ticks := "```"
	for strings.Contains(diff, ticks) {
		ticks += "`"
	}
	return ticks + "diff\n" + diff + ticks + "\n\n"
}

// window is the part of both texts that a diff shows, and how many lines come
// before it.
type window struct {
	a, b  []string
	first int
}

// writeHunk writes changes that are close together as one hunk.
func (w window) writeHunk(out *strings.Builder, changes []lcs.Diff) {
	a, b := w.a, w.b
	first, last := changes[0], changes[len(changes)-1]
	lead := min(context, first.Start)
	trail := min(context, len(a)-last.End)
	fmt.Fprintf(out, "@@ -%s +%s @@\n",
		hunkRange(w.first+first.Start-lead, w.first+last.End+trail),
		hunkRange(w.first+first.ReplStart-lead, w.first+last.ReplEnd+trail))
	at := first.Start - lead
	for _, c := range changes {
		writeLines(out, ' ', a[at:c.Start])
		writeLines(out, '-', a[c.Start:c.End])
		writeLines(out, '+', b[c.ReplStart:c.ReplEnd])
		at = c.End
	}
	writeLines(out, ' ', a[at:last.End+trail])
}

// hunkRange is first,count; an empty range names the line before it.
func hunkRange(start, end int) string {
	if start == end {
		return fmt.Sprintf("%d,0", start)
	}
	return fmt.Sprintf("%d,%d", start+1, end-start)
}

func writeLines(out *strings.Builder, sign byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(sign)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// cutLines returns the lines with their line feeds.
func cutLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// common counts how many of the first n and m are the same.
func common(n, m int, same func(int) bool) int {
	i := 0
	for i < min(n, m) && same(i) {
		i++
	}
	return i
}
