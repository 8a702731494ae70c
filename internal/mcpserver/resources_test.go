// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

// shelf are resources that a test changes.
type shelf struct {
	mu      sync.Mutex
	changed map[string]func(Change)
	stops   int
	began   chan string // of watches, if set; each then waits for let
	let     chan struct{}
}

func (s *shelf) read(_ context.Context, c *Call, uri string) Result {
	switch uri {
	case "test://text":
		return own("hello")
	case "test://both":
		r := own("note")
		r.Content = append(r.Content, Blob(textsafe.Clean("x"), textsafe.Clean("image/png"), []byte("b")))
		return r
	case "test://panic":
		panic("secret")
	case "test://denied":
		return Refusal(&fault.Error{Code: fault.PolicyDenied, Op: "fs.read", Resource: uri}, "r1")
	case "test://failed":
		return Refusal(&fault.Error{Code: fault.IOFailed, Op: "fs.read", Resource: uri}, "")
	}
	return Refusal(&fault.Error{Code: fault.PathMissing, Op: "fs.read", Resource: uri}, "")
}

func (s *shelf) watch(_ context.Context, _ *Call, uri string, changed func(Change)) (func(), Result) {
	if !strings.HasPrefix(uri, "test://w") {
		return nil, Refusal(&fault.Error{Code: fault.PathMissing, Op: "fs.watch", Resource: uri}, "")
	}
	if s.began != nil {
		s.began <- uri
		<-s.let
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = map[string]func(Change){}
	}
	s.changed[uri] = changed
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stops++
		delete(s.changed, uri)
	}, Result{}
}

func (s *shelf) change(uri string, c Change) {
	s.mu.Lock()
	f := s.changed[uri]
	s.mu.Unlock()
	if f != nil {
		f(c)
	}
}

func (s *shelf) watched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.changed)
}

func shelved(t testing.TB, s *shelf) *Server {
	t.Helper()
	srv, err := New(Config{Tools: testTools(nil), Version: "1", Resources: &Resources{
		List:      []Resource{{URI: "test://text", Name: "text", MIME: "text/plain"}, {URI: "test://both", Name: "both"}},
		Templates: []Template{{URITemplate: "test://{x}", Name: "any", Description: "Any."}},
		Read:      s.read, Watch: s.watch,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return srv
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func req(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"%s","params":{%s}}`, id, method, params)
}

// ask sends a request and demands an answer that holds the parts.
func (w *wire) ask(request string, parts ...string) {
	w.t.Helper()
	w.send(request)
	line := w.next()
	for _, part := range parts {
		if !strings.Contains(line, part) {
			w.t.Errorf("%s\nanswers %s\nwithout %s", request, line, part)
		}
	}
}

// TestResources: lists, contents and refusals in both eras, with the numbers
// that each fixes.
func TestResources(t *testing.T) {
	w := open(t, shelved(t, &shelf{}))
	w.ask(req(1, "resources/list", ""), `"resources":[{"uri":"test://text","name":"text","mimeType":"text/plain"},{"uri":"test://both","name":"both"}]`)
	w.ask(req(1, "resources/list", `"cursor":"x"`), `-32602`)
	w.ask(req(1, "resources/templates/list", ""), `"resourceTemplates":[{"uriTemplate":"test://{x}","name":"any","description":"Any."}]`)
	w.ask(req(1, "resources/read", `"uri":"test://text"`), `{"contents":[{"uri":"test://text","mimeType":"text/plain","text":"hello"}]}`)
	w.ask(req(1, "resources/read", `"uri":"test://both"`), `"text":"note"},{"uri":"test://both","mimeType":"image/png","blob":"Yg=="}]`)
	w.ask(req(1, "resources/read", `"uri":"test://<x>"`), `"code":-32002`, `"data":{"code":"path.missing"`, `"uri":"test://<x>"`)
	w.ask(req(1, "resources/read", `"uri":"test://denied"`), `"code":-32602`, `"message":"denied: fs.read test://denied\nbecause: `,
		`"data":{"code":"policy.denied"`, `"id":"r1"`)
	w.ask(req(1, "resources/read", `"uri":"test://failed"`), `"code":-32603`, `"io.failed"`)
	w.ask(req(1, "resources/read", `"uri":"test://panic"`), `"code":-32603`, `internal.bug`)
	w.ask(req(1, "resources/read", `"uri":7`), `-32602`)
	w.ask(req(1, "resources/read", ``), `-32602`)
	w.ask(req(1, "resources/read", `"uri":"`+strings.Repeat("x", maxURI+1)+`"`), `the URI is too long`)
	w.ask(req(1, "subscriptions/listen", `"notifications":{}`), `-32601`)
	const hints = `"ttlMs":300000,"cacheScope":"private"`
	w.ask(req(2, "server/discover", modernMeta), `"resources":{"subscribe":true,"listChanged":false}`)
	w.ask(req(2, "resources/list", modernMeta), `"resultType":"complete"`, hints)
	w.ask(req(2, "resources/templates/list", modernMeta), hints)
	w.ask(req(2, "resources/read", `"uri":"test://text",`+modernMeta), `"resultType":"complete"`, `"ttlMs":0,"cacheScope":"private"`, `serverInfo`)
	w.ask(req(2, "resources/read", `"uri":"test://none",`+modernMeta), `"code":-32602`, `"path.missing"`)
	w.ask(req(2, "resources/subscribe", `"uri":"test://w",`+modernMeta), `-32601`)
	if err := w.close(); err != nil {
		t.Error(err)
	}
	w = open(t, newServer(t, nil)) // one without
	w.ask(req(1, "resources/list", ""), `-32601`)
	w.ask(req(1, "server/discover", modernMeta), `"capabilities":{"tools":{"listChanged":false}}`)
	_ = w.close()
}

const updated = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{`

// TestSubscribe: one notification however often it changes, none after the end,
// and what is special said beside it.
func TestSubscribe(t *testing.T) {
	s := &shelf{}
	w := open(t, shelved(t, s))
	w.ask(req(1, "resources/subscribe", `"uri":"test://w"`), `"id":1,"result":{}`)
	w.ask(req(2, "resources/subscribe", `"uri":"test://w"`), `"id":2,"result":{}`) // twice is once
	w.ask(req(3, "resources/subscribe", `"uri":"test://none"`), `-32002`)
	for range 100 {
		s.change("test://w", WatchUpdated)
	}
	w.want(updated + `"uri":"test://w"}}`)
	s.change("test://w", WatchMissed)
	s.change("test://w", WatchUpdated)
	if line := w.next(); !strings.Contains(line, `"dev.postern/watch":"there were more`) {
		t.Error(line)
	}
	w.ask(req(4, "resources/unsubscribe", `"uri":"test://w"`), `"id":4,"result":{}`)
	w.ask(req(5, "resources/unsubscribe", `"uri":"test://w"`), `"id":5,"result":{}`)
	if s.watched() != 0 || s.stops != 1 {
		t.Errorf("%d watched, %d stopped", s.watched(), s.stops)
	}
	w.ask(req(6, "resources/subscribe", `"uri":"test://w2"`), `"result":{}`)
	s.change("test://w2", WatchOver)
	if line := w.next(); !strings.Contains(line, `"uri":"test://w2"`) || !strings.Contains(line, "the subscription has ended") {
		t.Error(line)
	}
	w.ask(req(7, "resources/subscribe", `"uri":"test://w3"`), `"result":{}`) // left to the end of the session
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if s.watched() != 0 {
		t.Error("a watch outlives its session")
	}
}

// TestUnsubscribeEarly: a watch that is called off while it begins ends.
func TestUnsubscribeEarly(t *testing.T) {
	s := &shelf{began: make(chan string, 1), let: make(chan struct{})}
	w := open(t, shelved(t, s))
	w.send(req(1, "resources/subscribe", `"uri":"test://w"`))
	<-s.began
	w.ask(req(2, "resources/unsubscribe", `"uri":"test://w"`), `"id":2`)
	close(s.let)
	if line := w.next(); !strings.Contains(line, `"id":1`) {
		t.Error(line)
	}
	_ = w.close()
	if s.stops != 1 || s.watched() != 0 {
		t.Errorf("%d stopped, %d left", s.stops, s.watched())
	}
}

// TestListen: acknowledged first with what is honoured, tagged with the id, and
// ended by the client, by the last of its resources or by the server.
func TestListen(t *testing.T) {
	s := &shelf{}
	w := open(t, shelved(t, s))
	const tag = `"_meta":{"io.modelcontextprotocol/subscriptionId":`
	w.ask(req(7, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://w1","test://none","test://w1"]},`+modernMeta),
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{`+tag+`7},"notifications":{"resourceSubscriptions":["test://w1"]}}}`)
	s.change("test://w1", WatchUpdated)
	w.want(updated + tag + `7},"uri":"test://w1"}}`)
	w.ask(strings.Replace(req(8, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["test://w2"]},`+modernMeta), "8", `"eight"`, 1), tag+`"eight"}`)
	w.send(cancelled("7"))
	s.change("test://w2", WatchOver)
	w.want(updated+tag+`"eight","dev.postern/watch":"it was removed or moved, or may not be watched any more: the subscription has ended"},"uri":"test://w2"}}`,
		`{"jsonrpc":"2.0","id":"eight","result":{"resultType":"complete",`+tag+`"eight","io.modelcontextprotocol/serverInfo":{"name":"postern","version":"1"}}}}`)
	w.ask(req(9, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["test://w3"]},`+modernMeta), "acknowledged")
	w.ask(req(10, "subscriptions/listen", modernMeta), "-32602")
	w.ask(req(10, "subscriptions/listen", `"notifications":{"resourceSubscriptions":[7]},`+modernMeta), "-32602")
	w.ask(req(10, "subscriptions/listen", `"notifications":{},"pad":"`+strings.Repeat("x", maxListen)+`",`+modernMeta), "too long")
	w.in.Close()
	if line := w.next(); !strings.Contains(line, `"id":9,"result":{"resultType":"complete"`) {
		t.Error("not ended gracefully: " + line)
	}
	if err := <-w.served; err != nil {
		t.Error(err)
	}
	if s.watched() != 0 {
		t.Error("a watch outlives its session")
	}
}

// TestWatchLimits: what one client may watch is bounded, and what ends makes room.
func TestWatchLimits(t *testing.T) {
	s := &shelf{}
	w := open(t, shelved(t, s))
	for i := range MaxWatches {
		w.ask(req(1, "resources/subscribe", `"uri":"test://w`+strconv.Itoa(i)+`"`), `"result":{}`)
	}
	w.ask(req(2, "resources/subscribe", `"uri":"test://wx"`), "limit.exceeded", "too many resources")
	w.ask(req(3, "resources/unsubscribe", `"uri":"test://w1"`), `"result":{}`)
	w.ask(req(4, "resources/subscribe", `"uri":"test://wx"`), `"result":{}`)
	many := `"` + strings.Repeat(`test://w","`, MaxWatches) + `"`
	w.ask(req(5, "subscriptions/listen", `"notifications":{"resourceSubscriptions":[`+many+`]},`+modernMeta), "too many resources")
	for i := range MaxListens {
		w.ask(req(100+i, "subscriptions/listen", `"notifications":{},`+modernMeta), "acknowledged")
	}
	w.ask(req(6, "subscriptions/listen", `"notifications":{},`+modernMeta), "limit.exceeded", "too many subscriptions")
	w.ask(call("7", "echo", `,"arguments":{"text":"still"}`), "still") // calls have their own places
	for i := range MaxListens {
		w.send(cancelled(strconv.Itoa(100 + i)))
	}
	if err := w.close(); err != nil || s.watched() != 0 {
		t.Error(err, s.watched())
	}
}

// TestFeed: at most one notification a resource within the interval, and what
// can't be sent is kept and tried again.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, done := newFeed(), make(chan struct{})
		a, b := f.add("a"), f.add("b")
		var mu sync.Mutex
		var sent []string
		deaf := true
		start := time.Now()
		go f.run(done, func(uri string, c Change) error {
			mu.Lock()
			defer mu.Unlock()
			if deaf {
				return context.Canceled
			}
			sent = append(sent, fmt.Sprintf("%s %d %v", uri, c, time.Since(start)))
			return nil
		}, func(string) bool { return false })
		f.note(a, WatchMissed)
		synctest.Wait()
		mu.Lock()
		deaf = false
		mu.Unlock()
		f.note(b, WatchUpdated)
		time.Sleep(resend + time.Millisecond)
		for range 30 {
			f.note(a, WatchUpdated)
			f.note(b, WatchUpdated)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		close(done)
		synctest.Wait()
		want := "b 0 0s|a 1 1s|b 0 1.001s|a 0 1.2s|b 0 1.201s|a 0 1.4s"
		if got := strings.Join(sent, "|"); !strings.HasPrefix(got, want) || len(sent) > 8 {
			t.Errorf("%s\nwant %s", got, want)
		}
	})
}

// TestOfficialClientResources: the official client lists, reads, and hears of
// changes, in both eras and over HTTP.
func TestOfficialClientResources(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := &shelf{}
			_, srv := httpServer(t, shelved(t, s))
			heard := make(chan string, 10)
			session := httpSDK(t, srv.URL, version, &mcp.ClientOptions{
				ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { heard <- r.Params.URI },
			})
			list, err := session.ListResources(t.Context(), nil)
			if err != nil || len(list.Resources) != 2 {
				t.Fatal(list, err)
			}
			read, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://text"})
			if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "hello" {
				t.Fatal(read, err)
			}
			if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://none"}); err == nil {
				t.Error("read what isn't there")
			}
			if version != "2025-11-25" {
				return // this client has no subscriptions/listen: see TestListenOverHTTP
			}
			if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://w"}); err != nil {
				t.Fatal(err)
			}
			s.change("test://w", WatchUpdated)
			if uri := <-heard; uri != "test://w" {
				t.Error(uri)
			}
			if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "test://w"}); err != nil {
				t.Fatal(err)
			}
			if s.watched() != 0 {
				t.Error("still watched")
			}
		})
	}
}

// TestListenOverHTTP: a subscription is a stream of events, which ends with the
// connection.
func TestListenOverHTTP(t *testing.T) {
	s := &shelf{}
	_, srv := httpServer(t, shelved(t, s))
	ctx, hangUp := context.WithCancel(t.Context())
	body := req(3, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["test://w"]},`+modernMeta)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		headerVersion: stateless, headerMethod: "subscriptions/listen",
	} {
		r.Header.Set(k, v)
	}
	resp, err := srv.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	data := func() string {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return text
			}
		}
		t.Fatal("the stream ended", lines.Err())
		return ""
	}
	if got := data(); !strings.Contains(got, "acknowledged") {
		t.Error(got)
	}
	s.change("test://w", WatchUpdated)
	if got := data(); !strings.Contains(got, `"io.modelcontextprotocol/subscriptionId":3},"uri":"test://w"`) {
		t.Error(got)
	}
	hangUp()
	for end := time.Now().Add(20 * time.Second); s.watched() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a watch outlives its stream")
		}
	}
	srv.Client().CloseIdleConnections()
}
