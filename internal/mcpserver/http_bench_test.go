// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A small call in each era, over one connection that is kept.
func BenchmarkHTTP(b *testing.B) {
	s := newServer(b, openGate())
	_, srv := httpServer(b, s)
	session := openSession(b, srv.URL, `{}`)
	for name, r := range map[string]*http.Request{
		"stateless": modern(b.Context(), b, srv.URL, "1", "echo", `,"arguments":{"text":"hi"}`),
		"session":   post(b.Context(), b, srv.URL, session, call("1", "echo", `,"arguments":{"text":"hi"}`)),
	} {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Body = io.NopCloser(bytes.NewReader(body))
				a, err := srv.Client().Do(r)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, a.Body); err != nil || a.StatusCode != http.StatusOK {
					b.Fatal(a.Status, err)
				}
				a.Body.Close()
			}
		})
	}
}

// The handler beside what net/http alone costs.
func BenchmarkHTTPBare(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil {
			_, _ = w.Write(body) // the client sees it
		}
	}))
	defer srv.Close()
	body := []byte(call("1", "echo", `,"arguments":{"text":"hi"}`))
	r := post(b.Context(), b, srv.URL, "", "")
	b.ReportAllocs()
	for b.Loop() {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		a, err := srv.Client().Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			b.Fatal(err)
		}
		a.Body.Close()
	}
}
