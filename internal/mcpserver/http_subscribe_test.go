// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
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
