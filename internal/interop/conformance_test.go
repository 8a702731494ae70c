// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// suites are the runs of the MCP conformance suite, each with the list of what
// is expected to fail in testdata/conformance.
var suites = map[string]struct{ pkg, version string }{
	"2025-11-25":        {"conformance-0.1", "2025-11-25"},
	"2025-11-25-by-0.2": {"conformance-0.2", "2025-11-25"},
	"2025-06-18-by-0.2": {"conformance-0.2", "2025-06-18"},
	"2026-07-28":        {"conformance-0.2", "2026-07-28"},
}

// finding is one check of the suite. One of the same name counts once a
// scenario, with its worst status.
type finding struct{ ID, Status, ErrorMessage string }

var scenarioDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d\d-\d\dT`)

// findings are the checks of a run, by scenario and id.
func findings(t *testing.T, dir string) map[string]finding {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]finding{}
	for _, e := range entries {
		m := scenarioDir.FindStringSubmatch(e.Name())
		if m == nil {
			t.Fatalf("not a result: %s", e.Name())
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name(), "checks.json"))
		if err != nil {
			t.Fatal(err)
		}
		var checks []finding
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			key := m[1] + " " + c.ID
			if was, seen := all[key]; !seen || failed(c) && !failed(was) {
				all[key] = c
			}
		}
	}
	return all
}

func failed(c finding) bool { return c.Status == "FAILURE" || c.Status == "WARNING" }

// expected reads a list of scenario and check, a reason after #.
func expected(t *testing.T, version string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "conformance", version+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		entry, why, reasoned := strings.Cut(strings.TrimSpace(line), "#")
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
		case !reasoned || strings.TrimSpace(why) == "":
			t.Errorf("no reason: %s", line)
		default:
			list = append(list, strings.Join(strings.Fields(entry), " "))
		}
	}
	return list
}

// TestConformance: every check of the MCP conformance suite passes, but for the
// listed ones; of those each fails.
func TestConformance(t *testing.T) {
	dir := npm(t)
	node := node22(t, dir)
	for name, suite := range suites {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := new(everything).serve(t, true) + endpoint
			results := filepath.Join(t.TempDir(), "results")
			args := []string{
				filepath.Join(dir, "node_modules", suite.pkg, "dist/index.js"), "server", "--url", url,
				"--suite", "all", "--spec-version", suite.version, "-o", results,
			}
			out, err := exec.CommandContext(t.Context(), node, args...).CombinedOutput()
			if err == nil {
				t.Error("the suite passes whole: nothing is expected to fail any more?")
			}
			all := findings(t, results)
			var failures []string
			passed := 0
			for key, c := range all {
				switch {
				case failed(c):
					failures = append(failures, key)
					t.Logf("%s %s: %.300s", c.Status, key, c.ErrorMessage)
				case c.Status == "SUCCESS":
					passed++
				}
			}
			slices.Sort(failures)
			want := expected(t, name)
			slices.Sort(want)
			t.Logf("%d checks pass, %d fail", passed, len(failures))
			if d := cmp.Diff(want, failures); d != "" {
				t.Errorf("-expected to fail, +fails\n%s\n%s", d, tail(out))
			}
			if passed < 10 {
				t.Errorf("the suite did not run\n%s", tail(out))
			}
		})
	}
}

func tail(out []byte) string { return string(out[max(0, len(out)-3000):]) }
