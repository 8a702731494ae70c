// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const pingFrame = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

func alive(t *testing.T, url, session string) bool {
	t.Helper()
	status, _ := answer(t, post(t.Context(), t, url, session, pingFrame))
	if status != http.StatusOK && status != http.StatusNotFound {
		t.Fatalf("status %d", status)
	}
	return status == http.StatusOK
}

// The session that was idle longest gives way, never one with a call in flight;
// where all have calls there is no new one.
func TestSessionsAreLimited(t *testing.T) {
	g := newGate()
	h, srv := httpServer(t, newServer(t, g))
	h.sessions.most = 2
	first, second := openSession(t, srv.URL, `{}`), openSession(t, srv.URL, `{}`)
	if !alive(t, srv.URL, first) || !alive(t, srv.URL, second) || !alive(t, srv.URL, first) {
		t.Fatal("a session is gone")
	}
	third := openSession(t, srv.URL, `{}`)
	if alive(t, srv.URL, second) || !alive(t, srv.URL, first) {
		t.Fatal("the wrong one gave way")
	}
	_, got := begin(t, post(t.Context(), t, srv.URL, first, call("1", "gate", "")))
	<-g.started
	if !alive(t, srv.URL, third) {
		t.Fatal("the third is gone")
	}
	fourth := openSession(t, srv.URL, `{}`) // in the place of the third, though that was used later
	if alive(t, srv.URL, third) {
		t.Error("the third is there")
	}
	_, other := begin(t, post(t.Context(), t, srv.URL, fourth, call("1", "gate", "")))
	<-g.started
	status, body := answer(t, post(t.Context(), t, srv.URL, "", opening))
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "limit.exceeded") {
		t.Errorf("%d %s", status, body)
	}
	close(g.let)
	for _, got := range []<-chan string{got, other} {
		if body := <-got; !strings.Contains(body, "let go") {
			t.Error(body)
		}
	}
}

// One that nobody uses ends; one that listens stays.
func TestIdleSessionsEnd(t *testing.T) {
	h, srv := httpServer(t, newServer(t, openGate()))
	var ahead atomic.Int64
	h.sessions.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	idle, used, listens := openSession(t, srv.URL, `{}`), openSession(t, srv.URL, `{}`), openSession(t, srv.URL, `{}`)
	streaming(t, get(t.Context(), t, srv.URL, listens))
	ahead.Store(int64(SessionIdle / 2))
	if !alive(t, srv.URL, used) {
		t.Fatal("ended too early")
	}
	ahead.Store(int64(SessionIdle + time.Second))
	if alive(t, srv.URL, idle) {
		t.Error("the idle one is there")
	}
	if !alive(t, srv.URL, used) || !alive(t, srv.URL, listens) {
		t.Error("one in use has ended")
	}
}

// Only the token that opened a session may use it.
func TestSessionIsBoundToItsToken(t *testing.T) {
	_, srv := httpServer(t, newServer(t, openGate()))
	r := post(t.Context(), t, srv.URL, "", opening)
	r.Header.Set("Authorization", "Bearer a")
	a, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	for token, want := range map[string]int{"Bearer a": http.StatusOK, "Bearer b": http.StatusNotFound, "": http.StatusNotFound} {
		r := post(t.Context(), t, srv.URL, a.Header.Get(headerSession), pingFrame)
		r.Header.Set("Authorization", token)
		if status, body := answer(t, r); status != want {
			t.Errorf("%q: %d %s", token, status, body)
		}
	}
}

// endless hides the length of a body, so that it travels in chunks.
type endless struct{ io.Reader }

func TestBodiesAreLimited(t *testing.T) {
	s := newServer(t, openGate())
	s.limit = 100_000
	h, srv := httpServer(t, s)
	h.bodies = newFrameRoom(150_000)
	long := func(n int) string {
		return call("1", "echo", `,"arguments":{"text":"`+strings.Repeat("x", n)+`"},`+statelessMeta)
	}
	send := func(body io.Reader) (int, string) {
		r := modern(t.Context(), t, srv.URL, "1", "echo", "")
		r.Body, r.ContentLength = io.NopCloser(body), -1
		if b, ok := body.(*strings.Reader); ok {
			r.ContentLength = b.Size()
		}
		return answer(t, r)
	}
	for name, tt := range map[string]struct {
		n    int
		want int
	}{
		"small":    {10, http.StatusOK},
		"a chunk":  {firstRead, http.StatusOK},
		"fits":     {99_000, http.StatusOK},
		"too long": {100_001, http.StatusRequestEntityTooLarge},
		"far":      {1_000_000, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if status, body := send(strings.NewReader(long(tt.n))); status != tt.want {
				t.Errorf("with a length: %d %.200s", status, body)
			}
			if status, body := send(endless{strings.NewReader(long(tt.n))}); status != tt.want {
				t.Errorf("in chunks: %d %.200s", status, body)
			}
		})
	}
	h.bodies.take(t.Context(), 100_000)
	if status, body := send(strings.NewReader(long(90_000))); status != http.StatusServiceUnavailable || !strings.Contains(body, "limit.exceeded") {
		t.Errorf("beside others: %d %.200s", status, body)
	}
	if status, _ := send(strings.NewReader(long(10))); status != http.StatusOK {
		t.Errorf("a small one beside others: %d", status)
	}
	h.bodies.free(100_000)
	if status, _ := send(strings.NewReader(long(90_000))); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
	h.bodies.mu.Lock()
	defer h.bodies.mu.Unlock()
	if h.bodies.held != 0 {
		t.Errorf("%d bytes are never freed", h.bodies.held)
	}
}

// dial opens a connection and sends text as it is.
func dial(t *testing.T, url, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func rawCall(id, tool, rest string) string {
	body := call(id, tool, rest+","+statelessMeta)
	return "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: */*\r\nMcp-Protocol-Version: 2026-07-28\r\n" +
		"Mcp-Method: tools/call\r\nMcp-Name: " + tool + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// A body that stops to arrive ends by itself, and holds no room meanwhile for
// what it only announced.
func TestSlowBody(t *testing.T) {
	h, srv := httpServer(t, newServer(t, openGate()))
	h.stall = 50 * time.Millisecond
	c := dial(t, srv.URL, strings.Replace(rawCall("1", "echo", ""), "Content-Length: ", "Content-Length: 1", 1))
	got, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
		t.Errorf("%q %v", got, err)
	}
}

// A connection is used again after its deadlines have passed.
func TestDeadlinesEndWithTheRequest(t *testing.T) {
	h, srv := httpServer(t, newServer(t, openGate()))
	h.stall = 50 * time.Millisecond
	c := dial(t, srv.URL, "")
	for range 3 {
		if _, err := io.WriteString(c, rawCall("1", "echo", `,"arguments":{"text":"hi"}`)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 4096)
		n, err := c.Read(b)
		if err != nil || !bytes.Contains(b[:n], []byte(`"text":"hi"`)) {
			t.Fatalf("%q %v", b[:n], err)
		}
		time.Sleep(2 * h.stall)
	}
}

// A client that doesn't read its answers holds up nobody else, and is given up.
func TestSlowReaderOverHTTP(t *testing.T) {
	const size = 4 << 20
	large := testTools(openGate())
	large[0].Call = func(context.Context, *Call) Result { return own(strings.Repeat("x", size)) }
	s, err := New(Config{Tools: large, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	h, srv := httpServer(t, s)
	h.stall = 2 * time.Second
	var slow []net.Conn
	for range MaxSmall + 8 { // more than there are places
		slow = append(slow, dial(t, srv.URL, rawCall("1", "echo", "")))
	}
	for range 3 {
		if status, body := answer(t, modern(t.Context(), t, srv.URL, "2", "mixed", "")); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	for _, c := range slow {
		c.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		h.unsent.mu.Lock()
		held := h.unsent.held
		h.unsent.mu.Unlock()
		if held == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are never freed", held)
		}
	}
}

// What waits before an answer is bounded: progress is dropped, what must not be
// lost ends the stream.
func TestStreamIsBounded(t *testing.T) {
	h := newServer(t, openGate()).HTTP()
	progress := []byte(progressHead + `"params":{"x":"` + strings.Repeat("x", 1000) + `"}}`)
	st := newStream(t.Context(), h)
	sent := 0
	for range 1000 {
		if st.send(progress) == nil {
			sent++
		}
	}
	if sent == 0 || sent*len(progress) > maxQueued {
		t.Errorf("%d are kept", sent)
	}
	if err := st.send([]byte(answerHead + `1,"result":{}}`)); err != nil {
		t.Errorf("the answer: %v", err)
	}
	before, last, ended := st.take()
	if len(before) != sent || last == nil || !ended {
		t.Error(len(before), last, ended)
	}
	st = newStream(t.Context(), h)
	update := []byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"x":"` + strings.Repeat("x", 1000) + `"}}`)
	var err error
	for range 1000 {
		if err = st.send(update); err != nil {
			break
		}
	}
	if !errors.Is(err, errSlow) {
		t.Error(err)
	}
	if before, _, ended := st.take(); len(before) != 0 || !ended {
		t.Error("it goes on after a loss")
	}
	if err := st.send(update); !errors.Is(err, errStreamOver) {
		t.Error(err)
	}
}

// The end: new requests are refused, calls get their time, those that take
// longer are cancelled.
func TestCloseOverHTTP(t *testing.T) {
	for name, ends := range map[string]bool{"in time": true, "late": false} {
		t.Run(name, func(t *testing.T) {
			g := newGate()
			h, srv := httpServer(t, newServer(t, g))
			session := openSession(t, srv.URL, `{}`)
			listening := streaming(t, get(t.Context(), t, srv.URL, session))
			_, inSession := begin(t, post(t.Context(), t, srv.URL, session, call("1", "gate", "")))
			_, alone := begin(t, modern(t.Context(), t, srv.URL, "1", "gate", ""))
			<-g.started
			<-g.started
			closed := make(chan bool)
			go func() { closed <- h.Close(t.Context()) }()
			<-h.closing
			if status, _ := answer(t, post(t.Context(), t, srv.URL, session, pingFrame)); status != http.StatusServiceUnavailable {
				t.Errorf("status %d", status)
			}
			if got, more := listening.next(); more {
				t.Error(got)
			}
			if ends {
				close(g.let)
			}
			if !<-closed {
				t.Error("calls are left")
			}
			for _, got := range []<-chan string{inSession, alone} {
				if body := <-got; strings.Contains(body, "let go") != ends {
					t.Errorf("%q", body)
				}
			}
		})
	}
}

// Calls in flight are bounded for all clients of the stateless era together.
func TestStatelessCallsAreLimited(t *testing.T) {
	g := newGate()
	h, srv := httpServer(t, newServer(t, g))
	var calls []<-chan string
	for i := range MaxInFlight {
		_, got := begin(t, modern(t.Context(), t, srv.URL, strconv.Itoa(i), "gate", ""))
		calls = append(calls, got)
	}
	for running := 0; running < MaxInFlight; {
		h.stateless.mu.Lock()
		running = h.stateless.running
		h.stateless.mu.Unlock()
	}
	if _, body := answer(t, modern(t.Context(), t, srv.URL, `"x"`, "mixed", "")); !strings.Contains(body, "limit.exceeded") {
		t.Error("a call too many was taken", body)
	}
	close(g.let)
	for _, got := range calls {
		if body := <-got; !strings.Contains(body, "let go") {
			t.Fatal(body)
		}
	}
}

// Many clients of both eras at once, some of which leave.
func TestChurnOverHTTP(t *testing.T) {
	s := newServer(t, openGate())
	h, srv := httpServer(t, s)
	h.sessions.most = 3
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				if j%5 == 0 {
					time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
				}
				r := modern(ctx, t, srv.URL, "1", "count", "")
				if i%2 == 0 {
					r = post(ctx, t, srv.URL, "", opening)
				}
				a, err := srv.Client().Do(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, a.Body) // it may be cut
					a.Body.Close()
					if id := a.Header.Get(headerSession); id != "" && j%3 != 0 {
						if a, err = srv.Client().Do(post(ctx, t, srv.URL, id, call("1", "count", `,"_meta":{"progressToken":1}`))); err == nil {
							_, _ = io.Copy(io.Discard, a.Body) // it may be cut
							a.Body.Close()
						}
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	h.sessions.mu.Lock()
	defer h.sessions.mu.Unlock()
	if len(h.sessions.open) > 3 {
		t.Errorf("%d sessions", len(h.sessions.open))
	}
	for _, hs := range h.sessions.open {
		if hs.busy != 0 {
			t.Error("a session is held for ever")
		}
	}
}
