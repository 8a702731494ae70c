// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// post takes one message.
func (h *HTTP) post(w http.ResponseWriter, r *http.Request) {
	if status, rule := mediaTypes(r.Header); status != 0 {
		h.refuse(w, nil, "", status, &fault.Error{Code: fault.RequestInvalid, Rule: rule})
		return
	}
	body, status, err := h.read(w, r)
	if err != nil {
		h.refuse(w, nil, "", status, fault.As(err))
		return
	}
	done := func() { h.bodies.free(cap(body)) }
	st := newStream(r.Context(), h)
	work, ok := h.take(w, r, st, body)
	if !ok {
		done()
		return
	}
	go func() {
		defer done()
		defer st.end()
		work()
	}()
	st.serve(w, h.over)
}

// take finds the era of a message and dispatches it. It reports false when the
// request is answered already; otherwise st gets the answer while work runs.
func (h *HTTP) take(w http.ResponseWriter, r *http.Request, st *stream, body []byte) (work func(), ok bool) {
	m, bad := mcpwire.Parse(body)
	if bad != nil {
		st.status.set(http.StatusBadRequest)
		bad.Unanswerable = false // an answer to a POST is no message of its own
		h.s.malformed(h.stateless, bad, st.send)
		return func() {}, true
	}
	var q request
	modern := r.Header.Get(headerVersion) == stateless
	if m.Kind == mcpwire.Request {
		q = newRequest(h.stateless, m, st.send)
		q.status, q.admit = &st.status, st.admit
		_, named := q.meta.Get(metaVersion)
		modern = named || modern && m.Method != "initialize"
	}
	switch {
	case modern && m.Kind == mcpwire.Request:
		return h.once(r, q), true
	case modern && m.Kind == mcpwire.Notification:
		w.WriteHeader(http.StatusAccepted) // that revision has none which means anything here
	case modern:
		h.refuse(w, nil, "", http.StatusBadRequest, &fault.Error{Code: fault.RequestInvalid, Rule: "this revision has no responses of the client"})
	case m.Kind == mcpwire.Request && m.Method == "initialize" && len(r.Header.Values(headerSession)) == 0:
		return h.initialize(w, r, st, q)
	default:
		return h.inSession(w, r, st, m, q)
	}
	return nil, false
}

// once dispatches a request of the stateless era.
func (h *HTTP) once(r *http.Request, q request) (work func()) {
	q.modern = true
	q.status.set(http.StatusBadRequest)
	if q.flaw == nil {
		if rule := mirrored(r.Header, &q); rule != "" {
			h.s.refuse(q, &fault.Error{Code: fault.RequestInvalid, Rule: rule}, headerMismatch, "")
			return func() {}
		}
	}
	return orNothing(h.s.requested(r.Context(), q))
}

func orNothing(work func()) func() {
	if work == nil {
		return func() {}
	}
	return work
}

// initialize opens a session, unless the request is refused.
func (h *HTTP) initialize(w http.ResponseWriter, r *http.Request, st *stream, q request) (work func(), ok bool) {
	if version := r.Header.Values(headerVersion); len(version) > 1 || len(version) == 1 && !known(version[0]) {
		st.status.set(http.StatusBadRequest)
		h.s.refuse(q, &fault.Error{Code: fault.RequestInvalid, Rule: wrongVersion}, unsupportedVersion, unsupported(version[0]))
		return func() {}, true
	}
	hs, id := h.newHTTPSession(r)
	q.session = hs.n
	h.s.requested(context.WithoutCancel(r.Context()), q) // it answers at once
	if hs.n.Version() == "" {
		return func() {}, true
	}
	if !h.sessions.add(hs) {
		st.close()
		w.Header().Set("Retry-After", "10")
		h.refuse(w, nil, q.id, http.StatusServiceUnavailable, &fault.Error{
			Code: fault.LimitExceeded, Rule: "all sessions have calls in progress", Hint: "try again when one has ended", Retry: true,
		})
		return nil, false
	}
	w.Header().Set(headerSession, id)
	return func() { h.sessions.release(hs) }, true
}

// inSession dispatches a message of an older revision. Its work goes on when
// the client has gone: only notifications/cancelled cancels.
func (h *HTTP) inSession(w http.ResponseWriter, r *http.Request, st *stream, m mcpwire.Message, q request) (work func(), ok bool) {
	hs := h.session(w, r, m.ID)
	if hs == nil {
		return nil, false
	}
	switch m.Kind {
	case mcpwire.Request:
		way := wayBack{send: st.sendBefore, gone: st.gone}
		ctx := context.WithValue(context.WithoutCancel(r.Context()), wayBackKey{}, way)
		q.session = hs.n
		q.status = nil // an error of JSON-RPC is no error of HTTP in these revisions
		work := orNothing(h.s.requested(ctx, q))
		return func() {
			defer h.sessions.release(hs)
			work()
		}, true
	case mcpwire.Notification:
		h.s.notified(hs.n, m)
	case mcpwire.Response:
		m.Result, m.Error = bytes.Clone(m.Result), bytes.Clone(m.Error) // the body's room is freed before it is read
		hs.n.deliver(m)
	case mcpwire.Invalid:
	}
	h.sessions.release(hs)
	w.WriteHeader(http.StatusAccepted)
	return nil, false
}

// firstRead is how much room a body without a length takes at first.
const firstRead = 16 << 10

// read reads the body into memory that is accounted for: cap(body) bytes of
// h.bodies are the caller's to free. Room is taken as the body arrives, so that
// one which is only announced takes none.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request) (body []byte, status int, err error) {
	if r.ContentLength > int64(h.s.limit) {
		return nil, http.StatusRequestEntityTooLarge, h.tooLong()
	}
	rc := http.NewResponseController(w)
	end := time.Now().Add(4 * h.stall)
	for {
		if !h.grow(&body, r.ContentLength) {
			w.Header().Set("Retry-After", "1")
			status = http.StatusServiceUnavailable
			err = &fault.Error{Code: fault.LimitExceeded, Rule: "the bodies in work are too large together", Hint: "try again when a call has ended", Retry: true}
			break
		}
		next := time.Now().Add(h.stall)
		if next.After(end) {
			next = end
		}
		timed := rc.SetReadDeadline(next) == nil // a writer without deadlines is a test's
		n, failed := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if len(body) > h.s.limit {
			status, err = http.StatusRequestEntityTooLarge, h.tooLong()
			break
		}
		if errors.Is(failed, io.EOF) {
			if timed {
				_ = rc.SetReadDeadline(time.Time{}) // it was possible before
			}
			return body, 0, nil
		}
		if failed != nil {
			status = unread(failed)
			err = &fault.Error{Code: fault.FrameInvalid, Rule: "the body did not arrive whole", Err: failed}
			break
		}
	}
	h.bodies.free(cap(body))
	return nil, status, err
}

func (h *HTTP) tooLong() error {
	return &fault.Error{Code: fault.LimitExceeded, Rule: (&mcpwire.TooLong{Limit: h.s.limit}).Error()}
}

func unread(err error) (status int) {
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// grow gives the body room for more, unless it has some: up to its announced
// length, if that is not -1, and a byte more, for the read that finds its end.
func (h *HTTP) grow(body *[]byte, announced int64) bool {
	had := cap(*body)
	if len(*body) < had {
		return true
	}
	size := min(max(2*had, firstRead), h.s.limit+1)
	if announced >= 0 {
		size = min(size, int(announced)+1)
	}
	size = max(size, had+1) // what is longer than announced is net/http's to cut
	if fits, _ := h.bodies.try(size-had, false); !fits {
		return false
	}
	larger := make([]byte, len(*body), size)
	copy(larger, *body)
	*body = larger
	return true
}
