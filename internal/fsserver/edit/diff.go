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
// the last changed line.
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
	a, b := cutLines(string(before)), cutLines(string(after))
	top := common(len(a), len(b), func(i int) bool { return a[i] == b[i] })
	bottom := common(len(a)-top, len(b)-top, func(i int) bool { return a[len(a)-1-i] == b[len(b)-1-i] })
	midA, midB := a[top:len(a)-bottom], b[top:len(b)-bottom]
	if len(midA)+len(midB) > maxDiffLines || length(midA)+length(midB) > maxDiffBytes {
		return fmt.Sprintf("the change is too large to show: of %d lines, %d are replaced by %d\n", len(a), len(midA), len(midB)), false
	}
	changes := lcs.DiffLines(midA, midB)
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
		writeHunk(&out, a, b, changes[:n])
		changes = changes[n:]
	}
	return out.String(), true
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

// writeHunk writes changes that are close together as one hunk.
func writeHunk(out *strings.Builder, a, b []string, changes []lcs.Diff) {
	first, last := changes[0], changes[len(changes)-1]
	lead := min(context, first.Start)
	trail := min(context, len(a)-last.End)
	fmt.Fprintf(out, "@@ -%s +%s @@\n",
		hunkRange(first.Start-lead, last.End+trail),
		hunkRange(first.ReplStart-lead, last.ReplEnd+trail))
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

func length(lines []string) int {
	n := 0
	for _, line := range lines {
		n += len(line)
	}
	return n
}
