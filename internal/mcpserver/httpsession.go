// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"sync"
	"time"
)

type digest = [sha256.Size]byte

// bearer stands for whoever sends the request: the token that was checked
// before, as far as sessions are concerned.
func bearer(r *http.Request) digest { return sha256.Sum256([]byte(r.Header.Get("Authorization"))) }

// httpSession is a session of an older revision over HTTP.
type httpSession struct {
	n      *Session
	key    digest // of the id, which is a secret
	bearer digest

	busy int // under sessions.mu: requests and calls in work
	used time.Time

	mu        sync.Mutex
	listening *stream
}

// newHTTPSession opens a session and returns it with its id.
func (h *HTTP) newHTTPSession(r *http.Request) (hs *httpSession, id string) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails: the program ends instead
	id = hex.EncodeToString(secret[:])
	hs = &httpSession{key: sha256.Sum256([]byte(id)), bearer: bearer(r)}
	hs.n = h.s.NewSession(hs.tell)
	hs.n.byCall = true
	return hs, id
}

var errNobody = errors.New("the client does not listen")

// tell sends what belongs to no call, if the client listens.
func (hs *httpSession) tell(frame []byte) error {
	hs.mu.Lock()
	st := hs.listening
	hs.mu.Unlock()
	if st == nil {
		return errNobody
	}
	return st.send(frame)
}

// listen makes st, or nothing, the stream for what belongs to no call; it
// reports false where there is one already.
func (hs *httpSession) listen(st *stream) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if st != nil && hs.listening != nil {
		return false
	}
	hs.listening = st
	return true
}

func (hs *httpSession) listens() bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.listening != nil
}

// sessions are those that are open.
type sessions struct {
	most int
	idle time.Duration
	now  func() time.Time

	mu   sync.Mutex
	open map[digest]*httpSession
}

// find returns the session of that id and holds it until release, or nil where
// there is none that this bearer may use.
func (t *sessions) find(id string, bearer digest) *httpSession {
	key := sha256.Sum256([]byte(id))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	hs := t.open[key]
	if hs == nil || hs.bearer != bearer {
		return nil
	}
	hs.busy++
	return hs
}

// expire ends sessions that nobody used for too long.
func (t *sessions) expire() {
	for _, hs := range t.open {
		if hs.busy == 0 && !hs.listens() && t.now().Sub(hs.used) > t.idle {
			t.drop(hs)
		}
	}
}

// drop ends a session without a call in flight.
func (t *sessions) drop(hs *httpSession) {
	delete(t.open, hs.key)
	hs.n.shut()
}

// add enters a session, held until release. Where the table is full the one
// that was idle longest gives way; it reports false when all have calls in
// flight.
func (t *sessions) add(hs *httpSession) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	if len(t.open) >= t.most {
		var oldest *httpSession
		for _, o := range t.open {
			if o.busy == 0 && (oldest == nil || o.used.Before(oldest.used)) {
				oldest = o
			}
		}
		if oldest == nil {
			return false
		}
		t.drop(oldest)
	}
	hs.busy++
	t.open[hs.key] = hs
	return true
}

// keep holds a session once more.
func (t *sessions) keep(hs *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hs.busy++
}

// release ends a hold on a session, which was in use until now.
func (t *sessions) release(hs *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hs.busy--
	hs.used = t.now()
}

func (t *sessions) remove(hs *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, hs.key)
}

func (t *sessions) all() []*Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Session, 0, len(t.open)+1)
	for _, hs := range t.open {
		all = append(all, hs.n)
	}
	return all
}
