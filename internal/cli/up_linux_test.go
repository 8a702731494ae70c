// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

func (p *place) await(what string, holds func() bool) {
	p.Helper()
	for over := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(over) {
			p.Fatal("waited in vain for " + what)
		}
	}
}

// up is postern up over the folder, in this process, which a test's program
// isn't installed for.
func (p *place) up(out io.Writer, args ...string) (end func()) {
	p.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(p.Context()))
	ended := make(chan int, 1)
	env := p.env(strings.NewReader(""), out)
	go func() { ended <- run(ctx, append([]string{"up"}, args...), env) }()
	return func() {
		p.Helper()
		cancel()
		select {
		case code := <-ended:
			if code != fault.ExitOK {
				p.Errorf("up: exit %d", code)
			}
		case <-time.After(30 * time.Second):
			p.Fatal("up does not end")
		}
	}
}

// TestUp: entries, then the endpoint, then what other processes record, an
// intent only by its outcome; it ends well and leaves the folder as it was.
func TestUp(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a", ".env": "S=1"})
	var out said
	end := p.up(&out, ".")
	p.await("the endpoint", func() bool { return strings.Contains(out.String(), "/mcp\n") })
	text := out.String()
	for _, want := range []string{
		"install it first: go install ", filepath.Join(p.home, "go/bin/postern"), "Claude Code, in a shell:\n  claude mcp add ",
		"Claude Desktop, in ", "Cursor, in ", "VS Code, in ", "Codex, in ", "Gemini CLI, in ", "--agent gemini-cli",
	} {
		if !strings.Contains(strings.ReplaceAll(text, `"--agent", "gemini-cli"`, "--agent gemini-cli"), want) {
			t.Errorf("it says no %q:\n%s", want, text)
		}
	}
	s := p.serve("--agent", "codex", ".")
	id := s.ask("tools/call", map[string]any{"name": "read_text_file", "arguments": read(".env")}).Meta.Error.ID
	if code := s.call("write_file", write("a.txt")); code != fault.OK.String() {
		t.Error(code)
	}
	p.await("both", func() bool {
		return strings.Contains(out.String(), " id="+id+"\n") && strings.Contains(out.String(), " outcome  fs.write  project://a.txt\n")
	})
	if strings.Contains(out.String(), " intent ") {
		t.Errorf("an intent is shown:\n%s", &out)
	}
	end()
	var again said
	end = p.up(&again, ".") // the endpoint is free
	p.await("the endpoint", func() bool { return strings.Contains(again.String(), "/mcp\n") })
	end()
	names, err := os.ReadDir(p.dir)
	if err != nil || len(names) != 2 {
		t.Errorf("%v %v", names, err)
	}
}

// TestUpBlocked: nobody reads what it shows, and the server answers all the same
// and ends.
func TestUpBlocked(t *testing.T) {
	p := newPlace(t, map[string]string{"a.txt": "a"})
	r, w := io.Pipe()
	end := p.up(w, "--json", "--read-only", ".")
	var first upJSON
	p.must(json.NewDecoder(r).Decode(&first)) // and nothing after it
	if first.Schema != "postern/up" || len(first.Entries) != len(common()) || first.Installed || first.Exposed {
		t.Errorf("%+v", first)
	}
	if e := first.Entries[0]; e.Client != "claude-code" || !strings.Contains(e.Shell, "--agent claude-code --read-only "+p.dir) {
		t.Errorf("%+v", e)
	}
	kept, err := os.ReadFile(first.TokenFile)
	p.must(err)
	var held struct{ Token string }
	p.must(json.Unmarshal(kept, &held))
	for range 40 {
		body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL, strings.NewReader(body))
		p.must(err)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		q.Header.Set("Authorization", "Bearer wrong")      // which is recorded
		refused, err := http.DefaultTransport.RoundTrip(q) //nolint:forbidigo // a test's own server
		p.must(err)
		p.must(refused.Body.Close())
		q.Body = io.NopCloser(strings.NewReader(body))
		q.Header.Set("Authorization", "Bearer "+held.Token)
		answer, err := http.DefaultTransport.RoundTrip(q) //nolint:forbidigo // a test's own server
		p.must(err)
		p.must(errors.Join(answer.Body.Close()))
		if answer.StatusCode != http.StatusOK || refused.StatusCode != http.StatusUnauthorized {
			t.Fatal(answer.Status, refused.Status)
		}
	}
	for part := []byte("\n"); part[0] == '\n'; { // the rest of a line waits from here on
		_, err := r.Read(part)
		p.must(err)
	}
	end()
}

// TestUpAgent: who calls on HTTP is recorded by the name that up was given.
func TestUpAgent(t *testing.T) {
	p := newPlace(t, map[string]string{".env": "S=1"})
	var out said
	end := p.up(&out, "--json", "--agent", "mine", ".")
	p.await("the endpoint", func() bool { return strings.Contains(out.String(), "\n") })
	line, _, _ := strings.Cut(out.String(), "\n")
	var first upJSON
	p.must(json.Unmarshal([]byte(line), &first))
	kept, err := os.ReadFile(first.TokenFile)
	p.must(err)
	var held struct{ Token string }
	p.must(json.Unmarshal(kept, &held))
	session := ""
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read_text_file","arguments":{"path":".env"}}}`,
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL, strings.NewReader(body))
		p.must(err)
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Authorization": "Bearer " + held.Token, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25",
		} {
			if value != "" {
				q.Header.Set(name, value)
			}
		}
		answer, err := http.DefaultTransport.RoundTrip(q) //nolint:forbidigo // a test's own server
		p.must(err)
		_, err = io.Copy(io.Discard, answer.Body)
		p.must(errors.Join(err, answer.Body.Close()))
		if answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status)
		}
		session = answer.Header.Get("Mcp-Session-Id")
	}
	p.await("the refusal", func() bool {
		return strings.Contains(out.String(), `"refusal"`) && strings.Contains(out.String(), `"agent":"mine"`)
	})
	end()
}
