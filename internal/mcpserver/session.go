// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Send writes one frame to the other side. It is safe for concurrent use and
// keeps nothing of the frame.
type Send func(frame []byte) error

// Session is one connection. Each direction has its own table of ids: those of
// the client's requests in inFlight, those of ours in pending.
type Session struct {
	id  string
	ask Send // for our own requests; nil where the transport has no way back
	// apart: each request is one of its own, as in the stateless era over HTTP,
	// where clients that know nothing of each other use the same ids.
	apart bool
	// byCall: our own requests travel with a call of the client, see WayBack.
	byCall bool
	over   chan struct{} // closed by Close
	work   sync.WaitGroup

	mu       sync.Mutex
	inFlight map[mcpwire.ID]*Call // not yet answered
	running  int                  // with those whose answer is being sent
	pending  map[mcpwire.ID]chan mcpwire.Message
	asked    int
	keys     int    // given to the calls of a session whose requests are apart
	version  string // negotiated by initialize, "" before
	client   Client
	roots    *rootsQuery
	hasRoots bool
	ending   bool // no new call starts
	closed   bool

	subs subscriptions
}

// Client is what a client says of itself. It is shown, never matched.
type Client struct{ Name, Version textsafe.Line }

// NewSession opens a session; ask sends the server's own requests and may be
// nil.
func (s *Server) NewSession(ask Send) *Session {
	var id [8]byte
	rand.Read(id[:]) // never fails: the program ends instead
	return &Session{
		id: hex.EncodeToString(id[:]), ask: ask, over: make(chan struct{}),
		inFlight: make(map[mcpwire.ID]*Call), pending: make(map[mcpwire.ID]chan mcpwire.Message),
	}
}

// ID returns a random name for the session, for records.
func (n *Session) ID() string { return n.id }

// Version returns the revision that initialize agreed on, "" before that and
// in the stateless era.
func (n *Session) Version() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.version
}

// Client returns what the client said of itself in initialize.
func (n *Session) Client() Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.client
}

// Close cancels every call of the session and waits for them until ctx is
// done; it reports whether all have ended. No new call starts after it.
func (n *Session) Close(ctx context.Context) bool {
	n.shut()
	return n.wait(ctx)
}

// shut is Close without the waiting.
func (n *Session) shut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.over)
	}
	for _, c := range n.inFlight {
		c.cancel()
	}
}

// Go runs f beside a call of the session. It may outlive the call, and the end
// of the session waits for it as for a call. Only a call in flight may use it.
func (n *Session) Go(f func()) { n.work.Go(f) }

// wait waits for the calls in flight and what they left running.
func (n *Session) wait(ctx context.Context) bool {
	idle := make(chan struct{})
	go func() {
		n.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// end keeps new calls from starting; those in flight go on.
func (n *Session) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ending = true
}

// register enters a call, unless its id is in use or there are too many.
func (n *Session) register(c *Call) *fault.Error {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.key = c.id
	if n.apart {
		n.keys++
		c.key += mcpwire.ID("#" + strconv.Itoa(n.keys)) // no JSON, so nobody's id
	}
	switch _, used := n.inFlight[c.key]; {
	case used:
		return &fault.Error{Code: fault.FrameInvalid, Rule: "the id is that of a request still in progress"}
	case n.running >= MaxInFlight:
		return &fault.Error{Code: fault.LimitExceeded, Rule: "too many calls are in progress", Hint: "call again when one has ended", Retry: true}
	case n.ending || n.closed:
		return &fault.Error{Code: fault.Cancelled}
	}
	n.inFlight[c.key] = c
	n.running++
	n.work.Add(1)
	return nil
}

// release frees the id of a call, before its answer is sent: some clients use
// one id for every request.
func (n *Session) release(c *Call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inFlight[c.key] == c {
		delete(n.inFlight, c.key)
	}
}

// finish ends a call that is answered or never will be.
func (n *Session) finish(c *Call) {
	n.release(c)
	n.mu.Lock()
	n.running--
	n.mu.Unlock()
	n.work.Done()
}

// abandon cancels the call of that id, if there is one, and sees to it that
// nothing more is sent for it. It doesn't wait for a message on its way. The
// id stays in use until the tool has returned, so the bound holds.
func (n *Session) abandon(id mcpwire.ID) {
	n.mu.Lock()
	c := n.inFlight[id]
	n.mu.Unlock()
	if c != nil {
		c.silent.Store(true)
		c.cancel()
	}
}

// deliver hands a response to whoever waits for it; others are dropped.
func (n *Session) deliver(m mcpwire.Message) {
	n.mu.Lock()
	waiting := n.pending[m.ID]
	delete(n.pending, m.ID)
	n.mu.Unlock()
	if waiting != nil {
		waiting <- m // has room for the one answer
	}
}
