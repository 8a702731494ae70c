// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

// Problem is one error in a policy file.
type Problem struct {
	Pos     core.Position
	Message string
	Line    string // the source line

	next string // what to do, "" to correct the file
}

// Invalid is every error that was found. It is the cause of the fault that
// Load returns; Error draws all of them with source line and caret.
type Invalid struct{ Problems []Problem }

// Error returns the problems one after another, each as
//
//	policy.yaml:7:8: what is wrong
//	  7 | deny: [a/]
//	    |        ^
func (e *Invalid) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.draw())
	}
	return b.String()
}

const (
	shownBefore = 60 // characters of a long line before the caret
	shownAfter  = 60
	maxShown    = 100 // problems of one file
)

func (p Problem) draw() string {
	head := textsafe.Clean(p.Pos.String() + ": " + p.Message).String()
	if p.Pos.Line == 0 {
		return head
	}
	before, after := split(p.Line, p.Pos.Column-1)
	number := fmt.Sprintf("%3d", p.Pos.Line)
	clean := func(s string) string { return textsafe.Clean(strings.ReplaceAll(s, "\t", " ")).String() }
	return head + "\n" + number + " | " + clean(before) + clean(after) +
		"\n" + strings.Repeat(" ", len(number)) + " | " + strings.Repeat(" ", len([]rune(clean(before)))) + "^"
}

// split cuts the line at the caret and shortens both halves.
func split(line string, at int) (string, string) {
	runes := []rune(line)
	at = min(max(at, 0), len(runes))
	before, after := runes[:at], runes[at:]
	if len(before) > shownBefore {
		before = before[len(before)-shownBefore:]
	}
	if len(after) > shownAfter {
		after = after[:shownAfter]
	}
	return string(before), string(after)
}

// invalid returns the fault of the problems, nil when there are none.
func invalid(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	next := "correct the file; postern status reads it again"
	if own := problems[0].next; own != "" && !slices.ContainsFunc(problems, func(p Problem) bool { return p.next != own }) {
		next = own
	}
	return &fault.Error{
		Code: fault.ConfigInvalid, Op: "policy", Resource: problems[0].Pos.File,
		Rule: count(problems), Hint: next,
		Err: &Invalid{Problems: problems[:min(len(problems), maxShown)]},
	}
}

// count says what the problem is, or how many there are: the cause draws each.
func count(problems []Problem) string {
	if len(problems) == 1 {
		p := problems[0]
		if p.Pos.Line == 0 {
			return p.Message
		}
		return "line " + strconv.Itoa(p.Pos.Line) + ": " + p.Message
	}
	files, text := map[string]int{}, ""
	for _, p := range problems {
		if files[p.Pos.File]++; files[p.Pos.File] == maxKept {
			text = "at least "
		}
	}
	text += strconv.Itoa(len(problems)) + " problems"
	if len(files) > 1 {
		text += " in " + strconv.Itoa(len(files)) + " files"
	}
	if len(problems) > maxShown {
		text += ", the first " + strconv.Itoa(maxShown) + " shown"
	}
	return text
}
