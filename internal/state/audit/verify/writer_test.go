// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/seal"
)

// TestWhatIsWritten: the logs that Postern writes, over several segments and
// processes, pruned and with an anchor, are sound to Check and to the script,
// and no longer when one of their records is changed.
func TestWhatIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if _, err := state.Open(dir); err != nil {
		t.Fatal(err)
	}
	var anchor string
	for process := range 3 {
		l, err := audit.Open(dir, audit.Options{SegmentSize: 8 << 10})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			e := core.Event{Time: time.Now(), Phase: core.PhaseIntent, Action: core.FSWrite, Corr: fmt.Sprintf("%d-%d", process, i), Was: "absent"}
			if err := l.Record(e, i%8 == 0); err != nil {
				t.Fatal(err)
			}
			e.Phase, e.Was = core.PhaseOutcome, ""
			if err := l.Record(e, false); err != nil {
				t.Fatal(err)
			}
		}
		if process == 1 {
			if anchor, err = l.Anchor(); err != nil {
				t.Fatal(err)
			}
		}
		if process == 2 {
			if pruned, err := l.Prune(0, false); err != nil || len(pruned) == 0 {
				t.Fatalf("%v, %v", pruned, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	line, err := audit.VerifierLine(dir)
	if err != nil {
		t.Fatal(err)
	}
	v, err := seal.ParseVerifier(line)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := audit.LastSigned(dir)
	if err != nil || signed == nil {
		t.Fatalf("%v, %v", signed, err)
	}
	o := Options{Dir: filepath.Join(dir, "audit"), Verifier: v, Signed: signed, Anchor: &seal.Checkpoint{Note: anchor}}
	r, err := Check(context.Background(), o)
	if err != nil || len(r.Problems) > 0 || r.Records < 240 || r.Pruned == 0 || r.Segments < 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if exit, out := node(t, o.Dir, line, anchor); exit != 0 {
		t.Errorf("the script: exit %d: %s", exit, out)
	}
	name := fmt.Sprintf("%06d.jsonl", r.Segments)
	flip(t, filepath.Join(o.Dir, name))
	if r, err := Check(context.Background(), o); err != nil || len(r.Problems) == 0 {
		t.Errorf("a changed record is not found: %v", err)
	}
	if exit, out := node(t, o.Dir, line, anchor); exit != 8 {
		t.Errorf("the script does not find it: exit %d: %s", exit, out)
	}
}

// flip changes a byte of the second line of a file, within its value of t.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.IndexByte(b, '\n')+1+len(`{"t":"2`)] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
