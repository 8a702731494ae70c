// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/state"
)

func benchLog(b *testing.B, dir string) *Log {
	b.Helper()
	if err := os.WriteFile(filepath.Join(dir, "version"), []byte(state.Version), 0o600); err != nil {
		b.Fatal(err)
	}
	l, err := Open(dir, Options{})
	if err == nil {
		err = l.Problem() // makes the log
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	return l
}

// BenchmarkSynced is records that are on disk, by 1, 8 and 64 writers of one
// process, beside what the disk takes for a bare append and fdatasync of the
// same line. The two take turns, so that their ratio is of one time.
func BenchmarkSynced(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := benchLog(b, b.TempDir())
			bare, err := os.OpenFile(filepath.Join(b.TempDir(), "bare"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer bare.Close()
			e := outcome("c-1", core.PhaseDecision)
			line := l.enc.append(nil, e)
			var bareTime, ours stopwatch
			for b.Loop() {
				bareTime.run(func() {
					if _, err := bare.Write(line); err != nil {
						b.Fatal(err)
					}
					if err := dataSync(bare); err != nil {
						b.Fatal(err)
					}
				})
				ours.run(func() { together(b, writers, func() error { return l.Record(e, true) }) })
			}
			b.ReportMetric(float64(writers)/ours.seconds(), "records/s")
			b.ReportMetric(1/bareTime.seconds(), "bare/s")
			b.ReportMetric(float64(writers)*bareTime.seconds()/ours.seconds(), "×bare")
		})
	}
}

// together is each of the writers' one record.
func together(b *testing.B, writers int, f func() error) {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for range writers {
		wg.Go(func() {
			if err := f(); err != nil {
				failed.Store(&err)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		b.Fatal(*err)
	}
}

// BenchmarkBuffered is what a read pays for its record.
func BenchmarkBuffered(b *testing.B) {
	l := benchLog(b, b.TempDir())
	e := outcome("c-1", core.PhaseDecision)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Record(e, false); err != nil {
			b.Fatal(err)
		}
	}
}

// stopwatch adds up one side of a comparison.
type stopwatch struct {
	total time.Duration
	laps  int
}

func (s *stopwatch) run(f func()) {
	start := time.Now()
	f()
	s.total += time.Since(start)
	s.laps++
}

// seconds is the mean of a lap.
func (s *stopwatch) seconds() float64 { return s.total.Seconds() / float64(s.laps) }
