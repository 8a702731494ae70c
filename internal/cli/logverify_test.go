// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// TestLogAnchorNames: an anchor is given of a log with any number of lines at
// its end that are no records, each of them named, and it verifies.
func TestLogAnchorNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	writeRecords(t, dir, 3)
	files, err := segment.List(filepath.Join(dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	const lines = 2*namedAtOnce + 50
	f, err := os.OpenFile(files[len(files)-1].Path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(strings.Repeat("no record\n", lines))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"log", "anchor"}, {"log", "verify"}} {
		out, stderr, env := logEnv(dir)
		if code := run(t.Context(), args, env); code != 0 {
			t.Fatalf("%v: exit %d: %s%s", args, code, out, stderr)
		}
	}
	out, _, env := logEnv(dir)
	run(t.Context(), []string{"log", "--event", "garbage"}, env)
	if n := strings.Count(out.String(), "\n"); n != lines {
		t.Errorf("%d lines are named", n)
	}
}

// TestSettle: renewals that name no folder of theirs, or one another, lead
// nowhere and end.
func TestSettle(t *testing.T) {
	of := map[string][]seal.Checkpoint{"postern/x": {{Origin: "postern/x"}}}
	id := "ended-" + strings.Repeat("0", 32)
	for _, renewed := range [][]string{nil, {""}, {"."}, {".."}, {"../" + id}, {id, id}, {id + "/.."}} {
		r := verify.Report{Renewed: renewed}
		if err := settle(t.Context(), t.TempDir(), of, &r); err != nil || len(r.Problems) != 1 || r.Problems[0].Kind != verify.UnknownKey {
			t.Errorf("%q: %v, %+v", renewed, err, r.Problems)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 KiB", 1: "1 KiB", 1024: "1 KiB", 1025: "2 KiB", 1<<20 - 1: "1024 KiB", 1 << 20: "1 MiB", 5<<20 + 9: "5 MiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
