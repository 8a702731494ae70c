// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts plays each testdata/*.txtar: a line that begins with > goes to
// the server, those with < are what it answers before it reads on. Work runs at
// once here, so the order is fixed.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const mark = "-- transcript --\n"
			story, want, ok := strings.Cut(string(data), mark)
			if !ok {
				t.Fatal("no transcript")
			}
			got := play(t, want)
			if *update {
				if err := os.WriteFile(file, []byte(story+mark+got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	t.Helper()
	s := newServer(t, newGate())
	var log strings.Builder
	send := func(frame []byte) error {
		log.WriteString("< " + string(frame) + "\n")
		return nil
	}
	n := s.NewSession(nil)
	for _, line := range strings.Split(script, "\n") {
		frame, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		log.WriteString(line + "\n")
		if work := s.Dispatch(t.Context(), n, []byte(frame), send); work != nil {
			work()
		}
	}
	if !n.Close(t.Context()) {
		t.Error("calls are left")
	}
	return log.String()
}
