// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// statuses are all that the transport answers with.
var statuses = []int{200, 202, 204, 400, 404, 405, 406, 409, 413, 415, 503}

// FuzzHTTP sends any method, headers and body. The answer has a known status and
// is one JSON object, a stream of such, or empty; a call is answered only where
// the headers say what the body says.
func FuzzHTTP(f *testing.F) {
	f.Add("POST", "2026-07-28", "tools/call", "echo", "", "application/json", "*/*", call("1", "echo", `,"arguments":{"text":"hi"},`+statelessMeta))
	f.Add("POST", "2026-07-28", "tools/call", "=?base64?ZWNobw==?=", "x", "application/json", "application/json, text/event-stream", call("1", "echo", ","+statelessMeta))
	f.Add("POST", "2025-11-25", "", "", "00", "application/json;charset=utf-8", "*/*;q=0.1", pingFrame)
	f.Add("POST", "", "", "", "", "application/json", "*/*", opening)
	f.Add("GET", "", "", "", "1", "", "text/event-stream", "")
	f.Add("DELETE", "", "", "", "SESSION", "", "", "")
	f.Add("POST", "", "", "", "SESSION", "application/json", "*/*", call("1", "count", `,"_meta":{"progressToken":1}`))
	f.Fuzz(func(t *testing.T, method, version, rpc, name, session, kind, accept, body string) {
		h := newServer(t, openGate()).HTTP()
		defer h.Close(t.Context())
		opened := httptest.NewRecorder()
		h.ServeHTTP(opened, post(t.Context(), t, "http://x/", "", opening))
		if session == "SESSION" {
			session = opened.Header().Get(headerSession)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Method = method
		for key, value := range map[string]string{
			headerVersion: version, headerMethod: rpc, headerName: name, headerSession: session, "Content-Type": kind, "Accept": accept,
		} {
			if value != "" {
				r.Header[key] = []string{value}
			}
		}
		if method == http.MethodGet && session == opened.Header().Get(headerSession) {
			return // it would wait for events
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		checkAnswer(t, w)
		if version == stateless && w.Code == http.StatusOK && strings.Contains(w.Body.String(), `"content":[`) && rpc != "tools/call" {
			t.Errorf("a call under the method %q: %s", rpc, w.Body)
		}
	})
}

func checkAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if !slices.Contains(statuses, w.Code) {
		t.Errorf("status %d", w.Code)
	}
	switch kind := w.Header().Get("Content-Type"); kind {
	case "":
		if w.Body.Len() > 0 {
			t.Errorf("%q", w.Body)
		}
	case "application/json":
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%q", w.Body)
		}
	case "text/event-stream":
		for line := range strings.Lines(w.Body.String()) {
			line = strings.TrimSuffix(line, "\n")
			if data, ok := strings.CutPrefix(line, "data: "); ok && json.Valid([]byte(data)) || line == "" || line == ":" || line == "event: message" {
				continue
			}
			t.Errorf("%q", line)
		}
	default:
		t.Errorf("type %q", kind)
	}
}
