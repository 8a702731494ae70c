// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"strconv"
	"testing"
)

// BenchmarkSpend: one yes for once, from the lock to the rename.
func BenchmarkSpend(b *testing.B) {
	w := newWorld(b)
	bind := write1()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		bind.Arguments = strconv.Itoa(i)
		q := w.ask(bind)
		w.decide(q, Once)
		b.StartTimer()
		if err := w.spend(q.ID, bind); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFind: a yes for a session among others.
func BenchmarkFind(b *testing.B) {
	for _, others := range []int{0, 30} {
		b.Run(strconv.Itoa(others), func(b *testing.B) {
			w := newWorld(b)
			bind := write1()
			for i := range others {
				c := bind
				c.Arguments = strconv.Itoa(i)
				w.decide(w.ask(c), Session)
			}
			w.decide(w.ask(bind), Session)
			for b.Loop() {
				if w.store.Find(&bind).Grant == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
