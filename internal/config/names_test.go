// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNames: what a root may be called, against the expressions that the
// documentation gives.
func TestNames(t *testing.T) {
	root := regexp.MustCompile(`\A[a-z0-9._-]{1,64}\z`)
	alias := regexp.MustCompile(`\A[a-z][a-z0-9+.-]{0,63}\z`)
	check := func(t interface{ Errorf(string, ...any) }, s string) {
		if rootName(s) != root.MatchString(s) {
			t.Errorf("root %q: %t", s, rootName(s))
		}
		if aliasName(s) != alias.MatchString(s) {
			t.Errorf("alias %q: %t", s, aliasName(s))
		}
	}
	for _, s := range []string{"", "a", "a\n", "A", "é", "a b", "-", "1a", "+", "a_", "a+b", "\xff", strings.Repeat("a", 64), strings.Repeat("a", 65)} {
		check(t, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringOfN(rapid.SampledFrom([]rune("az09._-+A é\n")), 0, 66, -1).Draw(t, "name"))
	})
}
