// SPDX-License-Identifier: Apache-2.0

package audit

import "time"

// earlyEvery is the least time between two writes that nobody asked for: a
// flood of refusals is no flood of writes.
const earlyEvery = 50 * time.Millisecond

// hurry has what is pending written, and not synced, ahead of its second: who
// was refused asks at once why. The caller holds mu. A log that can't be
// written is tried again no sooner for it.
func (l *Log) hurry() {
	if l.early != nil || l.problem != nil {
		return
	}
	l.early = time.AfterFunc(max(0, time.Until(l.earlyAt)), l.writeEarly)
}

func (l *Log) writeEarly() {
	l.lead <- struct{}{}
	defer func() { <-l.lead }()
	l.mu.Lock()
	l.early, l.earlyAt = nil, time.Now().Add(earlyEvery)
	idle := l.closed || len(l.pending.buf) == 0
	l.mu.Unlock()
	if !idle {
		_ = l.commitPending(false) // kept as the problem, which the next Record sees
	}
}
