// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/postern-gate/postern/core/fault"
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
		b, _ := json.Marshal(out) // has no value that could fail
		text = string(b) + "\n"
	}
	_, _ = io.WriteString(w, text)
	return f.Code.Exit()
}

// explained are the three lines of a fault; before them, of a policy that is
// not valid, everything that is wrong with it.
func explained(f *fault.Error) string {
	var invalid *config.Invalid
	if errors.As(f, &invalid) {
		return invalid.Error() + "\n" + f.Lines()
	}
	return f.Lines()
}

// answer prints v as one JSON document, or text.
func answer(w io.Writer, asJSON bool, v any, text func(io.Writer)) error {
	if !asJSON {
		text(w)
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// document is the head of every JSON answer. Fields are only ever added.
type document struct {
	Schema  string `json:"schema"`
	Version int    `json:"version"`
}

func newDocument(verb string) document { return document{"postern/" + verb, 1} }
