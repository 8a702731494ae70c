// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"strconv"
	"time"

	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// RootsState says what is known of the client's roots.
type RootsState uint8

// The states. The zero value is that of a client whose roots can't be used, so
// that it opens nothing.
const (
	// RootsUnusable: the client has roots but didn't answer, or not with a
	// list of at most MaxRoots URIs.
	RootsUnusable RootsState = iota
	// RootsNone: the client doesn't report roots.
	RootsNone
	// RootsKnown: the list is what the client reported last.
	RootsKnown
)

// Roots are the roots that a client reports. They narrow what the operator
// opened and never widen it.
type Roots struct {
	State RootsState
	URIs  []string      // as the client spelled them
	Why   textsafe.Line // why they are unusable
}

// rootsQuery is one question to the client, repeated while its answer is
// outdated before it is known.
type rootsQuery struct {
	done  chan struct{}
	way   wayBack
	stale bool  // under Session.mu: the client reported a change meanwhile
	roots Roots // these are set before done is closed
	lost  bool  // no answer came
}

// wayBack is how our own requests reach the client while one call runs: the
// stream of that call. gone is closed when the stream has ended.
type wayBack struct {
	send Send
	gone <-chan struct{}
}

type wayBackKey struct{}

// Roots returns the client's roots. It waits while the client is being asked,
// at most RootsTimeout a question; when ctx ends first they are unusable.
// Where our requests travel with the client's calls, ctx must be that of a
// call or derived from it.
func (n *Session) Roots(ctx context.Context) Roots {
	way := wayBack{send: n.ask}
	if n.byCall {
		way, _ = ctx.Value(wayBackKey{}).(wayBack)
	}
	n.mu.Lock()
	reports := n.hasRoots
	n.mu.Unlock()
	switch {
	case !reports || !n.byCall && n.ask == nil:
		return Roots{State: RootsNone}
	case way.send == nil:
		return Roots{Why: textsafe.Clean("the client can't be reached")}
	}
	for first := true; ; first = false {
		q := n.rootsQuestion(way)
		select {
		case <-q.done:
			// The stream of another call, which carried the question, may have
			// ended before the answer; then this call asks once itself.
			if !q.lost || q.way.gone == way.gone || !first {
				return q.roots
			}
		case <-ctx.Done():
			return Roots{Why: textsafe.Clean("the client has not reported its roots yet")}
		}
	}
}

// rootsQuestion returns the question that was asked last, or asks the first:
// the client may call before it says notifications/initialized.
func (n *Session) rootsQuestion(way wayBack) *rootsQuery {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.roots != nil {
		return n.roots
	}
	return n.askRoots(way)
}

// refreshRoots asks the client for its roots, or has a question that is under
// way asked again. Where a call has to carry the question, the next one does.
func (n *Session) refreshRoots() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.hasRoots || !n.byCall && n.ask == nil {
		return
	}
	if q := n.roots; q != nil {
		select {
		case <-q.done:
			n.roots = nil
		default:
			q.stale = true
			return
		}
	}
	if !n.byCall {
		n.askRoots(wayBack{send: n.ask})
	}
}

// askRoots begins a question; n.mu is held.
func (n *Session) askRoots(way wayBack) *rootsQuery {
	q := &rootsQuery{done: make(chan struct{}), way: way}
	if n.closed {
		q.roots.Why = textsafe.Clean("the session is over")
		close(q.done)
		return q
	}
	n.roots = q
	n.work.Add(1)
	go func() {
		defer n.work.Done()
		for again := true; again; {
			roots, lost := n.queryRoots(way)
			n.mu.Lock()
			again, q.stale = q.stale && !lost && !n.closed, false
			if !again {
				q.roots, q.lost = roots, lost
				if lost && n.byCall {
					n.roots = nil // the next call asks again
				}
				close(q.done)
			}
			n.mu.Unlock()
		}
	}()
	return q
}

// queryRoots sends one roots/list and waits for the answer; lost says that
// there was none.
func (n *Session) queryRoots(way wayBack) (roots Roots, lost bool) {
	answer := make(chan mcpwire.Message, 1)
	n.mu.Lock()
	n.asked++
	id := mcpwire.ID(`"postern-` + strconv.Itoa(n.asked) + `"`)
	n.pending[id] = answer
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.pending, id)
		n.mu.Unlock()
	}()
	timeout := time.NewTimer(RootsTimeout)
	defer timeout.Stop()
	if err := way.send([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"method":"roots/list"}`)); err != nil {
		return Roots{Why: textsafe.Clean("the client can't be reached")}, true
	}
	select {
	case m := <-answer:
		return readRoots(m), false
	case <-way.gone:
		return Roots{Why: textsafe.Clean("the stream that asked the client for its roots has ended")}, true
	case <-timeout.C:
		return Roots{Why: textsafe.Clean("the client did not report its roots in time")}, true
	case <-n.over:
		return Roots{Why: textsafe.Clean("the session is over")}, true
	}
}

func readRoots(m mcpwire.Message) Roots {
	if m.Error != nil {
		return Roots{Why: textsafe.Clean("the client answered roots/list with an error")}
	}
	uris, err := parseRoots(m.Result)
	if err != nil {
		return Roots{Why: textsafe.Clean("the client's list of roots is malformed")}
	}
	if len(uris) > MaxRoots {
		return Roots{Why: textsafe.Clean("the client has more roots than the limit")}
	}
	return Roots{State: RootsKnown, URIs: uris}
}

func parseRoots(raw []byte) ([]string, error) {
	result, err := mcpwire.NewObject(raw)
	if err != nil {
		return nil, err
	}
	list, _ := result.Get("roots")
	entries, err := list.Array()
	if err != nil {
		return nil, err
	}
	uris := make([]string, len(entries))
	for i, entry := range entries {
		root, err := entry.Object()
		if err != nil {
			return nil, err
		}
		uri, _ := root.Get("uri")
		if uris[i], err = uri.String(); err != nil {
			return nil, err
		}
	}
	return uris, nil
}
