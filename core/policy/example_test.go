// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/policy"
)

func ExampleCompile() {
	shipped := policy.Default()
	p, err := policy.Compile(policy.Config{
		Roots:    []policy.Root{{Name: "project"}},
		Layers:   []policy.Layer{{Deny: []policy.Pattern{{Text: "legal/**", Why: "ask the legal team"}}}},
		Fallback: &shipped,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"main.go", "Legal/terms.md", ".git/hooks/pre-commit"} {
		v := p.Evaluate(core.Request{Action: core.FSWrite, Resource: core.File("project", name)})
		fmt.Println(v.Decision, "because", v.Reason)
	}
	// Output:
	// allow because fs.write: allow (shipped default): the general rule
	// deny because deny "legal/**": ask the legal team
	// deny because deny "**/.git/hooks/**" (built-in: git): an explicit deny outranks allow
}
