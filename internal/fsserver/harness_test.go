// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/testenv"
)

// setup is what a server of a test is made of. It travels as JSON to servers
// that are processes of their own.
type setup struct {
	Roots    []string // name=path[=alias]
	State    string
	Rules    map[string]string // action → decision, over the shipped default
	IfMatch  []string
	Deny     []string
	Bare     bool
	ReadOnly bool
	UID      int
	CallTime time.Duration
	Off      []string
}

const childEnv = "POSTERN_TEST_SERVER"

// TestMain serves on stdio where a test starts its own program as a server.
func TestMain(m *testing.M) {
	var err error
	switch spec, pair := os.Getenv(childEnv), os.Getenv(swapEnv); {
	case spec != "":
		err = serveChild(spec)
	case pair != "":
		err = swapForever(pair)
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveChild(spec string) error {
	var s setup
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		return err
	}
	if s.UID != 0 {
		if err := become(s.UID); err != nil {
			return err
		}
	}
	o, closer, err := s.options()
	if err != nil {
		return err
	}
	defer closer()
	srv, err := New(o)
	if err != nil {
		return err
	}
	return srv.ServeStdio(context.Background(), os.Stdin, os.Stdout)
}

func become(uid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(uid); err != nil {
		return err
	}
	return syscall.Setuid(uid)
}

// options opens the roots and the state, and compiles the policy.
func (s setup) options() (Options, func(), error) {
	var o Options
	state, err := enforce.OpenState(s.State)
	if err != nil {
		return o, nil, err
	}
	var roots []*pathguard.Root
	var named []policy.Root
	for _, spec := range s.Roots {
		part := strings.Split(spec+"=", "=")
		r, err := pathguard.OpenRoot(part[1], pathguard.Options{Name: part[0], Alias: part[2], Forbidden: []string{state.Path()}})
		if err != nil {
			return o, nil, err
		}
		roots, named = append(roots, r), append(named, policy.Root{Name: part[0], Alias: part[2]})
	}
	ws, err := pathguard.NewWorkspace(roots...)
	if err == nil {
		err = ws.Protect(state.Path())
	}
	if err != nil {
		return o, nil, err
	}
	p, err := s.policy(named)
	if err != nil {
		return o, nil, err
	}
	o = Options{
		Gate: enforce.Options{
			Workspace: ws, Decider: p, Recorder: state, Locker: state,
			Subject: core.Subject{Agent: "test", Source: "serve", Level: core.LevelSDK}, PolicyFile: "policy.yaml",
		},
		Bare: s.Bare, ReadOnly: s.ReadOnly, Off: s.Off, CallTime: s.CallTime, Version: "test",
	}
	return o, func() {
		for _, r := range roots {
			_ = r.Close()
		}
		_ = state.Close()
	}, nil
}

func (s setup) policy(roots []policy.Root) (*policy.Policy, error) {
	l := policy.Default()
	for name, decision := range s.Rules {
		a, _ := core.ParseAction(name)
		d, _ := core.ParseDecision(decision)
		l.Rules[a] = policy.Rules{Else: &policy.Outcome{Decision: d}}
	}
	for _, name := range s.IfMatch {
		a, _ := core.ParseAction(name)
		l.IfMatch = append(l.IfMatch, a)
	}
	for _, text := range s.Deny {
		l.Deny = append(l.Deny, policy.Pattern{Text: text})
	}
	return policy.Compile(policy.Config{Roots: roots, Layers: []policy.Layer{l}})
}

// world is a box with a root R and a folder O beside it, and a client of the
// server that guards R.
type world struct {
	*testing.T
	box, root, outside string
	setup              setup
	*client
}

// newWorld makes the box and starts the server. change may alter the setup
// before that; files go into the root as path → content.
func newWorld(t *testing.T, files map[string]string, change ...func(*world)) *world {
	t.Helper()
	w := &world{T: t}
	var err error
	w.box, err = filepath.EvalSymlinks(t.TempDir())
	w.must(err)
	t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", w.box).Run() })
	for _, dir := range []string{w.box, filepath.Dir(w.box)} {
		w.must(os.Chmod(dir, 0o755)) // servers of other users get there
	}
	w.root, w.outside = filepath.Join(w.box, "root"), filepath.Join(w.box, "outside")
	w.must(os.Mkdir(w.root, 0o755))
	w.must(os.Mkdir(w.outside, 0o755))
	for name, content := range files {
		w.put(w.at(name), content)
	}
	w.setup = setup{Roots: []string{"project=" + w.root}, State: filepath.Join(w.box, "state")}
	for _, f := range change {
		f(w)
	}
	if w.client == nil {
		w.client = w.serve(w.setup, nil)
	}
	return w
}

// later makes newWorld start no server, since the test does.
func later(w *world) { w.client = &client{} }

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) at(name string) string { return filepath.Join(w.root, name) }

func (w *world) put(path, content string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(content), 0o644))
}

func (w *world) link(target, name string) {
	w.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.at(name)), 0o755))
	w.must(os.Symlink(target, w.at(name)))
}

func (w *world) is(path, content string) {
	w.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		w.Errorf("%s holds %.80q (%v), want %.80q", path, got, err, content)
	}
}

func (w *world) absent(path string) {
	w.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		w.Errorf("%s exists (%v)", path, err)
	}
}

// names are the entries of a directory.
func (w *world) names(dir string) []string {
	w.Helper()
	entries, err := os.ReadDir(dir)
	w.must(err)
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.Name()
	}
	return all
}

// serve starts a server in this process and connects to it. roots are what the
// client reports, nil for a client without.
func (w *world) serve(s setup, roots []string) *client {
	w.Helper()
	o, closer, err := s.options()
	w.must(err)
	w.Cleanup(closer)
	srv, err := New(o)
	w.must(err)
	return connect(w.T, srv, roots)
}

func connect(t *testing.T, srv *mcpserver.Server, roots []string) *client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- srv.ServeStdio(context.Background(), in, out)
		_ = out.Close()
	}()
	c := newClient(t, fromServer, toServer, roots)
	c.hangUp = sync.OnceFunc(func() {
		_ = toServer.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	t.Cleanup(c.hangUp)
	return c
}

// spawn starts the server as a process of its own.
func (w *world) spawn(s setup) *client {
	w.Helper()
	if s.UID != 0 && os.Getuid() != 0 {
		testenv.Missing(w.T, "root, to run a server as another user")
	}
	spec, err := json.Marshal(s)
	w.must(err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	w.must(err)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	w.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	c := newClient(w.T, out, in, nil)
	c.pid = cmd.Process.Pid
	return c
}

// client is one connection: it sends calls and takes their answers.
type client struct {
	t   *testing.T
	pid int
	out io.Writer
	// hangUp ends the connection and waits for the server.
	hangUp func()

	mu     sync.Mutex
	n      int
	wait   map[int]chan json.RawMessage
	roots  []string
	gone   bool
	writes sync.Mutex
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
const patience = 30 * time.Second

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
