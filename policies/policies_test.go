// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/policies"
)

// TestListed: docs/policy.md names every ready policy, and the files beside
// this one are those that are embedded.
func TestListed(t *testing.T) {
	page, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range policies.Ready() {
		if !strings.Contains(string(page), "(../policies/"+name+".yaml)") {
			t.Errorf("docs/policy.md does not name policies/%s.yaml", name)
		}
	}
	here, err := filepath.Glob("*.yaml")
	if err != nil || len(here) != len(policies.Ready())+2 {
		t.Errorf("%v %v, embedded %v", here, err, policies.Ready())
	}
	if _, ok := policies.Named("user"); ok {
		t.Error("what init writes is not a ready policy")
	}
}
