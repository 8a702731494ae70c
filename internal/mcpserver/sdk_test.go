// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// sdkClient connects the official client over pipes; the revision decides the
// era.
func sdkClient(t *testing.T, s *Server, version string, opts *mcp.ClientOptions, roots ...*mcp.Root) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	ctx := context.WithoutCancel(t.Context()) // the session ends in the cleanup
	go func() { served <- s.ServeStdio(ctx, inR, outW); outW.Close() }()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1.8.0"}, opts)
	client.AddRoots(roots...)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		session.Close()
		inW.Close()
		if err := <-served; err != nil {
			t.Errorf("served: %v", err)
		}
	})
	return session
}

func textOf(t *testing.T, r *mcp.CallToolResult) string {
	t.Helper()
	c, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("%T", r.Content[0])
	}
	return c.Text
}

// The official client in both eras: it lists, calls, reads every kind of
// content, a refusal, an unknown tool, and a bug.
func TestOfficialClient(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			session := sdkClient(t, newServer(t, newGate()), version, nil)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("agreed on %s", got)
			}
			list, err := session.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 8 || list.Tools[0].Name != "echo" || !list.Tools[0].Annotations.ReadOnlyHint {
				t.Fatal(list, err)
			}
			if class := list.Tools[3].Meta["dev.postern/safety_class"]; class != "mutating" {
				t.Errorf("class %v", class)
			}
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "<&>\u2028 \"é\" 😀"}})
			if err != nil || textOf(t, r) != "<&>  \"é\" 😀" {
				t.Errorf("%+v %v", r, err)
			}
			r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"})
			if err != nil || !r.IsError || r.Meta["dev.postern/error"] == nil {
				t.Errorf("%+v %v", r, err)
			}
			r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "mixed"})
			if err != nil || len(r.Content) != 5 {
				t.Errorf("%+v %v", r, err)
			}
			for _, name := range []string{"nope", "panic"} {
				if _, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: name}); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
		})
	}
}

func TestOfficialClientCancels(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			g := newGate()
			session := sdkClient(t, newServer(t, g), version, nil)
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

func TestOfficialClientGetsProgress(t *testing.T) {
	got := make(chan *mcp.ProgressNotificationParams, 1)
	session := sdkClient(t, newServer(t, newGate()), "2025-11-25", &mcp.ClientOptions{
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
}

func TestOfficialClientReportsRoots(t *testing.T) {
	session := sdkClient(t, newServer(t, newGate()), "2025-11-25", nil, &mcp.Root{URI: "file:///a%20b", Name: "A"})
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "roots"})
	if err != nil || textOf(t, r) != "2 file:///a%20b" {
		t.Errorf("%+v %v", r, err)
	}
}
