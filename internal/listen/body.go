// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// BodyTimeout is how long a body may take to arrive, unless the handler
	// that reads it sets another deadline.
	BodyTimeout = 5 * time.Second
	// Linger is how long the rest of a body that nobody wants is read after the
	// answer, so that a client which sends all before it reads gets the answer.
	Linger = time.Second
	// discarded is how many bytes are read so of whoever isn't let in. Of others
	// it is twice what a body may have, each piece of this size with a Linger of
	// its own, until BodyTimeout.
	discarded = 1 << 20
)

// body is one that a request announced. net/http reads what a handler left of
// it, before the answer and again after it, for as long as the client likes:
// so each has a deadline, and an answer that comes before its end closes.
type body struct {
	io.ReadCloser
	rc    *http.ResponseController
	ended atomic.Bool
}

// announced is the body of a request, with its deadline. One without a body has
// none: net/http reads on to see when the client leaves.
func announced(w http.ResponseWriter, r *http.Request) *body {
	b := &body{ReadCloser: r.Body, rc: http.NewResponseController(w)}
	b.ended.Store(r.Body == nil || r.Body == http.NoBody)
	if !b.ended.Load() {
		_ = b.rc.SetReadDeadline(time.Now().Add(BodyTimeout)) // a writer without deadlines is a test's
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
	}
	return n, err
}

// discard sends the answer and reads on, up to so many bytes.
func (b *body) discard(most int64) {
	if b.ended.Load() || b.rc.Flush() != nil {
		return
	}
	for end := time.Now().Add(BodyTimeout); most > 0; most -= discarded {
		next := time.Now().Add(Linger)
		if next.After(end) {
			next = end
		}
		if b.rc.SetReadDeadline(next) != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, b, discarded); err != nil {
			return // the connection ends in any case
		}
	}
}

// writer ends the connection with an answer that comes before the body's end.
type writer struct {
	http.ResponseWriter
	body *body
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader is that of http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if !w.body.ended.Load() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}
