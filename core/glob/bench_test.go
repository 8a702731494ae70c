// SPDX-License-Identifier: Apache-2.0

package glob_test

import (
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/glob"
)

func BenchmarkKey(b *testing.B) {
	for name, path := range map[string]string{
		"lower": "src/internal/config/config.go", "upper": "src/Internal/README.md", "foreign": "src/Straße/é.go",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				glob.Key(path)
			}
		})
	}
}

// BenchmarkHostile is the pattern that makes a backtracking matcher explode.
func BenchmarkHostile(b *testing.B) {
	for name, c := range map[string][2]string{
		"stars":    {strings.Repeat("a*", 30) + "b", strings.Repeat("a", 250)},
		"segments": {strings.Repeat("**/a/", 30) + "b", strings.Repeat("a/", 250) + "a"},
	} {
		p, err := glob.Compile(c[0])
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p.Match(c[1])
			}
		})
	}
}
