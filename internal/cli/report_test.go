// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

// hostile acts on a terminal or a reader in several ways: an escape sequence,
// a bidi override, a tag character beyond the basic plane, a C1 control.
const hostile = "a\x1b[31m\u202e\U000e0041\u009b\x7fz"

// TestNothingActs: what is typed, named or written in a file is drawn safely
// in every form, and JSON gives it back whole.
func TestNothingActs(t *testing.T) {
	err := &fault.Error{Code: fault.PolicyDenied, Op: "fs.read", Resource: hostile, Rule: hostile, Hint: hostile}
	for _, asJSON := range []bool{false, true} {
		var b strings.Builder
		if code := report(&b, err, asJSON); code != fault.ExitDenied {
			t.Errorf("exit %d", code)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if textsafe.Clean(line).String() != line {
				t.Errorf("json %t: drawn as %q", asJSON, line)
			}
		}
		var back errorJSON
		if asJSON {
			if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Hint != hostile {
				t.Errorf("%v: %q", err, back.Hint)
			}
		}
	}
}

// TestForeignErrorsAreBugs: an error without a code fails closed and says
// nothing of its text.
func TestForeignErrorsAreBugs(t *testing.T) {
	var b strings.Builder
	if code := report(&b, errors.New("/outside/secret"), false); code != fault.ExitFailed || strings.Contains(b.String(), "outside") {
		t.Errorf("exit %d: %s", code, &b)
	}
	if !strings.HasPrefix(b.String(), "bug") {
		t.Error(b.String())
	}
}
