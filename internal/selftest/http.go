// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/postern-gate/postern/internal/listen"
)

// recorded is the answer of a handler that is called without a listener.
type recorded struct {
	status int
	head   http.Header
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.head }
func (r *recorded) WriteHeader(s int)   { r.status = s }
func (r *recorded) Flush()              {}

func (r *recorded) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(b)
}

// attempt is a request and what is wrong with it.
type attempt struct {
	what   string
	change func(*http.Request)
}

func attempts() []attempt {
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	return []attempt{
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }},
		{"a wrong token", header("Authorization", "Bearer wrong")},
		{"an empty token", header("Authorization", "Bearer ")},
		{"two tokens", func(r *http.Request) { r.Header.Add("Authorization", "Bearer x") }},
		{"a foreign Host", func(r *http.Request) { r.Host = "rebound.example" }},
		{"a Host without its port", func(r *http.Request) { r.Host = "127.0.0.1" }},
		{"a foreign Origin", header("Origin", "https://page.example")},
		{"an Origin like the Host", func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }},
		{"a hidden Origin", header("Origin", "null")},
		{"an Upgrade", func(r *http.Request) {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}},
	}
}

// httpGuard: nobody gets in over HTTP but who has the token and is no page.
func httpGuard(l *lab, t *trial) {
	const token = "selftest-token"
	handler := l.main.server.HTTP()
	defer handler.Close(l.ctx)
	open := listenHere
	if l.o.hooks.listener != nil {
		open = l.o.hooks.listener
	}
	address, end, err := open(l.ctx, handler, listen.Rules{Token: token, MaxBody: 1 << 20, Refused: handler.Refused})
	if !t.needs("a listener on the loopback interface", err) {
		return
	}
	defer end()
	all := attempts()
	t.about = fmt.Sprintf("%d requests that no client of ours sends, to a listener on the loopback interface", len(all))
	make := func() (*http.Request, error) {
		r, err := http.NewRequestWithContext(l.ctx, http.MethodPost, "http://"+address+"/mcp", strings.NewReader(hello))
		if err == nil {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return r, err
	}
	t.against("a request as it should be, which is answered", func() error { return nil }, func() error {
		return l.sent(make, func(*http.Request) {}, http.StatusOK)
	})
	for _, a := range all {
		t.against(a.what, func() error {
			r, err := make()
			if err != nil {
				return err
			}
			a.change(r)
			w := &recorded{head: http.Header{}}
			handler.ServeHTTP(w, r)
			if w.status != http.StatusOK {
				return fmt.Errorf("it is answered with %d", w.status)
			}
			return nil
		}, func() error { return l.sent(make, a.change, 0) })
	}
}

// sent sends a request; want 0 is any refusal.
func (l *lab) sent(make func() (*http.Request, error), change func(*http.Request), want int) error {
	r, err := make()
	if err != nil {
		return err
	}
	change(r)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: callTime}
	got, err := client.Do(r)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(got.Body, 1<<20)) // what matters is the status
	switch {
	case want == 0 && got.StatusCode < 400:
		return errors.New("it was answered")
	case want != 0 && got.StatusCode != want:
		return fmt.Errorf("it is answered with %d", got.StatusCode)
	}
	return nil
}

// listenHere opens a listener as serve --http does.
func listenHere(ctx context.Context, h http.Handler, rules listen.Rules) (string, func(), error) {
	s, err := listen.Open(ctx, netip.MustParseAddrPort("127.0.0.1:0"), false, nil)
	if err != nil {
		return "", nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(h, rules) // what is sent to it shows how it went
	}()
	return s.Address().String(), func() {
		brief, stop := context.WithTimeout(context.WithoutCancel(ctx), 200*time.Millisecond)
		defer stop()
		_ = s.Close(brief)
		<-ended
	}, nil
}
