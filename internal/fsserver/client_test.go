// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// client is one connection: it sends calls and takes their answers.
type client struct {
	t   *testing.T
	pid int
	out io.Writer
	// hangUp ends the connection and waits for the server.
	hangUp func()

	mu    sync.Mutex
	n     int
	wait  map[int]chan json.RawMessage
	roots []string
	gone  bool
	// progress are the notifications that came.
	progress []string
	updates  []string
	writes   sync.Mutex
}

type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *rpcError       `json:"error"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func newClient(t *testing.T, in io.Reader, out io.Writer, roots []string) *client {
	t.Helper()
	c := &client{t: t, out: out, wait: map[int]chan json.RawMessage{}, roots: roots}
	go c.receive(in)
	capabilities := "{}"
	if roots != nil {
		capabilities = `{"roots":{"listChanged":true}}`
	}
	c.request("initialize", json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"t","version":"1"}}`))
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return c
}

func (c *client) receive(in io.Reader) {
	r := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var f frame
		if err := json.Unmarshal(line, &f); err != nil {
			c.t.Errorf("not a message: %.200q", line)
			continue
		}
		if f.Method == "roots/list" {
			go c.sendRoots(f.ID)
			continue
		}
		if f.Method == "notifications/resources/updated" {
			c.mu.Lock()
			c.updates = append(c.updates, string(line))
			c.mu.Unlock()
			continue
		}
		if f.Method == "notifications/progress" {
			c.mu.Lock()
			c.progress = append(c.progress, string(line))
			c.mu.Unlock()
			continue
		}
		n, _ := strconv.Atoi(string(f.ID))
		c.mu.Lock()
		ch := c.wait[n]
		delete(c.wait, n)
		c.mu.Unlock()
		if ch != nil {
			ch <- line
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for _, ch := range c.wait {
		close(ch)
	}
}

func (c *client) sendRoots(id json.RawMessage) {
	c.mu.Lock()
	list := make([]map[string]string, len(c.roots))
	for i, uri := range c.roots {
		list[i] = map[string]string{"uri": uri}
	}
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{"roots": list}})
}

// setRoots changes what the client reports and says so.
func (c *client) setRoots(uris ...string) {
	c.mu.Lock()
	c.roots = uris
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
}

func (c *client) send(message any) {
	b, err := json.Marshal(message)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.sendLine(b)
}

func (c *client) sendLine(b []byte) {
	c.writes.Lock()
	defer c.writes.Unlock()
	_, _ = c.out.Write(append(b, '\n')) // a server that is gone is noticed by the reader
}

// start sends a request and returns where its answer will come.
func (c *client) start(method string, params any) (int, chan json.RawMessage) {
	ch := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.n++
	id := c.n
	c.wait[id] = ch
	if c.gone {
		close(ch)
	}
	c.mu.Unlock()
	c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id, ch
}

// patience only catches a hang.
const patience = 2 * time.Minute

func (c *client) await(ch chan json.RawMessage) frame {
	c.t.Helper()
	select {
	case line, ok := <-ch:
		var f frame
		if !ok {
			c.t.Error("the connection ended without an answer")
		} else if err := json.Unmarshal(line, &f); err != nil {
			c.t.Error(err)
		}
		return f
	case <-time.After(patience):
		c.t.Error("no answer")
		return frame{}
	}
}

func (c *client) request(method string, params any) frame {
	c.t.Helper()
	_, ch := c.start(method, params)
	return c.await(ch)
}

type args map[string]any

// call calls a tool and returns its result; a protocol error fails the test.
func (c *client) call(tool string, a args) result {
	c.t.Helper()
	return c.result(c.request("tools/call", map[string]any{"name": tool, "arguments": a}))
}

func (c *client) startCall(tool string, a args) (int, chan json.RawMessage) {
	return c.start("tools/call", map[string]any{"name": tool, "arguments": a})
}

func (c *client) result(f frame) result {
	c.t.Helper()
	r := result{t: c.t}
	if f.Error != nil {
		c.t.Errorf("protocol error %d: %s", f.Error.Code, f.Error.Message)
		return r
	}
	if err := json.Unmarshal(f.Result, &r); err != nil {
		c.t.Error(err)
	}
	r.raw = string(f.Result)
	return r
}

// block is one content block.
type block struct {
	Type, Text, Data, MimeType string
	Resource                   struct{ URI, MimeType, Blob string }
}

type result struct {
	t          *testing.T
	raw        string
	Content    []block
	IsError    bool
	Structured json.RawMessage            `json:"structuredContent"`
	Meta       map[string]json.RawMessage `json:"_meta"`
}

// text is all text of the answer as a client joins it.
func (r result) text() string {
	var all []string
	for _, b := range r.Content {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// outcome is the object of _meta.
func (r result) outcome() map[string]any {
	var o map[string]any
	_ = json.Unmarshal(r.Meta["dev.postern/result"], &o)
	return o
}

func (r result) code() string {
	var e struct{ Code string }
	_ = json.Unmarshal(r.Meta["dev.postern/error"], &e)
	return e.Code
}

// envelope takes the one envelope of a block apart.
type envelope struct{ head, body string }

func open(text string) (e envelope, ok bool) {
	head, rest, ok := strings.Cut(text, ">\n")
	if !ok || !strings.HasPrefix(head, "<untrusted-") {
		return e, false
	}
	nonce, _, _ := strings.Cut(strings.TrimPrefix(head, "<"), " ")
	body, ok := strings.CutSuffix(rest, "\n</"+nonce+">")
	return envelope{head, body}, ok
}

func (e envelope) attribute(name string) string {
	_, rest, _ := strings.Cut(e.head, " "+name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// body is the text inside the envelope of the first block of a success.
func (r result) body() string {
	r.t.Helper()
	if r.IsError || len(r.Content) == 0 {
		r.t.Errorf("not a success: %.300s", r.raw)
		return ""
	}
	e, ok := open(r.Content[0].Text)
	if !ok {
		r.t.Errorf("no envelope: %.300q", r.Content[0].Text)
	}
	return e.body
}

func (r result) etag() string {
	if len(r.Content) == 0 {
		return ""
	}
	e, _ := open(r.Content[0].Text)
	return e.attribute("etag")
}

// ok demands a success.
func (r result) ok() result {
	r.t.Helper()
	if r.IsError || len(r.Content) == 0 {
		r.t.Errorf("refused: %.400s", r.raw)
	}
	return r
}

// refused demands a refusal with three lines and one of the codes, if any.
func (r result) refused(codes ...string) result {
	r.t.Helper()
	if !r.IsError || len(r.Content) == 0 {
		r.t.Errorf("not refused: %.400s", r.raw)
		return r
	}
	lines := strings.Split(r.Content[0].Text, "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "because: ") || !strings.HasPrefix(lines[2], "next: ") {
		r.t.Errorf("not the three lines: %q", r.Content[0].Text)
	}
	if r.Structured != nil {
		r.t.Error("a refusal has structuredContent")
	}
	for _, code := range codes {
		if r.code() == code {
			return r
		}
	}
	if len(codes) > 0 {
		r.t.Errorf("code %q, want one of %q: %.300s", r.code(), codes, r.raw)
	}
	return r
}

func (r result) has(parts ...string) result {
	r.t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.text(), part) {
			r.t.Errorf("%q is not in %.500q", part, r.text())
		}
	}
	return r
}

func (r result) lacks(parts ...string) result {
	r.t.Helper()
	for _, part := range parts {
		if strings.Contains(r.raw, part) {
			r.t.Errorf("%q is in %.500s", part, r.raw)
		}
	}
	return r
}
