// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/config"
)

// errorJSON is an error as --json prints it, on stderr. Fields are only added.
type errorJSON struct {
	document
	Code     string        `json:"code"`
	Message  string        `json:"message"`
	Hint     string        `json:"hint"`
	Exit     int           `json:"exit"`
	Problems []problemJSON `json:"problems,omitempty"` // of a policy, all of them
}

type problemJSON struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// report prints an error in one write and returns its exit code.
func report(w io.Writer, err error, asJSON bool) int {
	f := fault.As(err)
	text := explained(f) + "\n"
	if asJSON {
		out := errorJSON{newDocument("error"), f.Code.String(), f.Error(), f.Next(), f.Code.Exit(), nil}
		var invalid *config.Invalid
		if errors.As(f, &invalid) {
			for _, p := range invalid.Problems {
				out.Problems = append(out.Problems, problemJSON{p.Pos.File, p.Pos.Line, p.Pos.Column, p.Message})
			}
		}
		var b strings.Builder
		_ = encode(&b, out, "") // a Builder does not fail
		text = b.String()
	}
	_, _ = io.WriteString(w, text)
	return f.Code.Exit()
}

// explained are the three lines of a fault; before them, of a policy that is
// not valid, everything that is wrong with it. Each sentence stands there once.
func explained(f *fault.Error) string {
	var invalid *config.Invalid
	switch {
	case !errors.As(f, &invalid), len(invalid.Problems) == 1 && invalid.Problems[0].Pos.Line == 0:
		return f.Lines()
	case len(invalid.Problems) == 1:
		short := *f
		short.Rule = fmt.Sprintf("1 problem, in line %d", invalid.Problems[0].Pos.Line)
		f = &short
	}
	return invalid.Error() + "\n" + f.Lines()
}

// answer prints v as one JSON document, or text.
func answer(w io.Writer, asJSON bool, v any, text func(io.Writer)) error {
	if asJSON {
		return encode(w, v, "  ")
	}
	text(w)
	_, err := w.Write(nil) // after a write that failed, none succeeds
	return err
}

// encode writes v as JSON that can also be looked at: what textsafe would not
// draw travels as escapes, so that nothing is lost and nothing acts.
func encode(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", indent)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	if !bytes.ContainsFunc(b.Bytes(), func(r rune) bool { return r >= 0x7f }) {
		_, err := w.Write(b.Bytes())
		return err
	}
	var out strings.Builder
	for _, r := range b.String() {
		if r < 0x7f || textsafe.Name(string(r)) == string(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, `\u%04x`, unit)
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// document is the head of every JSON answer. Fields are only ever added.
type document struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
}

func newDocument(verb string) document { return document{"postern/" + verb, 1} }
