// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/listen"
)

// TestAttendance: while a tab is open somebody is there to answer, and it hears
// of what is new; after it nobody is.
func TestAttendance(t *testing.T) {
	d := newDesk(t)
	d.page.here.grace = time.Millisecond
	d.login()
	l, err := listen.Open(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	rules := d.page.Rules(l.Address())
	go func() { served <- l.Serve(d.page.Handler(), rules) }()
	defer func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer stop()
		if err := errors.Join(d.page.Close(), l.Close(ctx), <-served); err != nil {
			t.Error(err)
		}
	}()
	if d.store.Attended(t.Context()) {
		t.Error("somebody is there already")
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.Address().String()+d.page.base+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: d.page.cookie(), Value: d.cookie})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	a, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	lines := bufio.NewScanner(a.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "retry") || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(lines.Text(), a.Header)
	}
	if !d.store.Attended(t.Context()) {
		t.Error("nobody is there")
	}
	d.ask("project://x", "mutating")
	for lines.Scan() && lines.Text() != "data: new" {
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	leave()
	for late := time.Now().Add(30 * time.Second); d.store.Attended(t.Context()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal("somebody is still there")
		}
	}
}

// TestTabs: one tab too many hears nothing, and none after the end.
func TestTabs(t *testing.T) {
	came, left := 0, 0
	a := &attendance{grace: time.Hour, attend: func() (leaver, error) { came++; return leaves(func() { left++ }), nil }}
	for range maxTabs {
		if !a.come() {
			t.Fatal("a tab is refused")
		}
	}
	if a.come() {
		t.Error("one too many")
	}
	for range maxTabs {
		a.out()
	}
	if !a.come() || came != 1 || left != 0 { // between two views
		t.Error(came, left)
	}
	a.out()
	if err := a.end(); err != nil || left != 1 || a.come() {
		t.Error(left, err)
	}
}

type leaves func()

func (l leaves) Leave() error { l(); return nil }
