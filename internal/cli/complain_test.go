// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
)

// TestComplain: a warning that comes up isn't said to be a policy that is not in force.
func TestComplain(t *testing.T) {
	for want, err := range map[string]error{
		"the policy is valid again and in force\n": nil,
		"warning: root a : too many\n":             config.Warning("root a\x1b: too many"),
		"the changed policy is not in force, the last good one is\nfailed: x\nbecause: y\nnext: z\n": &fault.Error{Code: fault.ConfigInvalid, Op: "x", Rule: "y", Hint: "z"},
	} {
		var out bytes.Buffer
		complain(&Env{Err: &out}, err)
		if out.String() != want {
			t.Errorf("%v: %q, want %q", err, out.String(), want)
		}
	}
}
