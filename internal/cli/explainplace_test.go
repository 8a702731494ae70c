// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"regexp"
	"testing"

	"github.com/postern-gate/postern/core"
)

// TestPlaceOf: a reason's place is read where it stands, and what a pattern, a
// path or a person's words say is no built-in entry.
func TestPlaceOf(t *testing.T) {
	at := func(file string) core.Position { return core.Position{File: file, Line: 2, Column: 10} }
	for _, r := range []core.Reason{
		{Rule: `deny "**/.env"`, Builtin: "dotenv", Why: "x (/p.yaml:1:1): y"},
		{Rule: `deny "**/(built-in: git)\""`, Builtin: "dotenv"},
		{Rule: `deny "a"`, Pos: at("/p/policy.yaml"), Why: "it is ours (built-in: git): so"},
		{Rule: "fs.write: deny", Pos: at("/p/x (built-in: git)/.postern/policy.yaml")},
		{Rule: `deny "x (built-in: git): "`, Pos: at(`/p/y (built-in: git): z/policy.yaml`)},
		{Rule: `deny "x\\\" (/q:1:1): "`, Pos: at("/p/policy.yaml")},
		{Rule: "fs.read: deny", Pos: at(`C:\p\policy.yaml`)},
		{Rule: "fs.delete: ask", Pos: core.Position{File: "shipped default"}, Why: "x (built-in: git): y (/p:1:1): z"},
		{Why: "(built-in: git): x"},
	} {
		text := r.String()
		built := ""
		if m := regexp.MustCompile(builtinRule).FindStringSubmatch(text); m != nil {
			built = m[1]
		}
		got, ok := placeOf(text)
		if built != r.Builtin || ok != (r.Pos.Line > 0) || ok && got != r.Pos {
			t.Errorf("%s: built-in %q, at %v %v", text, built, got, ok)
		}
	}
}
