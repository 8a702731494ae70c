// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

func requests() map[string]core.Request {
	return map[string]core.Request{
		"read":   file(core.FSRead, "internal/server2/handler/main_v31.go"),
		"write":  file(core.FSWrite, "internal/Server/README.md"),
		"denied": file(core.FSWrite, "vendor/x/.git/hooks/pre-commit"),
		"long":   file(core.FSWrite, strings.Repeat("Folder/", 36)+"File"),
		"tool":   {Action: core.ToolCall, Resource: core.File("github", "create_issue"), Class: core.Mutating},
		"exec":   {Action: core.ProcExec, Resource: core.File("", "/usr/bin/git")},
		"fetch":  {Action: core.NetFetch, Resource: core.File("", "docs.example.org")},
	}
}

func TestEvaluateDoesNotAllocate(t *testing.T) {
	p := shipped(t)
	for name, r := range requests() {
		if n := testing.AllocsPerRun(100, func() { p.Evaluate(r) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkEvaluateShipped(b *testing.B) {
	p := shipped(b)
	for name, r := range requests() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Evaluate(r)
			}
		})
	}
}

// thousand is 1,000 patterns of every shape, most without a literal segment.
func thousand() []policy.Pattern {
	shapes := []string{"**/*x%d*", "dir%d/**", "**/a%d*/**/z*", "*%d?/[a-f]*", "**/file%d.go", "src/*/m%d*/**", "*.ext%d", "**/[!a]%d*b/**"}
	var out []policy.Pattern
	for i := range 1000 {
		out = append(out, policy.Pattern{Text: fmt.Sprintf(shapes[i%len(shapes)], i)})
	}
	return out
}

func BenchmarkEvaluateThousand(b *testing.B) {
	p := shipped(b, policy.Layer{Deny: thousand()})
	for name, r := range requests() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Evaluate(r)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for name, n := range map[string]int{"shipped": 0, "thousand": 1000} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				shipped(b, policy.Layer{Deny: thousand()[:n]})
			}
		})
	}
}
