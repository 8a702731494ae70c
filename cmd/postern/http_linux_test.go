// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// httpProcess is postern serve --http as a process of its own.
type httpProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	url   string
	token string
	ended chan error
	err   *said
}

// startHTTP starts it over dir, whose state is beneath home, and waits for the
// endpoint.
func startHTTP(t *testing.T, home, dir string, flags ...string) *httpProcess {
	t.Helper()
	p := &httpProcess{t: t, ended: make(chan error, 1), err: new(said)}
	p.cmd = exec.Command(os.Args[0], append(append([]string{"serve", "--json"}, flags...), dir)...)
	p.cmd.Env = append(os.Environ(), asPostern+"=1", "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "POSTERN_STATE=")
	p.cmd.Stderr = p.err
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var endpoint struct {
		URL       string `json:"url"`
		TokenFile string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&endpoint); err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("%v: %s", err, p.err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, out) // nothing more is said there
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(p.end)
	data, err := os.ReadFile(endpoint.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Token string }
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	p.url, p.token = endpoint.URL, kept.Token
	return p
}

// end interrupts it; it must end well.
func (p *httpProcess) end() {
	p.t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("%v: %s", err, p.err)
		}
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		p.t.Error("it does not end")
	}
}

// bearer sends the token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r) //nolint:forbidigo // a test's own server
}

func (p *httpProcess) connect(version string) *mcp.ClientSession {
	p.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	session, err := client.Connect(p.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: p.url, HTTPClient: &http.Client{Transport: bearer(p.token)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		p.t.Fatal(err)
	}
	return session
}

// The official client works with files over HTTP in both eras, at once; the
// policy and the log are those of stdio.
func TestServeHTTP(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("KEY=value"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startHTTP(t, home, dir, "--http", "auto", "--agent", "tester")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		session := p.connect(version)
		call := func(tool string, arguments map[string]any) *mcp.CallToolResult {
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		name := filepath.Join(dir, version)
		if r := call("write_file", map[string]any{"path": name, "content": "over HTTP"}); r.IsError {
			t.Errorf("%+v", r.Content[0])
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != "over HTTP" {
			t.Errorf("%q %v", got, err)
		}
		if r := call("read_text_file", map[string]any{"path": filepath.Join(dir, ".env")}); !r.IsError {
			t.Errorf("a secret was read: %+v", r.Content[0])
		}
		if r := call("read_text_file", map[string]any{"path": "/etc/hostname"}); !r.IsError {
			t.Errorf("it was read: %+v", r.Content[0])
		}
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	p.end()
	log := exec.Command(os.Args[0], "log", "--json")
	log.Env = p.cmd.Env
	out, err := log.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"source":"serve-http"`, `"agent":"tester"`, `"decision":"deny"`, `"level":"sdk"`} {
		if !strings.Contains(strings.ReplaceAll(string(out), `": "`, `":"`), want) {
			t.Errorf("the log has no %s: %.600s", want, out)
		}
	}
}

// What a web page or another program can send reaches no tool, and is recorded.
func TestServeHTTPRefuses(t *testing.T) {
	home := t.TempDir()
	p := startHTTP(t, home, t.TempDir(), "--http", "auto")
	address := strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/mcp")
	ping := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	request := func(path, host, headers string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nAccept: */*\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
			path, host, headers, len(ping), ping)
	}
	token := "Authorization: Bearer " + p.token + "\r\n"
	for name, tt := range map[string]struct {
		text string
		want string
	}{
		"control":      {request("/mcp", address, token), "200"},
		"rebinding":    {request("/mcp", "evil.example"+address[strings.LastIndexByte(address, ':'):], token), "403"},
		"cross-origin": {request("/mcp", address, token+"Origin: https://evil.example\r\n"), "403"},
		"no token":     {request("/mcp", address, ""), "401"},
		"upgrade":      {request("/mcp", address, token+"Upgrade: websocket\r\n"), "400"},
		"another path": {request("/", address, token), "404"},
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, werr := io.WriteString(c, tt.text)
		got, err := io.ReadAll(c)
		c.Close()
		if err := errors.Join(werr, err); err != nil {
			t.Fatal(name, err)
		}
		if !bytes.HasPrefix(got, []byte("HTTP/1.1 "+tt.want+" ")) {
			t.Errorf("%s: %.300q", name, got)
		}
		if bytes.Contains(got, []byte("Access-Control")) || !bytes.Contains(got, []byte("Cache-Control: no-store")) {
			t.Errorf("%s: %.300q", name, got)
		}
	}
	p.end()
	log := exec.Command(os.Args[0], "log", "--json")
	log.Env = p.cmd.Env
	out, err := log.Output()
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[string]int{"http.token": 1, "http.host": 1, "http.origin": 1, "request.invalid": 2} {
		if n := bytes.Count(out, []byte(`"code":"`+code+`"`)); n != want {
			t.Errorf("%s is recorded %d times: %s", code, n, out)
		}
	}
}

// A port that another program has is said, and the token is not sent there: the
// next server with another port has another token.
func TestServeHTTPPortTaken(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	p := startHTTP(t, home, dir, "--http", "auto")
	address, token := strings.TrimSuffix(strings.TrimPrefix(p.url, "http://"), "/mcp"), p.token
	p.end()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	again := exec.CommandContext(ctx, os.Args[0], "serve", "--http", "auto", dir)
	again.Env = p.cmd.Env
	out, err := again.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte("another program has the port")) || !bytes.Contains(out, []byte("next: ")) {
		t.Errorf("%v: %s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := free.Addr().String()
	free.Close()
	moved := startHTTP(t, home, dir, "--http", other)
	if moved.url != "http://"+other+"/mcp" || moved.token == token {
		t.Errorf("%s, the same token: %t", moved.url, moved.token == token)
	}
}
