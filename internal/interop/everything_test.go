// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/mcpserver"
)

// everything is the server that the conformance suite expects, as far as
// mcpserver has such things: its tools and resources, and how often they were
// used.
type everything struct {
	mu      sync.Mutex
	calls   int
	refused []*fault.Error
}

func (e *everything) called() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}

// rules are the refusals so far.
func (e *everything) rules() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]string, len(e.refused))
	for i, f := range e.refused {
		all[i] = f.Rule
	}
	return all
}

func (e *everything) refuse(f *fault.Error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = append(e.refused, f)
}

// pixel is a PNG of one pixel.
const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
	"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// wave is the head of a WAV without samples.
const wave = "RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x80>\x00\x00\x02\x00\x10\x00data\x00\x00\x00\x00"

func says(text string) mcpserver.Content { return mcpserver.Own(textsafe.Block(text)) }

func image() mcpserver.Content {
	return mcpserver.Image(textsafe.Clean("image/png"), []byte(pixel))
}

func embedded(uri, text string) mcpserver.Content {
	return mcpserver.Blob(textsafe.Clean(uri), textsafe.Clean("text/plain"), []byte(text))
}

// answers are the tools that always say the same.
var answers = map[string][]mcpserver.Content{
	"test_simple_text":            {says("This is a simple text response for testing.")},
	"test_image_content":          {image()},
	"test_audio_content":          {mcpserver.Audio(textsafe.Clean("audio/wav"), []byte(wave))},
	"test_embedded_resource":      {embedded("test://embedded-resource", "This is an embedded resource content.")},
	"test_multiple_content_types": {says("Multiple content types test:"), image(), embedded("test://mixed-content-resource", `{"test":"data","value":123}`)},
	"json_schema_2020_12_tool":    {says("called")},
}

// schemas are those that the suite looks at.
var schemas = map[string]string{
	"json_schema_2020_12_tool": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
"additionalProperties":false}`,
}

func (e *everything) tools() []mcpserver.Tool {
	var tools []mcpserver.Tool
	add := func(name string, call func(context.Context, *mcpserver.Call) mcpserver.Result) {
		schema := schemas[name]
		if schema == "" {
			schema = `{"type":"object","properties":{}}`
		}
		tools = append(tools, mcpserver.Tool{
			Name: name, Description: "A fixture of the conformance suite.", InputSchema: json.RawMessage(strings.ReplaceAll(schema, "\n", "")),
			Class: core.ReadOnly, Hints: mcpserver.Hints{ReadOnly: true},
			Call: func(ctx context.Context, c *mcpserver.Call) mcpserver.Result {
				e.mu.Lock()
				e.calls++
				e.mu.Unlock()
				return call(ctx, c)
			},
		})
	}
	for name, content := range answers {
		add(name, func(context.Context, *mcpserver.Call) mcpserver.Result { return mcpserver.Result{Content: content} })
	}
	add("test_error_handling", func(context.Context, *mcpserver.Call) mcpserver.Result {
		return mcpserver.Result{Content: []mcpserver.Content{says("This tool intentionally returns an error for testing")}, IsError: true}
	})
	// The last two stand for calls that must neither ask nor log on their stream.
	for _, name := range []string{"test_tool_with_progress", "test_reconnection", "test_streaming_elicitation", "test_logging_tool"} {
		add(name, progress)
	}
	return tools
}

// progress reports three times; the first is above nothing, since what doesn't
// grow isn't sent.
func progress(ctx context.Context, c *mcpserver.Call) mcpserver.Result {
	for _, done := range []float64{1, 50, 100} {
		c.Progress(done, 100, textsafe.Clean("working"))
		select {
		case <-time.After(mcpserver.ProgressInterval + 10*time.Millisecond):
		case <-ctx.Done():
		}
	}
	return mcpserver.Result{Content: []mcpserver.Content{says("done")}}
}

// resources are the suite's. The watched one changes all the time.
func (e *everything) resources() *mcpserver.Resources {
	return &mcpserver.Resources{
		List: []mcpserver.Resource{
			{URI: "test://static-text", Name: "text", Description: "Text.", MIME: "text/plain"},
			{URI: "test://static-binary", Name: "binary", Description: "An image.", MIME: "image/png"},
			{URI: "test://watched-resource", Name: "watched", Description: "It changes.", MIME: "text/plain"},
		},
		Templates: []mcpserver.Template{{URITemplate: "test://template/{id}/data", Name: "template", Description: "By id.", MIME: "application/json"}},
		Read: func(_ context.Context, _ *mcpserver.Call, uri string) mcpserver.Result {
			switch id, isTemplate := strings.CutPrefix(uri, "test://template/"); {
			case isTemplate && strings.HasSuffix(id, "/data"):
				return mcpserver.Result{Content: []mcpserver.Content{says(`{"id":"` + strings.TrimSuffix(id, "/data") + `","templateTest":true}`)}}
			case uri == "test://static-text", uri == "test://watched-resource":
				return mcpserver.Result{Content: []mcpserver.Content{says("This is the content of the static text resource.")}}
			case uri == "test://static-binary":
				return mcpserver.Result{Content: []mcpserver.Content{image()}}
			}
			return mcpserver.Refusal(&fault.Error{Code: fault.PathMissing, Op: "fs.read", Resource: uri}, "")
		},
		Watch: func(_ context.Context, _ *mcpserver.Call, _ string, changed func(mcpserver.Change)) (func(), mcpserver.Result) {
			stop := make(chan struct{})
			go func() {
				for {
					select {
					case <-time.After(50 * time.Millisecond):
						changed(mcpserver.WatchUpdated)
					case <-stop:
						return
					}
				}
			}()
			return sync.OnceFunc(func() { close(stop) }), mcpserver.Result{}
		},
	}
}

const endpoint = "/mcp"

// serve serves the fixtures over HTTP and returns the base URL. The suite has no
// token to send, so one is put in before the guard, which is otherwise as in
// postern serve; without the guard only in negative controls.
func (e *everything) serve(t *testing.T, guarded bool) string {
	t.Helper()
	s, err := mcpserver.New(mcpserver.Config{Tools: e.tools(), Resources: e.resources(), Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	h := s.HTTP()
	srv := httptest.NewUnstartedServer(nil)
	address := netip.MustParseAddrPort(srv.Listener.Addr().String())
	handler := http.Handler(h)
	if guarded {
		handler = listen.Guard(h, listen.Rules{
			Hosts: listen.HostsOf(address), Origins: []string{"http://" + address.String(), "http://localhost:" + portOf(address)},
			Token: "suite", MaxBody: 1 << 20, Refused: e.refuse,
		})
	}
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer suite")
		}
		handler.ServeHTTP(w, r)
	})
	srv.Start()
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer stop()
		if !h.Close(ctx) {
			t.Error("calls are left")
		}
		srv.Close()
	})
	return "http://" + address.String()
}

func portOf(a netip.AddrPort) string {
	_, port, _ := strings.Cut(a.String(), ":")
	return port
}
