// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"testing"
)

// BenchmarkCheck is a log of one segment with a checkpoint for each hundred
// records.
func BenchmarkCheck(b *testing.B) {
	l := newBuilder(b, fixedKey(b, 1))
	for range 2000 {
		for range 50 {
			l.call()
		}
		l.seal()
	}
	o := l.options(write(b, l.files))
	b.ReportAllocs()
	b.SetBytes(int64(len(l.files[l.name()])))
	for b.Loop() {
		r, err := Check(context.Background(), o)
		if err != nil || len(r.Problems) > 0 {
			b.Fatal(err, r.Problems)
		}
	}
	b.ReportMetric(float64(l.edge.Size())*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkScan(b *testing.B) {
	line := []byte(plain)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, wrong := scan(line); wrong != "" {
			b.Fatal(wrong)
		}
	}
}
