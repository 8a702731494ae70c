// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"sync"
	"time"
)

// Refusals are told of at once up to a number, then one a second: who has no
// token must not fill a log.
const (
	toldAtOnce = 20
	toldEvery  = time.Second
)

// pacer says which refusals are told of.
type pacer struct {
	now func() time.Time

	mu   sync.Mutex
	left int
	last time.Time
}

func newPacer() *pacer { return &pacer{now: time.Now, left: toldAtOnce} }

func (p *pacer) next() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.last.IsZero() {
		p.last = now
	}
	if gained := int(now.Sub(p.last) / toldEvery); gained > 0 {
		p.left = min(p.left+gained, toldAtOnce)
		p.last = now
	}
	if p.left == 0 {
		return false
	}
	p.left--
	return true
}
