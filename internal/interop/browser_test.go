// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/testenv"
)

//go:embed testdata/browser/attack.html
var attackPage []byte

const leaked = "the-token"

// page serves the attack, which calls a tool with a token, and takes its report.
type page struct {
	token, tool string
	reports     chan map[string]string
}

func newPage() *page { return &page{leaked, "test_simple_text", make(chan map[string]string, 1)} }

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/attack":
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(attackPage)
	case "/report":
		var results map[string]string
		if json.NewDecoder(r.Body).Decode(&results) == nil {
			p.reports <- results
		}
	default:
		http.NotFound(w, r)
	}
}

// visit opens the attack in a headless browser, at an origin whose name the
// browser takes for this machine's, and returns what came of it.
func (p *page) visit(t *testing.T, origin, target string) map[string]string {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		testenv.Missing(t, "chromium")
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	query := url.Values{"target": {target}, "token": {p.token}, "tool": {p.tool}}
	cmd := exec.CommandContext(ctx, browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-background-networking", "--user-data-dir="+t.TempDir(),
		"--host-resolver-rules=MAP evil.test 127.0.0.1", "--remote-debugging-port=0", origin+"/attack?"+query.Encode())
	cmd.WaitDelay = 10 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = cmd.Wait() // it was killed
	}()
	select {
	case results := <-p.reports:
		return results
	case <-ctx.Done():
		t.Fatalf("no report\n%s", stderr.String())
		return nil
	}
}

// victim is a server as postern serve --http has it, or without its guard; own
// is answered before the guard, as if the browser had been sent elsewhere for
// it. reached counts the requests that get to the handler of MCP.
func victim(t *testing.T, e *everything, guarded bool, own http.Handler) (address netip.AddrPort, reached *atomic.Int64) {
	t.Helper()
	s, err := mcpserver.New(mcpserver.Config{Tools: e.tools(), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	h := s.HTTP()
	reached = new(atomic.Int64)
	srv := httptest.NewUnstartedServer(nil)
	address = netip.MustParseAddrPort(srv.Listener.Addr().String())
	mcp := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		h.ServeHTTP(w, r)
	}))
	if guarded {
		mcp = listen.Guard(mcp, listen.Rules{Hosts: listen.HostsOf(address), Token: leaked, MaxBody: 1 << 20, Refused: e.refuse})
	}
	mux := http.NewServeMux()
	mux.Handle(endpoint, mcp)
	mux.Handle("/", own)
	srv.Config.Handler = mux
	srv.Start()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer stop()
		h.Close(ctx)
		srv.CloseClientConnections()
		srv.Close()
	})
	return address, reached
}

// TestCrossOrigin: a page of another origin reaches nothing, whatever it sends
// and though it has the token. Without the guard it reaches the handler.
func TestCrossOrigin(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		p, e := newPage(), new(everything)
		elsewhere := httptest.NewServer(p)
		defer elsewhere.Close()
		address, reached := victim(t, e, guarded, http.NotFoundHandler())
		results := p.visit(t, elsewhere.URL, "http://"+address.String()+endpoint)
		t.Log(guarded, results)
		unread(t, results)
		if !guarded {
			if reached.Load() == 0 {
				t.Error("control: nothing was reached without the guard either")
			}
			continue
		}
		if n := reached.Load(); n != 0 || e.called() != 0 {
			t.Errorf("%d requests reached the handler, %d calls ran", n, e.called())
		}
		refusedFor(t, e, "the Origin is not listed", "the request is not authorized")
	}
}

// TestRebinding: a page whose own name leads to this machine by now is of the
// same origin as the server, as far as the browser is concerned. It reaches
// nothing, with the token too. Without the guard it runs a tool.
func TestRebinding(t *testing.T) {
	for _, guarded := range []bool{true, false} {
		p, e := newPage(), new(everything)
		address, reached := victim(t, e, guarded, p)
		origin := "http://evil.test:" + portOf(address)
		results := p.visit(t, origin, origin+endpoint)
		t.Log(guarded, results)
		const best = "JSON POST with the token"
		if !guarded {
			if e.called() == 0 || !strings.HasPrefix(results[best], "200 ") {
				t.Errorf("control: no tool ran without the guard either: %q", results[best])
			}
			continue
		}
		if n := reached.Load(); n != 0 || e.called() != 0 {
			t.Errorf("%d requests reached the handler, %d calls ran", n, e.called())
		}
		if !strings.HasPrefix(results[best], "403 ") {
			t.Errorf("%s: %q", best, results[best])
		}
		refusedFor(t, e, "the Host is not one of this server")
	}
}

// unread demands that the page could read no answer.
func unread(t *testing.T, results map[string]string) {
	t.Helper()
	if len(results) < 10 {
		t.Errorf("the page did not try everything: %v", results)
	}
	for what, result := range results {
		if result != "failed" && result != "sent" && (what != "form" || result != "loaded") {
			t.Errorf("%s: %s", what, result)
		}
	}
}

func refusedFor(t *testing.T, e *everything, rules ...string) {
	t.Helper()
	for _, rule := range rules {
		if !slices.Contains(e.rules(), rule) {
			t.Errorf("no refusal for %q among %q", rule, e.rules())
		}
	}
}
