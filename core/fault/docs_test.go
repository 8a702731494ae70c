// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
)

var update = flag.Bool("update", false, "rewrite docs/errors.md from the table")

var kindNames = map[fault.Kind]string{
	fault.KindBug: "bug", fault.KindDenial: "denial", fault.KindFailure: "failure",
}

// errorsPage is docs/errors.md. The table is its only source.
func errorsPage() string {
	var b strings.Builder
	b.WriteString(`# Error codes

<!-- Generated from core/fault/table.go by: go generate ./core/fault -->

The **code** is the contract: it never changes its meaning. In MCP it is
` + "`_meta[\"dev.postern/error\"].code`" + ` of a tool result with ` + "`isError`" + `, or ` + "`data.code`" + ` of a
JSON-RPC error where a specification fixes a number; ` + "`--json`" + ` prints it, and Go code
finds it with ` + "`fault.CodeOf(err)`" + `. A *denial* means the gate worked, a *failure* that the
operation could not be done, a *bug* that postern itself is wrong and did nothing. An exit
code that isn't listed is a failure.

| code | name | kind | exit | HTTP | JSON-RPC | meaning | next |
|---|---|---|---|---|---|---|---|
`)
	for _, c := range fault.Codes() {
		rpc := "tool result"
		if c.RPC() != 0 {
			rpc = fmt.Sprint(c.RPC())
		}
		kind := kindNames[c.Kind()]
		if c.Exit() == fault.ExitOK {
			kind = "no error"
		}
		e := &fault.Error{Code: c}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %d | %s | %s | %s |\n",
			c, c.Seed(), kind, c.Exit(), c.HTTP(), rpc, e.Error(), e.Next())
	}
	b.WriteString(`
A refusal reads the same everywhere, with the one next step in its last line:

` + "```" + `
` + (&fault.Error{
		Code: fault.PolicyDenied, Op: "fs.write", Resource: "project://.git/hooks/pre-commit",
		Rule: `deny "**/.git/hooks/**" (policy.yaml:7:20): an explicit deny outranks allow`,
	}).Lines() + `
` + "```" + `
`)
	return b.String()
}

func TestErrorsPage(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "errors.md")
	if *update {
		if err := os.WriteFile(path, []byte(errorsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(errorsPage(), string(got)); diff != "" {
		t.Errorf("docs/errors.md is not what the table says; go generate ./core/fault rewrites it:\n%s", diff)
	}
}
