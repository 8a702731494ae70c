// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/grant"
)

// TestPausingNo: the record of the call whose no pauses the agent has the no, as
// the agent is told of it.
func TestPausingNo(t *testing.T) {
	d := newDesk(t, writes, nil)
	d.wait = time.Hour
	here, err := d.person.Attend(t.Context())
	d.must(err)
	for i := range grant.NoesInRow {
		var progress atomic.Int32
		answered := make(chan error, 1)
		g := d.call(says(func(a *Asking) {
			a.Progress = func(time.Duration, time.Duration, textsafe.Line) { progress.Add(1) }
		}))
		go func() {
			_, err := g.Write(t.Context(), fmt.Sprint(i), []byte("x"), Call{})
			answered <- err
		}()
		for progress.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		d.yes(d.person.Pending()[0].ID, grant.Answer{Kind: grant.No})
		err = <-answered
	}
	if fault.CodeOf(err) != fault.PolicyAsk || fault.As(err).Because() != grant.NoPausedRule {
		t.Error(err)
	}
	d.must(here.Leave())
	for _, r := range records(t, d.state.Path()) {
		if r["event"] == "refusal" && r["reason"] == grant.NoPausedRule {
			return
		}
	}
	t.Error("no record has the no that paused the agent")
}
