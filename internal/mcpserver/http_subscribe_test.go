// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

// In older revisions changes come on the stream of the session, also those from
// before it was opened; the end of the session ends the watch.
func TestSubscribeOverHTTP(t *testing.T) {
	s := &shelf{}
	_, srv := httpServer(t, shelved(t, s))
	session := openSession(t, srv.URL, `{}`)
	if _, body := answer(t, post(t.Context(), t, srv.URL, session, req(1, "resources/subscribe", `"uri":"test://w"`))); !strings.Contains(body, `"result":{}`) {
		t.Fatal(body)
	}
	s.change("test://w", WatchUpdated) // nobody listens yet
	listening := streaming(t, get(t.Context(), t, srv.URL, session))
	for range 2 {
		if got, _ := listening.next(); !strings.Contains(got, `"uri":"test://w"`) {
			t.Fatal(got)
		}
		s.change("test://w", WatchUpdated)
	}
	r := get(t.Context(), t, srv.URL, session)
	r.Method = http.MethodDelete
	if status, body := answer(t, r); status != http.StatusNoContent {
		t.Errorf("%d %s", status, body)
	}
	for end := time.Now().Add(20 * time.Second); s.watched() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a watch outlives its session")
		}
	}
}

// Clients of the stateless era share the places of subscriptions/listen: one too
// many is told so at once, and the end of one makes room.
func TestListensOverHTTPAreLimited(t *testing.T) {
	_, srv := httpServer(t, shelved(t, &shelf{}))
	listen := func(ctx context.Context) *http.Request {
		r := post(ctx, t, srv.URL, "", req(1, "subscriptions/listen", `"notifications":{"resourceSubscriptions":["test://w"]},`+modernMeta))
		r.Header.Set(headerVersion, stateless)
		r.Header.Set(headerMethod, "subscriptions/listen")
		return r
	}
	ctx, hangUp := context.WithCancel(t.Context())
	streaming(t, listen(ctx))
	for range MaxListens - 1 {
		streaming(t, listen(t.Context()))
	}
	status, body := answer(t, listen(t.Context()))
	if status != http.StatusOK || !strings.Contains(body, `"code":"limit.exceeded"`) || !strings.Contains(body, "of all clients together") {
		t.Errorf("%d %s", status, body)
	}
	hangUp()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		a, err := http.DefaultClient.Do(listen(t.Context())) //nolint:forbidigo // a test's own server
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.Header.Get("Content-Type") == "text/event-stream" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the place is never free")
		}
	}
}
