// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/selftest"
)

// TestSelftestTold: a mechanism that is missing or untested can't be overlooked:
// its line, exit 6, and the same as a document; what stands in a line is drawn
// safely.
func TestSelftestTold(t *testing.T) {
	report := selftest.Report{Results: []selftest.Result{
		{Name: "a", Status: selftest.Held, Tried: 3, About: "three"},
		{Name: "b", Status: selftest.Weaker, Tried: 1, About: "one"},
		{Name: "c", Status: selftest.Missing, Tried: 2, About: "\x1b[31mout"},
		{Name: "d", Status: selftest.Untested, About: "none"},
	}}
	var out bytes.Buffer
	err := tellSelftest(&Env{Out: &out}, report, false)
	if fault.CodeOf(err).Exit() != fault.ExitEnforcement || !strings.Contains(fault.As(err).Lines(), "because: of 4 mechanisms 2 are not shown to hold here: c, d") {
		t.Errorf("%v", err)
	}
	for _, want := range []string{"held      a", "weaker    b", "MISSING   c", "untested  d", "  3 tried: three\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "hold\n") {
		t.Errorf("%q", out.String())
	}

	out.Reset()
	err = tellSelftest(&Env{Out: &out}, report, true)
	var code exitCode
	if !errors.As(err, &code) || int(code) != fault.ExitEnforcement {
		t.Errorf("%v", err)
	}
	var got struct {
		OK         bool
		Code       string
		Mechanisms []struct{ Name, Status string }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.OK || got.Code != "sandbox.unavailable" || got.Mechanisms[2].Status != "missing" {
		t.Errorf("%v: %s", err, out.String())
	}

	out.Reset()
	report.Results = report.Results[:2]
	if err := tellSelftest(&Env{Out: &out}, report, false); err != nil || !strings.HasSuffix(out.String(), "all 2 mechanisms hold, 1 of them weaker than elsewhere\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}
