// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
)

// TestCheckCutOff: what an interrupt cut off has no answer.
func TestCheckCutOff(t *testing.T) {
	p := newPlace(t, map[string]string{"d/a": "a"})
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	if code := run(ctx, []string{"check", "fs.delete", "d"}, p.env(strings.NewReader(""), &out)); code != fault.ExitAsk {
		t.Errorf("control: exit %d", code)
	}
	cancel()
	out.Reset()
	if code := run(ctx, []string{"check", "fs.delete", "d"}, p.env(strings.NewReader(""), &out)); code != fault.ExitInterrupted || out.Len() > 0 {
		t.Errorf("exit %d: %s", code, &out)
	}
}
