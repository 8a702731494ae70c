// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/enforce"
)

// gate is a gate of the library over a new folder: the shipped policy, the
// audit log and the locks of a real state directory.
func gate(tb testing.TB) (*enforce.Gate, string) {
	tb.Helper()
	dir, box := tb.TempDir(), tb.TempDir()
	root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: "project"})
	must(tb, err)
	ws, err := pathguard.NewWorkspace(root)
	must(tb, err)
	fallback := policy.Default()
	rules, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Fallback: &fallback})
	must(tb, err)
	state, err := enforce.OpenState(filepath.Join(box, "state"), enforce.StateOptions{})
	must(tb, err)
	tb.Cleanup(func() { must(tb, errors.Join(state.Close(), root.Close())) })
	g, err := enforce.New(enforce.Options{Workspace: ws, Decider: rules, Recorder: state, Locker: state, Keeper: state})
	must(tb, err)
	return g, dir
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// inTurn runs the ways one after another, again and again, so that whatever
// else the machine does meets all of them alike. It reports the middle time of
// each, and of the first as a multiple of the others.
func inTurn(b *testing.B, ways ...way) {
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, w := range ways {
			from := time.Now()
			must(b, w.do())
			took[i] = append(took[i], time.Since(from))
		}
	}
	first := 0.0
	for i, w := range ways {
		median := middle(took[i])
		b.ReportMetric(median, w.name+"-µs")
		if i == 0 {
			first = median
		} else {
			b.ReportMetric(first/median, "x-"+w.name)
		}
	}
	b.ReportMetric(0, "ns/op") // of all of them together: says nothing
}

type way struct {
	name string
	do   func() error
}

// middle is the median in microseconds.
func middle(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Nanoseconds()) / 1000
}

// BenchmarkGuardedRead is one read of 4 KiB, five levels deep: resolved,
// decided, opened, read, recorded.
func BenchmarkGuardedRead(b *testing.B) {
	const name = "a/b/c/d/e.txt"
	g, dir := gate(b)
	path := filepath.Join(dir, name)
	must(b, os.MkdirAll(filepath.Dir(path), 0o755))
	must(b, os.WriteFile(path, make([]byte, 4096), 0o600))
	root, err := os.OpenRoot(dir)
	must(b, err)
	defer root.Close()
	inTurn(b,
		way{"guarded", func() error {
			f, err := g.Open(b.Context(), name)
			if err != nil {
				return err
			}
			_, err = f.ReadAt(make([]byte, 4096), 0)
			return errors.Join(err, f.Close())
		}},
		way{"os.ReadFile", func() error { _, err := os.ReadFile(path); return err }},
		way{"os.Root", func() error { _, err := root.ReadFile(name); return err }},
	)
}

// BenchmarkGuardedOverwrite replaces 8 KiB: content, intent and journal on disk,
// and the old content kept.
func BenchmarkGuardedOverwrite(b *testing.B) {
	g, dir := gate(b)
	content := bytes.Repeat([]byte("overwrite\n"), 820)
	must(b, os.WriteFile(filepath.Join(dir, "f"), content, 0o600))
	by := filepath.Join(dir, "by-hand")
	inTurn(b,
		way{"guarded", func() error { _, err := g.Write(b.Context(), "f", content, enforce.Call{}); return err }},
		way{"by-hand", func() error { return byHand(by, content) }},
	)
}
