// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/prompt"
)

// BenchmarkClick is what lies between a yes on the page and the effect of the
// call that waits for it: until the page has answered, with the answer on disk,
// and from there until the write is done; beside the same write that nobody is
// asked about, in turns. What is reported are medians.
func BenchmarkClick(b *testing.B) {
	d := newDesk(b)
	d.login()
	here, err := d.store.Attend(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = here.Leave() }()
	asks, allowed := d.guarded(core.Ask, time.Minute), d.guarded(core.Allow, 0)
	asks.put("a", "old")
	allowed.put("a", "old")
	var answered, effect, plain []time.Duration
	n := 0
	for b.Loop() {
		n++
		done := make(chan error, 1)
		go func() { done <- asks.write("a", strconv.Itoa(n)) }()
		for len(d.store.Pending()) == 0 {
			time.Sleep(time.Millisecond)
		}
		v := d.form("/", "/decide", d.store.Pending()[0].ID)
		v.Set("answer", "once")
		d.pass(prompt.Deaf)
		time.Sleep(time.Second + time.Duration(n%25)*10*time.Millisecond) // a person takes a while, and no multiple of anything
		began := time.Now()
		if w := d.request(http.MethodPost, d.page.base+"/decide", v); w.Code != http.StatusSeeOther {
			b.Fatal(w.Code, w.Body)
		}
		answered = append(answered, time.Since(began))
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		effect = append(effect, time.Since(began))
		began = time.Now()
		if err := allowed.write("a", strconv.Itoa(n)); err != nil {
			b.Fatal(err)
		}
		plain = append(plain, time.Since(began))
	}
	median := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/2]) / float64(time.Millisecond)
	}
	b.ReportMetric(0, "ns/op") // it is mostly the person
	b.ReportMetric(median(answered), "ms-answered")
	b.ReportMetric(median(effect), "ms-click-to-effect")
	b.ReportMetric(median(plain), "ms-plain-write")
	b.ReportMetric(median(effect)/median(plain), "x-plain-write")
}
