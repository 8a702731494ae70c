// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Limits of streamable HTTP, besides those of every session.
const (
	// MaxSessions is how many sessions of older revisions are open at once.
	// The one that was idle longest gives way to a new one.
	MaxSessions = 64
	// SessionIdle is how long a session may be unused before it ends.
	SessionIdle = 30 * time.Minute
	// MaxUnsent bounds the sum of the large answers that clients have not read
	// yet. One beyond it waits for RoomWait, as many bytes as that together, and
	// is then refused.
	MaxUnsent = 64 << 20
	// RoomWait is how long an answer waits for room among the unsent.
	RoomWait = time.Second
	// KeepAlive is how often an open stream says that it is alive.
	KeepAlive = 15 * time.Second
	// Stall is how long a client may take to send or to read the next piece of
	// a message.
	Stall = 30 * time.Second
	// MinRate is how many bytes a second of an answer a client must read, after
	// a first Stall.
	MinRate = 256 << 10
)

// headers that MCP defines.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// headerMismatch is the number of MCP 2026-07-28 for a header that doesn't say
// what the body says.
const headerMismatch = -32020

// HTTP is the streamable HTTP transport of a server, one endpoint for both
// eras. It is an http.Handler that trusts whoever reaches it: Host, Origin and
// token are internal/listen's.
//
// A request that names the stateless revision in its header or _meta stands
// for itself: its headers must say what its body says, and the end of its
// connection cancels it. Any other is of an older revision: initialize opens a
// session, named by Mcp-Session-Id, which only the token that opened it may
// use; a lost connection cancels nothing there, but its answer is dropped.
//
// An answer is application/json, or an event stream once something is sent
// before it. Events have no ids and nothing is sent twice, so a broken stream
// can't be resumed. A slow reader holds up nobody else: what it doesn't read is
// kept up to MaxUnsent, and dropped after Stall or for less than MinRate.
type HTTP struct {
	s         *Server
	stateless *Session
	sessions  sessions
	bodies    *frameRoom
	unsent    *frameRoom
	waiting   *frameRoom // answers that wait for room among the unsent
	keepAlive time.Duration
	stall     time.Duration
	rate      int // MinRate

	mu      sync.Mutex
	closing chan struct{} // closed by Close: streams that wait for events end
	closed  bool
	over    chan struct{} // closed when calls have had their time
}

// HTTP returns the server's streamable HTTP transport.
func (s *Server) HTTP() *HTTP {
	h := &HTTP{
		s: s, stateless: s.NewSession(nil), bodies: newFrameRoom(s.frames), unsent: newFrameRoom(MaxUnsent), waiting: newFrameRoom(MaxUnsent),
		keepAlive: KeepAlive, stall: Stall, rate: MinRate, closing: make(chan struct{}), over: make(chan struct{}),
		sessions: sessions{open: map[digest]*httpSession{}, most: MaxSessions, idle: SessionIdle, now: time.Now},
	}
	h.stateless.apart = true
	return h
}

// ServeHTTP serves one request. The path is not looked at.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-h.closing:
		h.refuse(w, nil, "", http.StatusServiceUnavailable, &fault.Error{Code: fault.Cancelled, Rule: "the server is ending"})
		return
	default:
	}
	switch {
	case r.Method == http.MethodPost:
		h.post(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete, r.Header.Get(headerVersion) == stateless:
		w.Header().Set("Allow", "GET, POST, DELETE")
		h.refuse(w, nil, "", http.StatusMethodNotAllowed, &fault.Error{Code: fault.RequestInvalid, Rule: "the method is not one of this endpoint"})
	case r.Method == http.MethodGet:
		h.get(w, r)
	default:
		h.delete(w, r)
	}
}

// Refused has a refusal recorded that came before this handler, as one of the
// token.
func (h *HTTP) Refused(err *fault.Error) { h.s.refused(h.stateless, err) }

// Elsewhere refuses a request for another path than the endpoint's.
func (h *HTTP) Elsewhere(w http.ResponseWriter, _ *http.Request) {
	h.refuse(w, nil, "", http.StatusNotFound, &fault.Error{Code: fault.RequestInvalid, Rule: "the path is not that of the endpoint"})
}

// refuse answers with an HTTP status and a protocol error, and has it recorded.
// A nil session stands for none.
func (h *HTTP) refuse(w http.ResponseWriter, n *Session, id mcpwire.ID, status int, err *fault.Error) {
	if n == nil {
		n = h.stateless
	}
	err.Resource = "http " + strconv.Itoa(status)
	h.s.refused(n, err)
	number := 0 // that of the fault
	if status < http.StatusInternalServerError {
		number = mcpwire.InvalidRequest
	}
	h.write(w, status, appendError(nil, id, err, number, ""))
}

func (h *HTTP) write(w http.ResponseWriter, status int, frame []byte) {
	out := h.events(w)
	defer out.calm()
	out.whole(status, frame)
}

// get opens the one stream of a session for messages that belong to no call.
func (h *HTTP) get(w http.ResponseWriter, r *http.Request) {
	if _, events := accepts(r.Header); !events {
		h.refuse(w, nil, "", http.StatusNotAcceptable, &fault.Error{Code: fault.RequestInvalid, Rule: "Accept does not hold text/event-stream"})
		return
	}
	hs := h.session(w, r, "")
	if hs == nil {
		return
	}
	defer h.sessions.release(hs)
	st := newStream(r.Context(), h)
	if !hs.listen(st) {
		h.refuse(w, hs.n, "", http.StatusConflict, &fault.Error{Code: fault.RequestInvalid, Rule: "the session has such a stream already"})
		return
	}
	h.sessions.release(hs) // it may be evicted while it only listens
	defer h.sessions.keep(hs)
	defer hs.listen(nil)
	st.listen(w, hs.n.over)
}

// delete ends a session.
func (h *HTTP) delete(w http.ResponseWriter, r *http.Request) {
	hs := h.session(w, r, "")
	if hs == nil {
		return
	}
	defer h.sessions.release(hs)
	h.sessions.remove(hs)
	drain, stop := context.WithTimeout(r.Context(), Drain)
	defer stop()
	hs.n.Close(drain)
	w.WriteHeader(http.StatusNoContent)
}

// session finds the session that a request names and holds it, or answers.
func (h *HTTP) session(w http.ResponseWriter, r *http.Request, id mcpwire.ID) *httpSession {
	ids := r.Header.Values(headerSession)
	if version := r.Header.Values(headerVersion); len(version) > 1 || len(version) == 1 && !known(version[0]) {
		h.s.refused(h.stateless, &fault.Error{Code: fault.RequestInvalid, Resource: "http 400", Rule: wrongVersion})
		h.write(w, http.StatusBadRequest, appendUnsupported(nil, id, version[0]))
		return nil
	}
	if len(ids) != 1 {
		h.refuse(w, nil, id, http.StatusBadRequest, &fault.Error{Code: fault.RequestInvalid, Rule: "the request has no " + headerSession + ", which initialize gives out"})
		return nil
	}
	hs := h.sessions.find(ids[0], bearer(r))
	if hs == nil {
		h.refuse(w, nil, id, http.StatusNotFound, &fault.Error{Code: fault.RequestInvalid, Rule: "there is no such session", Hint: "initialize again"})
	}
	return hs
}

// Close ends the transport: new requests are refused, streams that only wait
// for events end, calls may go on for Grace and are then cancelled. It waits for
// them until ctx is done and reports whether all have ended.
func (h *HTTP) Close(ctx context.Context) bool {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.closing)
		defer close(h.over)
	}
	h.mu.Unlock()
	all := append(h.sessions.all(), h.stateless)
	grace, stop := context.WithTimeout(ctx, Grace)
	defer stop()
	for _, n := range all {
		n.end()
	}
	for _, n := range all {
		n.wait(grace)
	}
	ended := true
	for _, n := range all {
		ended = n.Close(ctx) && ended
	}
	return ended
}

func known(version string) bool {
	for _, v := range versions {
		if v == version {
			return true
		}
	}
	return false
}

// appendUnsupported appends the answer to a version that isn't spoken here.
func appendUnsupported(b []byte, id mcpwire.ID, asked string) []byte {
	return appendError(b, id, &fault.Error{Code: fault.RequestInvalid, Rule: wrongVersion}, unsupportedVersion, unsupported(asked))
}
