// SPDX-License-Identifier: Apache-2.0

package glob_test

import (
	"fmt"

	"github.com/postern-gate/postern/core/glob"
)

func ExampleCompileFolded() {
	p, err := glob.CompileFolded("**/.git/hooks")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Match("sub/.GIT/hooks"), p.Match(".git/hooks/pre-commit"), p.MatchBeneath(".git/hooks/pre-commit"))
	// Output: true false true
}

func ExampleKey() {
	fmt.Println(glob.Key("Straße/ﬁle. "), glob.Key("\u212a\u200b"))
	// Output: strasse/file k
}
