// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
)

// Limits of one call. A text as large as the largest one kept for undo can be
// edited; the work is the sum of the text's length over the edits.
const (
	MaxText = 64 << 20 // bytes, before and after each edit
	maxWork = 1 << 30  // bytes looked through: about two seconds
	// MaxReplaced is how many places all edits of one call replace.
	MaxReplaced = 100_000
	// maxListed is how many of several matches are counted: enough to see
	// that the text is far from unique.
	maxListed = 100
)

// Edit is one replacement. NewText is literal: no character of it is special.
type Edit struct {
	OldText, NewText string
	// ReplaceAll replaces every match, from the left and without overlap.
	// Without it there must be exactly one, overlapping ones counted.
	ReplaceAll bool
}

// Refusal says why no edit was made. Because and Next are made of our own
// words and numbers; Near shows text of the file and is outside content.
type Refusal struct {
	Code    fault.Code
	Because string
	Next    string
	// Near is the place most like what was sought, against what was sought,
	// line by line with white space made visible; "" when nothing is alike.
	Near string

	recorded string
}

// What the log tells of an edit that has no one place.
const (
	NotThere = "the text to replace is not in the file"
	Several  = "the text to replace is in the file more than once"
)

// Error returns the reason.
func (r *Refusal) Error() string { return r.Because }

// Recorded is what the log tells: no number, and nothing of the file. It is "" for
// what the code means.
func (r *Refusal) Recorded() string { return r.recorded }

// Check refuses edits that apply to no text whatever. What it returns is a
// *Refusal or nil.
func Check(edits []Edit) error {
	if len(edits) == 0 {
		return &Refusal{Code: fault.RequestInvalid, Because: "there are no edits", Next: "send at least one edit"}
	}
	for i, e := range edits {
		if r := e.empty(); r != nil {
			return r.of(i, len(edits))
		}
	}
	return nil
}

// of names the edit of several that is refused.
func (r *Refusal) of(i, n int) *Refusal {
	r.Because = fmt.Sprintf("edit %d of %d: %s", i+1, n, r.Because)
	return r
}

// Apply returns src with the edits made in order, each on the result of the
// one before it. It makes all of them or returns a *Refusal and no text. The
// line numbers in a refusal count in the text that the refused edit met. src
// is not changed.
func Apply(src []byte, edits []Edit) ([]byte, error) {
	if err := Check(edits); err != nil {
		return nil, err
	}
	if r := refuseText(src); r != nil {
		return nil, r
	}
	out, work, left := src, 0, MaxReplaced
	ascii := !utf8.Valid(src)
	for i, e := range edits {
		work += len(out)
		next, n, r := e.apply(out, ascii, left)
		left -= n
		if r == nil && (work > maxWork || len(next) > MaxText) {
			r = tooMuch()
		}
		if r != nil {
			return nil, r.of(i, len(edits))
		}
		out = next
	}
	if bytes.Equal(out, src) {
		return nil, unchanged("the edits undo each other, so nothing would change")
	}
	return out, nil
}

// refuseText refuses what is not text that can be edited byte for byte.
func refuseText(src []byte) *Refusal {
	var because string
	switch {
	case bytes.HasPrefix(src, []byte{0xFF, 0xFE}), bytes.HasPrefix(src, []byte{0xFE, 0xFF}):
		because = "the file is UTF-16, and edits are made in UTF-8 text"
	case bytes.IndexByte(src, 0) >= 0:
		because = "the file holds NUL bytes, so it is binary or UTF-16 and not text to edit"
	case len(src) > MaxText:
		return tooMuch()
	default:
		return nil
	}
	return &Refusal{Code: fault.TextUnsafe, Because: because, Next: "use a program made for this kind of file"}
}

func tooMuch() *Refusal {
	return &Refusal{
		Code:    fault.LimitExceeded,
		Because: fmt.Sprintf("the text is over %d MiB, or there are too many edits for its size", MaxText>>20),
		Next:    "send fewer edits at a time",
	}
}

func tooMany() *Refusal {
	return &Refusal{
		Code:    fault.LimitExceeded,
		Because: fmt.Sprintf("more than %d matches would be replaced in one call", MaxReplaced),
		Next:    "send more of the lines around it so that fewer match",
	}
}

func unchanged(because string) *Refusal {
	return &Refusal{Code: fault.RequestInvalid, Because: because, Next: "leave that edit out"}
}

// apply makes one edit in at most that many places, and says in how many. ascii
// says that only ASCII can be put in, since the text is in an encoding that
// isn't known.
func (e Edit) apply(src []byte, ascii bool, most int) ([]byte, int, *Refusal) {
	if r := e.refuse(ascii); r != nil {
		return nil, 0, r
	}
	spans, literal := locate(src, e, most+1)
	switch {
	case len(spans) == 0:
		return nil, 0, missing(src, e.OldText)
	case len(spans) > 1 && !e.ReplaceAll:
		return nil, 0, ambiguous(src, spans)
	case len(spans) > most:
		return nil, 0, tooMany()
	}
	// Each line feed put in may become CR LF.
	grown := len(e.NewText) + strings.Count(e.NewText, "\n")
	if grown > 0 && len(spans) > MaxText/grown {
		return nil, 0, tooMuch()
	}
	out := replace(src, spans, newEndings(e, literal))
	if bytes.Equal(out, src) {
		return nil, 0, unchanged("what is put in is what is there, so nothing would change")
	}
	return out, len(spans), nil
}

// empty refuses an edit that says nothing.
func (e Edit) empty() *Refusal {
	switch e.OldText {
	case "":
		return &Refusal{
			Code: fault.RequestInvalid, Because: "oldText is empty, which is everywhere",
			Next: "send the text that is to be replaced; append_file adds to the end",
		}
	case e.NewText:
		return unchanged("oldText and newText are the same, so nothing would change")
	}
	return nil
}

func (e Edit) refuse(ascii bool) *Refusal {
	switch {
	case strings.IndexByte(e.NewText, 0) >= 0:
		return &Refusal{
			Code: fault.TextUnsafe, Because: "newText holds a NUL byte, which would make the file binary",
			Next: "leave it out",
		}
	case ascii && strings.IndexFunc(e.NewText, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0:
		return &Refusal{
			Code: fault.TextUnsafe, Because: "the file is not UTF-8, and newText is not plain ASCII: the file would hold two encodings",
			Next: "use ASCII, or convert the file first",
		}
	}
	return nil
}

// ambiguous says how many matches there are and in which lines.
func ambiguous(src []byte, spans []span) *Refusal {
	count := strconv.Itoa(len(spans))
	if len(spans) >= maxListed {
		count = "at least " + count
	}
	return &Refusal{
		Code:    fault.PreconditionFailed,
		Because: "oldText has " + count + " matches, " + lineList(src, spans),
		Next:    "send more of the lines around it so that it is unique, or set replaceAll: true",

		recorded: Several,
	}
}

// lineList is "lines 1 and 3", with the first few of many.
func lineList(src []byte, spans []span) string {
	const most = 10
	var numbers []string
	line, at := 1, 0
	for _, s := range spans {
		line += bytes.Count(src[at:s.start], []byte("\n"))
		at = s.start
		numbers = append(numbers, strconv.Itoa(line))
	}
	numbers = slices.Compact(numbers)
	switch n := len(numbers); {
	case n == 1:
		return "all in line " + numbers[0]
	case n > most:
		return "lines " + strings.Join(numbers[:most], ", ") + " and more"
	default:
		return "lines " + strings.Join(numbers[:n-1], ", ") + " and " + numbers[n-1]
	}
}
