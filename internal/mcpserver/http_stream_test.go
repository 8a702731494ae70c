// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const statelessMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// post makes a POST with the headers that its message needs.
func post(ctx context.Context, t testing.TB, url, session, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.Header.Set(headerSession, session)
	}
	return r
}

// modern makes a call of the stateless era.
func modern(ctx context.Context, t testing.TB, url, id, tool, rest string) *http.Request {
	t.Helper()
	r := post(ctx, t, url, "", call(id, tool, rest+","+statelessMeta))
	r.Header.Set(headerVersion, stateless)
	r.Header.Set(headerMethod, "tools/call")
	r.Header.Set(headerName, tool)
	return r
}

// answer sends a request and returns the status and the whole body.
func answer(t testing.TB, r *http.Request) (int, string) {
	t.Helper()
	a, err := http.DefaultClient.Do(r) //nolint:forbidigo // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(body)
}

// begin sends a request whose answer is read later, or never.
func begin(t testing.TB, r *http.Request) (cut func(), got <-chan string) {
	t.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	answers := make(chan string, 1)
	go func() {
		defer close(answers)
		a, err := http.DefaultClient.Do(r.WithContext(ctx)) //nolint:forbidigo // a test's own server
		if err != nil {
			return
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err == nil {
			answers <- string(body)
		}
	}()
	return cancel, answers
}

// session opens a session of an older revision; capabilities are JSON.
func openSession(t testing.TB, url, capabilities string) (id string) {
	t.Helper()
	r := post(t.Context(), t, url, "", strings.Replace(opening, `"capabilities":{}`, `"capabilities":`+capabilities, 1))
	a, err := http.DefaultClient.Do(r) //nolint:forbidigo // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if _, err := io.ReadAll(a.Body); err != nil || a.StatusCode != http.StatusOK {
		t.Fatal(a.Status, err)
	}
	return a.Header.Get(headerSession)
}

// The end of the connection cancels a call of the stateless era.
func TestDisconnectCancelsStateless(t *testing.T) {
	g := newGate()
	_, srv := httpServer(t, newServer(t, g))
	cut, _ := begin(t, modern(t.Context(), t, srv.URL, "1", "gate", ""))
	<-g.started
	cut()
	if err := <-g.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the tool ended with %v", err)
	}
}

// In older revisions it cancels nothing: the call goes on, its answer is dropped.
func TestDisconnectDoesNotCancelInSession(t *testing.T) {
	g := newGate()
	_, srv := httpServer(t, newServer(t, g))
	session := openSession(t, srv.URL, `{}`)
	cut, got := begin(t, post(t.Context(), t, srv.URL, session, call("1", "gate", "")))
	<-g.started
	cut()
	if _, ok := <-got; ok {
		t.Error("an answer")
	}
	select {
	case err := <-g.ended:
		t.Fatalf("the tool ended with %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	// The id is in use while the call runs: it was not cancelled.
	if _, body := answer(t, post(t.Context(), t, srv.URL, session, call("1", "echo", `,"arguments":{"text":"x"}`))); !strings.Contains(body, "still in progress") {
		t.Error(body)
	}
	close(g.let)
	if err := <-g.ended; err != nil {
		t.Errorf("the tool ended with %v", err)
	}
}

// A cancelled call of an older revision has no answer, and its response ends.
func TestCancelledInSession(t *testing.T) {
	g := newGate()
	_, srv := httpServer(t, newServer(t, g))
	session := openSession(t, srv.URL, `{}`)
	_, got := begin(t, post(t.Context(), t, srv.URL, session, call(`"a"`, "gate", "")))
	<-g.started
	if status, _ := answer(t, post(t.Context(), t, srv.URL, session, cancelled(`"a"`))); status != http.StatusAccepted {
		t.Errorf("status %d", status)
	}
	if err := <-g.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the tool ended with %v", err)
	}
	if body := <-got; body != ":\n\n" {
		t.Errorf("%q", body)
	}
}

// Over HTTP a notification cancels nothing of the stateless era, whose ids are
// those of clients that know nothing of each other.
func TestStatelessIDsAreApart(t *testing.T) {
	g := newGate()
	_, srv := httpServer(t, newServer(t, g))
	_, first := begin(t, modern(t.Context(), t, srv.URL, "1", "gate", ""))
	_, second := begin(t, modern(t.Context(), t, srv.URL, "1", "gate", ""))
	<-g.started
	<-g.started
	r := post(t.Context(), t, srv.URL, "", cancelled("1"))
	r.Header.Set(headerVersion, stateless)
	if status, _ := answer(t, r); status != http.StatusAccepted {
		t.Errorf("status %d", status)
	}
	close(g.let)
	for _, got := range []<-chan string{first, second} {
		if body := <-got; !strings.Contains(body, "let go") {
			t.Error(body)
		}
	}
}

// events reads the data of a stream of events.
type eventReader struct {
	t    testing.TB
	body io.Closer
	r    *bufio.Reader
}

func (e *eventReader) next() (string, bool) {
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			return "", false
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data), true
		}
	}
}

func streaming(t testing.TB, r *http.Request) *eventReader {
	t.Helper()
	a, err := http.DefaultClient.Do(r) //nolint:forbidigo // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Body.Close() })
	if kind := a.Header.Get("Content-Type"); a.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatal(a.Status, kind)
	}
	return &eventReader{t, a.Body, bufio.NewReader(a.Body)}
}

const rootsAnswer = `{"jsonrpc":"2.0","id":"postern-N","result":{"roots":[{"uri":"file:///ROOT"}]}}`

func rootsOf(n, root string) string {
	return strings.NewReplacer("N", n, "ROOT", root).Replace(rootsAnswer)
}

// The question for the roots is on the stream of the call that needs them, once;
// the answer is a POST of its own. A change has the next call ask again.
func TestRootsOverHTTP(t *testing.T) {
	_, srv := httpServer(t, newServer(t, openGate()))
	session := openSession(t, srv.URL, `{"roots":{"listChanged":true}}`)
	tell := func(body string) {
		if status, text := answer(t, post(t.Context(), t, srv.URL, session, body)); status != http.StatusAccepted {
			t.Errorf("%d %s", status, text)
		}
	}
	tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, root := range []string{"a", "b"} {
		asked := streaming(t, post(t.Context(), t, srv.URL, session, call("1", "roots", "")))
		n := string(rune('1' + i))
		if got, _ := asked.next(); got != `{"jsonrpc":"2.0","id":"postern-`+n+`","method":"roots/list"}` {
			t.Fatal(got)
		}
		tell(rootsOf(n, root))
		if got, _ := asked.next(); got != text("1", "2 file:///"+root) {
			t.Error(got)
		}
		if got, more := asked.next(); more {
			t.Errorf("after the answer: %s", got)
		}
		if _, got := answer(t, post(t.Context(), t, srv.URL, session, call("2", "roots", ""))); got != text("2", "2 file:///"+root) {
			t.Errorf("asked again: %s", got)
		}
		tell(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	}
}

// A question whose stream breaks before the answer is asked by the next call
// that needs it, and by one that waits already.
func TestRootsQuestionLost(t *testing.T) {
	_, srv := httpServer(t, newServer(t, openGate()))
	session := openSession(t, srv.URL, `{"roots":{}}`)
	ctx, cut := context.WithCancel(t.Context())
	asked := streaming(t, post(ctx, t, srv.URL, session, call("1", "roots", "")))
	if got, _ := asked.next(); !strings.Contains(got, `"postern-1"`) {
		t.Fatal(got)
	}
	waiting := make(chan *eventReader)
	go func() {
		a, err := http.DefaultClient.Do(post(t.Context(), t, srv.URL, session, call("2", "roots", ""))) //nolint:forbidigo,bodyclose // a test's own server; closed by the reader below
		if err != nil {
			t.Error(err)
			close(waiting)
			return
		}
		waiting <- &eventReader{t, a.Body, bufio.NewReader(a.Body)}
	}()
	time.Sleep(20 * time.Millisecond) // so that it waits, most of the time; either way it asks
	cut()
	second := <-waiting
	if second == nil {
		return
	}
	defer second.body.Close()
	if got, _ := second.next(); !strings.Contains(got, `"postern-2"`) {
		t.Fatal(got)
	}
	if status, _ := answer(t, post(t.Context(), t, srv.URL, session, rootsOf("2", "c"))); status != http.StatusAccepted {
		t.Errorf("status %d", status)
	}
	if got, _ := second.next(); got != text("2", "2 file:///c") {
		t.Error(got)
	}
}

// get makes the GET of a session's stream.
func get(ctx context.Context, t testing.TB, url, session string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set(headerSession, session)
	return r
}

// One stream a session for what belongs to no call. It opens at once, says that
// it is alive, and ends with the session.
func TestListening(t *testing.T) {
	s := newServer(t, openGate())
	h, srv := httpServer(t, s)
	h.keepAlive = 10 * time.Millisecond
	session := openSession(t, srv.URL, `{}`)
	hs := h.sessions.find(session, bearer(get(t.Context(), t, srv.URL, session)))
	if hs == nil {
		t.Fatal("no session")
	}
	h.sessions.release(hs)
	if err := hs.tell([]byte(`{}`)); !errors.Is(err, errNobody) {
		t.Errorf("nobody listens: %v", err)
	}
	listening := streaming(t, get(t.Context(), t, srv.URL, session))
	for range 3 {
		if line, err := listening.r.ReadString('\n'); err != nil || line != ":\n" {
			t.Fatalf("%q %v", line, err)
		}
		if line, err := listening.r.ReadString('\n'); err != nil || line != "\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	if status, body := answer(t, get(t.Context(), t, srv.URL, session)); status != http.StatusConflict {
		t.Errorf("a second one: %d %s", status, body)
	}
	const frame = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{}}`
	if err := hs.tell([]byte(frame)); err != nil {
		t.Error(err)
	}
	if got, _ := listening.next(); got != frame {
		t.Error(got)
	}
	r := get(t.Context(), t, srv.URL, session)
	r.Method = http.MethodDelete
	if status, _ := answer(t, r); status != http.StatusNoContent {
		t.Errorf("status %d", status)
	}
	if got, more := listening.next(); more {
		t.Error(got)
	}
}

// A stream that the client left can be opened again.
func TestListeningAgain(t *testing.T) {
	_, srv := httpServer(t, newServer(t, openGate()))
	session := openSession(t, srv.URL, `{}`)
	ctx, cut := context.WithCancel(t.Context())
	streaming(t, get(ctx, t, srv.URL, session))
	cut()
	for deadline := time.Now().Add(10 * time.Second); ; {
		a, err := http.DefaultClient.Do(get(t.Context(), t, srv.URL, session)) //nolint:forbidigo // a test's own server
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(a.Status)
		}
	}
}
