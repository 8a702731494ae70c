// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxFile bounds a file that is read, in bytes.
const maxFile = 4 << 20

// problem is why a text can't be edited, and where.
type problem struct {
	at   int // offset, -1 for the text as a whole
	text string
	hint string
}

func (p *problem) Error() string { return p.text }

func wrong(at int, text string, args ...any) *problem {
	return &problem{at: at, text: fmt.Sprintf(text, args...)}
}

// place draws the offset as :line:column, both from 1, the column in bytes.
func (p *problem) place(text []byte) string {
	if p.at < 0 || p.at > len(text) {
		return ""
	}
	line := bytes.Count(text[:p.at], []byte("\n")) + 1
	return fmt.Sprintf(":%d:%d", line, p.at-bytes.LastIndexByte(text[:p.at], '\n'))
}

// made is what adding an entry made beside it, so that removing it can tell
// what was there before.
type made struct {
	Root   bool `json:"root,omitempty"`   // the text had no value
	Object bool `json:"object,omitempty"` // the object of entries
	// Closed and ClosedRoot: a line end was put before the closing brace of the
	// object of entries, or of the root.
	Closed     bool `json:"closed,omitempty"`
	ClosedRoot bool `json:"closed_root,omitempty"`
	// Was is the text of the entry that ours took the place of, WasRuns what it
	// ran; "" for none.
	Was     string `json:"was,omitempty"`
	WasRuns string `json:"was_runs,omitempty"`
}

// splice is one change of a text: from..to becomes with.
type splice struct {
	from, to int
	with     string
}

// apply makes the changes, which are in order and don't overlap.
func apply(text []byte, splices []splice) []byte {
	var out bytes.Buffer
	at := 0
	for _, s := range splices {
		out.Write(text[at:s.from])
		out.WriteString(s.with)
		at = s.to
	}
	out.Write(text[at:])
	return out.Bytes()
}

// bom is the byte order mark that some editors on Windows put first.
var bom = []byte("\xef\xbb\xbf")

// checkText refuses what no client's file is.
func checkText(text []byte) *problem {
	if len(text) > maxFile {
		return wrong(-1, "it is larger than 4 MiB")
	}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return wrong(i, "it is not UTF-8")
		}
		i += n
	}
	return nil
}

// lineEnd is the line end of a text: that of its first line.
func lineEnd(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// indentAt is the white space at the front of the line that holds the offset.
func indentAt(text []byte, at int) string {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	end := start
	for end < at && (text[end] == ' ' || text[end] == '\t') {
		end++
	}
	return string(text[start:end])
}

// isPostern reports whether a command is this program, wherever it lies and on
// whatever system the line was written.
func isPostern(command string) bool {
	name := path.Base(strings.ReplaceAll(command, `\`, "/"))
	return strings.TrimSuffix(name, ".exe") == "postern"
}

// serves reports whether an entry runs a postern serve, in whatever form.
func (e entry) serves() bool {
	return isPostern(e.command) && len(e.args) > 0 && e.args[0] == "serve"
}

// plain reports whether the entry is a line as init writes it: one folder, and
// no flag that somebody has added.
func (e entry) plain() bool {
	return e.serves() && len(e.args) == 4 && e.args[1] == "--agent" && absolute(e.args[3])
}

// absolute holds for the paths of any system.
func absolute(p string) bool {
	return filepath.IsAbs(p) || strings.HasPrefix(p, "/") || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// runs stands for what the entry runs.
func (e entry) runs() string { return hash([]byte(list(append([]string{e.command}, e.args...)))) }

// same reports whether both run the same.
func (e entry) same(o entry) bool {
	if e.command != o.command || len(e.args) != len(o.args) {
		return false
	}
	for i, a := range e.args {
		if a != o.args[i] {
			return false
		}
	}
	return true
}
