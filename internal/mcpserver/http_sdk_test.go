// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpServer serves s over HTTP until the test ends; nothing may be left then.
func httpServer(t testing.TB, s *Server) (*HTTP, *httptest.Server) {
	t.Helper()
	return started(t, s.HTTP(), nil)
}

// started serves h; each connection passes opened first.
func started(t testing.TB, h *HTTP, opened func(net.Conn, http.ConnState)) (*HTTP, *httptest.Server) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ConnState = opened
	srv.Start()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer stop()
		if !h.Close(ctx) {
			t.Error("calls are left")
		}
		srv.Close()
	})
	return h, srv
}

// httpSDK connects the official client over HTTP.
func httpSDK(t *testing.T, url, version string, opts *mcp.ClientOptions, roots ...*mcp.Root) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1.8.0"}, opts)
	client.AddRoots(roots...)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// The official client in every revision that has this transport: it lists, calls,
// reads every kind of content, a refusal, an unknown tool, and a bug.
func TestOfficialClientOverHTTP(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			_, srv := httpServer(t, newServer(t, newGate()))
			session := httpSDK(t, srv.URL, version, nil)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("agreed on %s", got)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 8 {
				t.Fatal(list, err)
			}
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "<&>\u2028 \"é\" 😀"}})
			if err != nil || textOf(t, r) != "<&>  \"é\" 😀" {
				t.Errorf("%+v %v", r, err)
			}
			r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"})
			if err != nil || !r.IsError || r.Meta["dev.postern/error"] == nil {
				t.Errorf("%+v %v", r, err)
			}
			if r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mixed"}); err != nil || len(r.Content) != 5 {
				t.Errorf("%+v %v", r, err)
			}
			for _, name := range []string{"nope", "panic"} {
				if _, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Errorf("after the errors: %v", err)
			}
		})
	}
}

func TestOfficialClientCancelsOverHTTP(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			g := newGate()
			_, srv := httpServer(t, newServer(t, g))
			session := httpSDK(t, srv.URL, version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-g.started
				cancel()
			}()
			if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "gate"}); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if err := <-g.ended; !errors.Is(err, context.Canceled) {
				t.Errorf("the tool ended with %v", err)
			}
		})
	}
}

func TestOfficialClientGetsProgressOverHTTP(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			_, srv := httpServer(t, newServer(t, newGate()))
			got := make(chan *mcp.ProgressNotificationParams, 1)
			session := httpSDK(t, srv.URL, version, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { got <- r.Params },
			})
			params := &mcp.CallToolParams{Name: "count"}
			params.SetProgressToken("tok")
			if _, err := session.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			if p := <-got; p.ProgressToken != "tok" || p.Progress != 1 || p.Total != 2 || p.Message != "half way" {
				t.Errorf("%+v", p)
			}
		})
	}
}

// The question for the roots travels on the stream of the call that needs them.
func TestOfficialClientReportsRootsOverHTTP(t *testing.T) {
	_, srv := httpServer(t, newServer(t, newGate()))
	session := httpSDK(t, srv.URL, "2025-11-25", nil, &mcp.Root{URI: "file:///a%20b", Name: "A"})
	for range 2 {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "roots"})
		if err != nil || textOf(t, r) != "2 file:///a%20b" {
			t.Errorf("%+v %v", r, err)
		}
	}
}
