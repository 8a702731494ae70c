// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/enforce"
)

// held is a decider that holds reads up, as a file system does.
type held struct {
	enforce.Decider
	let   chan struct{}
	ended *atomic.Bool
}

func (h held) Evaluate(r core.Request) core.Verdict {
	if r.Action == core.FSRead {
		<-h.let
		h.ended.Store(true)
	}
	return h.Decider.Evaluate(r)
}

// TestEndWaitsForGivenUpCalls: a call that was given up still runs, and the end
// of the session waits for it.
func TestEndWaitsForGivenUpCalls(t *testing.T) {
	w := newWorld(t, map[string]string{"f": "F"}, later)
	let, ended := make(chan struct{}), new(atomic.Bool)
	c := w.serveWith(func(o *Options) {
		o.Gate.Decider, o.CallTime = held{o.Gate.Decider, let, ended}, time.Millisecond
	})
	c.call("read_text_file", args{"path": w.at("f")}).refused("call.cancelled")
	time.AfterFunc(2*callGrace, func() { close(let) })
	c.hangUp()
	if !ended.Load() {
		t.Error("the session ended before what it had begun")
	}
}

// TestHiddenDescendants: what a listing hides beneath a directory is not named
// by what moves, copies or removes that.
func TestHiddenDescendants(t *testing.T) {
	w := newWorld(t, map[string]string{"d/.env": "SECRET", "d/a": "A"})
	for _, dry := range []bool{true, false} {
		for tool, a := range map[string]args{
			"move_file":   {"source": w.at("d"), "destination": w.at("d2")},
			"copy_file":   {"source": w.at("d"), "destination": w.at("d2")},
			"delete_file": {"path": w.at("d"), "recursive": true, "confirm": true},
		} {
			a["dry_run"] = dry
			w.call(tool, a).refused("policy.denied").lacks("env")
			w.is(w.at("d/.env"), "SECRET")
			w.absent(w.at("d2"))
		}
	}
}
