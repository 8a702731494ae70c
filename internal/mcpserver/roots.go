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
	stale bool  // under Session.mu: the client reported a change meanwhile
	roots Roots // set before done is closed
}

// Roots returns the client's roots. It waits while the client is being asked,
// at most RootsTimeout a question; when ctx ends first they are unusable.
func (n *Session) Roots(ctx context.Context) Roots {
	n.mu.Lock()
	q, asks := n.roots, n.hasRoots && n.ask != nil
	n.mu.Unlock()
	if !asks {
		return Roots{State: RootsNone}
	}
	if q == nil { // the client calls before it says notifications/initialized
		q = n.refreshRoots()
	}
	select {
	case <-q.done:
		return q.roots
	case <-ctx.Done():
		return Roots{Why: textsafe.Clean("the client has not reported its roots yet")}
	}
}

// refreshRoots asks the client for its roots, or has a question that is under
// way asked again.
func (n *Session) refreshRoots() *rootsQuery {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.hasRoots || n.ask == nil || n.closed {
		q := &rootsQuery{done: make(chan struct{})}
		close(q.done)
		return q
	}
	if q := n.roots; q != nil {
		select {
		case <-q.done:
		default:
			q.stale = true
			return q
		}
	}
	q := &rootsQuery{done: make(chan struct{})}
	n.roots = q
	n.work.Add(1)
	go func() {
		defer n.work.Done()
		for again := true; again; {
			roots := n.queryRoots()
			n.mu.Lock()
			again, q.stale = q.stale && !n.closed, false
			if !again {
				q.roots = roots
				close(q.done)
			}
			n.mu.Unlock()
		}
	}()
	return q
}

// queryRoots sends one roots/list and waits for the answer.
func (n *Session) queryRoots() Roots {
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
	if err := n.ask([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"method":"roots/list"}`)); err != nil {
		return Roots{Why: textsafe.Clean("the client can't be reached")}
	}
	select {
	case m := <-answer:
		return readRoots(m)
	case <-timeout.C:
		return Roots{Why: textsafe.Clean("the client did not report its roots in time")}
	case <-n.over:
		return Roots{Why: textsafe.Clean("the session is over")}
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
