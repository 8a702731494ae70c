// SPDX-License-Identifier: Apache-2.0

package enforce_test

import (
	"os"
	"strings"
	"testing"
)

// TestExtendingIsRun: every snippet of the page is in the file of examples
// that the tests run.
func TestExtendingIsRun(t *testing.T) {
	page, err1 := os.ReadFile("../docs/extending.md")
	run, err2 := os.ReadFile("example_test.go")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	parts := strings.Split(string(page), "```go\n")
	if len(parts) < 5 {
		t.Fatalf("%d snippets", len(parts)-1)
	}
	for _, part := range parts[1:] {
		snippet, _, _ := strings.Cut(part, "```")
		if !strings.Contains(string(run), snippet) {
			t.Errorf("not in example_test.go:\n%s", snippet)
		}
	}
}
