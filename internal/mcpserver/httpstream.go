// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// smallAnswer is the longest answer that takes no room among the unsent:
	// there is one a connection, and connections are few.
	smallAnswer = 64 << 10
	// maxQueued is how many bytes before an answer may wait for a reader.
	maxQueued = 256 << 10
	// piece is how much is written at once; each may take as long as Stall.
	piece = 64 << 10
	// hugeAnswer is the longest answer that may take all the room among the
	// unsent; those beyond leave it hugeLeaves.
	hugeAnswer = 1 << 20
	hugeLeaves = MaxUnsent / 4
)

var (
	errStreamOver = errors.New("the stream has ended")
	errSlow       = errors.New("the client reads too slowly")
)

// stream is the answer to one HTTP request: frames of any goroutine, written by
// that of the request, so that nobody waits for the client's reading.
type stream struct {
	h      *HTTP
	ctx    context.Context //nolint:containedctx // that of the request whose answer this is
	status status

	mu     sync.Mutex
	queue  [][]byte
	queued int
	answer []byte // the last frame
	room   int    // that the answer holds
	ended  bool   // nothing more will come, or be taken

	wake chan struct{} // has a value when there is something to look at
	gone chan struct{} // closed when the response has ended
}

func newStream(ctx context.Context, h *HTTP) *stream {
	return &stream{h: h, ctx: ctx, status: http.StatusOK, wake: make(chan struct{}, 1), gone: make(chan struct{})}
}

func (st *stream) poke() {
	select {
	case st.wake <- struct{}{}:
	default: // it is awake
	}
}

// send takes a frame of ours: the answer, which ends the stream, or one before
// it.
func (st *stream) send(frame []byte) error {
	if isAnswer(frame) {
		return st.sendAnswer(frame)
	}
	return st.sendBefore(frame)
}

// sendBefore takes a frame that precedes the answer. A reader that is slow
// loses progress, which says nothing that the next one doesn't; what must not
// be lost ends the stream instead.
func (st *stream) sendBefore(frame []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	defer st.poke()
	switch {
	case st.ended:
		return errStreamOver
	case st.queued+len(frame) > maxQueued && st.queued > 0:
		if !bytes.HasPrefix(frame, []byte(progressHead)) {
			st.queue, st.ended = nil, true
		}
		return errSlow
	}
	st.queue = append(st.queue, slices.Clone(frame))
	st.queued += len(frame)
	return nil
}

// admit takes room for the answer of a call. Before it waits it calls leave, so
// that the call holds up no other; it reports false where there was no room for
// too long.
func (st *stream) admit(n int, leave func()) bool {
	if n <= smallAnswer {
		return true
	}
	room, most := st.h.unsent, st.h.unsent.most
	if n > hugeAnswer {
		most -= hugeLeaves
	}
	if fits, _ := room.tryBelow(most, n, false); !fits {
		if fits, _ := st.h.waiting.try(n, false); !fits {
			return false
		}
		defer st.h.waiting.free(n)
		leave()
		ctx, stop := context.WithTimeout(st.ctx, RoomWait)
		defer stop()
		if !room.takeBelow(ctx, most, n) {
			return false
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		room.free(n) // nobody takes the answer
		return true
	}
	st.room = n
	return true
}

// sendAnswer takes the answer. A large one that wasn't admitted is none of a
// call: there is one a connection, of what the server says of itself.
func (st *stream) sendAnswer(frame []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return errStreamOver
	}
	if len(frame) > smallAnswer && st.room == 0 {
		st.room = len(frame)
		st.h.unsent.add(st.room)
	}
	st.answer, st.ended = slices.Clone(frame), true
	st.poke()
	return nil
}

// end says that nothing more will come.
func (st *stream) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended = true
	st.poke()
}

// take returns what is to be written.
func (st *stream) take() (before [][]byte, answer []byte, ended bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	before, answer, ended = st.queue, st.answer, st.ended
	st.queue, st.queued = nil, 0
	return before, answer, ended
}

// close drops what was not written. The stream takes nothing more.
func (st *stream) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.ended, st.queue, st.answer = true, nil, nil
	if st.room > 0 {
		st.h.unsent.free(st.room)
		st.room = 0
	}
	close(st.gone)
}

// serve writes the stream until it ends or the client goes away, or until over
// is closed.
func (st *stream) serve(w http.ResponseWriter, over <-chan struct{}) {
	st.run(st.h.events(w), over, nil)
}

// listen is serve for a stream of events without an answer. It opens at once and
// ends also when the transport closes.
func (st *stream) listen(w http.ResponseWriter, over <-chan struct{}) {
	out := st.h.events(w)
	if out.comment() != nil {
		st.close()
		return
	}
	st.run(out, over, st.h.closing)
}

func (st *stream) run(out *events, over, closing <-chan struct{}) {
	defer st.close()
	defer out.calm()
	alive := time.NewTicker(st.h.keepAlive)
	defer alive.Stop()
	for {
		var ended bool
		var err error
		select {
		case <-st.wake:
			ended, err = st.write(out)
		case <-alive.C:
			if out.open {
				err = out.comment()
			}
		case <-st.ctx.Done():
			return
		case <-closing:
			return
		case <-over:
			_, _ = st.write(out) // what is there already
			return
		}
		if ended || err != nil {
			return
		}
	}
}

// write writes what there is and reports whether that was all.
func (st *stream) write(out *events) (ended bool, err error) {
	before, answer, ended := st.take()
	if answer != nil && len(before) == 0 && !out.open {
		out.whole(int(st.status), answer)
		return true, nil
	}
	if answer != nil {
		before = append(before, answer)
	}
	if ended && len(before) == 0 && !out.open {
		return true, out.comment() // cancelled: no answer may follow
	}
	for _, frame := range before {
		if err := out.event(frame); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// events writes server-sent events, each piece and the whole within a time.
type events struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
	rate  int
	end   time.Time // of the message that is written
	open  bool      // the response is a stream of events
	timed bool
}

func (h *HTTP) events(w http.ResponseWriter) *events {
	return &events{w: w, rc: http.NewResponseController(w), stall: h.stall, rate: h.rate}
}

// whole writes one answer as the whole response.
func (e *events) whole(code int, frame []byte) {
	head := e.w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("Content-Length", strconv.Itoa(len(frame)))
	e.start(len(frame))
	e.w.WriteHeader(code)
	if e.pieces(frame) == nil {
		_ = e.rc.Flush() // a client that has gone is none of our business
	}
}

// start gives a message of that size its time.
func (e *events) start(size int) {
	e.end = time.Now().Add(e.stall + time.Duration(size)*time.Second/time.Duration(e.rate))
	e.hurry()
}

// hurry gives the next write its time. A writer without deadlines is a test's.
func (e *events) hurry() {
	next := time.Now().Add(e.stall)
	if next.After(e.end) {
		next = e.end
	}
	e.timed = e.rc.SetWriteDeadline(next) == nil
}

// calm leaves the connection without a deadline for its next request.
func (e *events) calm() {
	if e.timed {
		_ = e.rc.SetWriteDeadline(time.Time{}) // it was possible before
	}
}

// begin begins a message of that size.
func (e *events) begin(size int) {
	e.start(size)
	if e.open {
		return
	}
	e.open = true
	head := e.w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
}

func (e *events) event(frame []byte) error {
	e.begin(len(frame))
	if _, err := e.w.Write([]byte("event: message\ndata: ")); err != nil {
		return err
	}
	if err := e.pieces(frame); err != nil {
		return err
	}
	if _, err := e.w.Write([]byte("\n\n")); err != nil {
		return err
	}
	return e.rc.Flush()
}

// comment writes a line that says nothing.
func (e *events) comment() error {
	e.begin(0)
	if _, err := e.w.Write([]byte(":\n\n")); err != nil {
		return err
	}
	return e.rc.Flush()
}

func (e *events) pieces(frame []byte) error {
	for part := range slices.Chunk(frame, piece) {
		e.hurry()
		if _, err := e.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
