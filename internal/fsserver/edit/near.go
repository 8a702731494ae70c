// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
)

// What is looked at and shown of a near miss; beyond it a person looks
// themselves.
const (
	nearLines  = 50    // lines of what was sought that are compared
	nearFile   = 50000 // lines of the file that are compared
	nearWords  = 32    // words of a line that are compared
	shownLines = 12    // pairs of lines that are shown
	shownRunes = 160   // of each line
	alike      = 0.5   // least likeness, of 1, that is worth showing
)

// missing refuses an edit whose text is not there, and shows the place that is
// most like it. Nothing is ever changed there: which of two spellings is meant
// is for the caller to say.
func missing(src []byte, old string) *Refusal {
	r := &Refusal{
		Code: fault.PreconditionFailed, Because: "oldText is not in the file",
		Next: "read the file again and send oldText as it stands there", recorded: NotThere,
	}
	file := splitLines(string(flatten(src).text), nearFile)
	sought := splitLines(string(flatten([]byte(old)).text), nearLines)
	start, like := closest(file, sought)
	if like < alike {
		return r
	}
	end := min(start+len(sought), len(file))
	where := fmt.Sprintf("line %d is the closest", start+1)
	if end > start+1 {
		where = fmt.Sprintf("lines %d to %d are the closest", start+1, end)
	}
	r.Because += "; " + where
	switch {
	case end == len(file) && !bytes.HasSuffix(src, []byte("\n")) && strings.HasSuffix(old, "\n"):
		r.Because += ", and the file ends without a line feed"
	case like == 1:
		r.Because += ", apart from white space"
	}
	r.Near = compare(file[start:end], sought, start)
	return r
}

// splitLines returns at most that many lines, without their line feeds. A
// final line feed begins no line.
func splitLines(text string, most int) []string {
	lines := strings.SplitN(strings.TrimSuffix(text, "\n"), "\n", most+1)
	return lines[:min(len(lines), most)]
}

// signature is what likeness looks at: the line without white space, and the
// words in it.
type signature struct {
	bare  uint64
	words []uint64 // sorted
	blank bool
}

// sign hashes with a fixed function: an answer must not change from call to
// call, and a collision only shows a less fitting place.
func sign(line string) signature {
	bare := fnv.New64a()
	s := signature{blank: true}
	for word := range strings.FieldsSeq(line) {
		s.blank = false
		_, _ = io.WriteString(bare, word) // never fails (documented)
		if len(s.words) < nearWords {
			one := fnv.New64a()
			_, _ = io.WriteString(one, word) // never fails (documented)
			s.words = append(s.words, one.Sum64())
		}
	}
	s.bare = bare.Sum64()
	slices.Sort(s.words)
	return s
}

// likeness is 1 for lines that differ in white space at most, else the share
// of words that both have, below 1.
func likeness(a, b signature) float64 {
	if a.bare == b.bare {
		return 1
	}
	both, i, j := 0, 0, 0
	for i < len(a.words) && j < len(b.words) {
		switch {
		case a.words[i] < b.words[j]:
			i++
		case a.words[i] > b.words[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return 1.9 * float64(both) / float64(1+len(a.words)+len(b.words))
}

// closest returns the first line of the region of the file that is most like
// the sought lines, and how like it is, 0 to 1. Blank lines count for nothing.
func closest(file, sought []string) (start int, like float64) {
	want := make([]signature, len(sought))
	weight := 0
	for i, line := range sought {
		if want[i] = sign(line); !want[i].blank {
			weight++
		}
	}
	if weight == 0 {
		return 0, 0
	}
	have := make([]signature, len(file))
	for i, line := range file {
		have[i] = sign(line)
	}
	for at := range have {
		sum := 0.0
		for i := 0; i < len(want) && at+i < len(have); i++ {
			if !want[i].blank {
				sum += likeness(have[at+i], want[i])
			}
		}
		if sum /= float64(weight); sum > like {
			start, like = at, sum
		}
	}
	return start, like
}

// compare sets lines of the file against what was sought.
func compare(file, sought []string, first int) string {
	var b strings.Builder
	b.WriteString("(→ tab, · blank, ␍ carriage return)\n")
	width := len(strconv.Itoa(first + len(file)))
	for i, line := range file[:min(len(file), shownLines)] {
		fmt.Fprintf(&b, "file %*d |%s\n", width, first+i+1, visible(line))
		if got := sought[i]; got != line {
			fmt.Fprintf(&b, "sent %*s |%s\n", width, "", visible(got))
		}
	}
	if more := len(file) - shownLines; more > 0 {
		fmt.Fprintf(&b, "and %d more lines\n", more)
	}
	return b.String()
}

// visible draws a line so that white space, and what can't be seen or isn't
// UTF-8, can be told apart. It holds no control, format or space character.
func visible(line string) string {
	var b strings.Builder
	for n := 0; line != ""; n++ {
		if n == shownRunes {
			b.WriteString("…")
			break
		}
		r, size := utf8.DecodeRuneInString(line)
		switch {
		case r == '\t':
			b.WriteString("→")
		case r == ' ':
			b.WriteString("·")
		case r == '\r':
			b.WriteString("␍")
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, line[0])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		default:
			b.WriteRune(r)
		}
		line = line[size:]
	}
	return b.String()
}
