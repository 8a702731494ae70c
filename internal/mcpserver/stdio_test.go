// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
)

func TestNewRefuses(t *testing.T) {
	good := Tool{Name: "a", InputSchema: anyObject, Class: core.ReadOnly, Call: echo}
	tests := map[string]func(tool *Tool){
		"no name":         func(tool *Tool) { tool.Name = "" },
		"no handler":      func(tool *Tool) { tool.Call = nil },
		"no class":        func(tool *Tool) { tool.Class = core.ClassUnknown },
		"no schema":       func(tool *Tool) { tool.InputSchema = nil },
		"schema no JSON":  func(tool *Tool) { tool.InputSchema = []byte("{") },
		"schema an array": func(tool *Tool) { tool.InputSchema = []byte("[]") },
		"unknown load":    func(tool *Tool) { tool.Load = Large },
	}
	if _, err := New(Config{Tools: []Tool{good}}); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range tests {
		bad := good
		spoil(&bad)
		if _, err := New(Config{Tools: []Tool{bad}}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{Tools: []Tool{good, good}}); err == nil {
		t.Error("two tools of one name accepted")
	}
}

// A cancelled call ends at once, is never answered, and hurts nobody else.
func TestCancel(t *testing.T) {
	g := newGate()
	w := open(t, newServer(t, g))
	w.send(call("1", "gate", `,"_meta":{"progressToken":1}`), call(`"1"`, "gate", ""))
	if started := []string{<-g.started, <-g.started}; !slices.Contains(started, "1") || !slices.Contains(started, `"1"`) {
		t.Fatal(started)
	}
	w.send(cancelled("1"), cancelled("77"))
	if err := <-g.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the tool ended with %v", err)
	}
	close(g.let)
	w.want(text(`"1"`, "let go")) // the string id is another one
	w.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

// Searches fill their own places only; one that waits can be cancelled and
// then never runs.
func TestLoads(t *testing.T) {
	g := newGate()
	w := open(t, newServer(t, g))
	for i := range MaxWalk {
		w.send(call(string(rune('1'+i)), "walk", ""))
		<-g.started
	}
	w.send(call("50", "walk", ""), call("51", "walk", ""))
	w.send(call("60", "echo", `,"arguments":{"text":"quick"}`))
	w.want(text("60", "quick"))
	w.send(cancelled("50"))
	w.send(`{"jsonrpc":"2.0","id":61,"method":"ping"}`)
	w.want(`{"jsonrpc":"2.0","id":61,"result":{}}`)
	close(g.let)
	w.want(text("1", "let go"), text("2", "let go"), text("3", "let go"), text("4", "let go"), text("51", "let go"))
	if err := w.close(); err != nil {
		t.Error(err)
	}
	close(g.started)
	for id := range g.started {
		if id == "50" {
			t.Error("the cancelled call ran")
		}
	}
}

func TestDuplicateID(t *testing.T) {
	g := newGate()
	w := open(t, newServer(t, g))
	w.send(call("1", "gate", ""))
	<-g.started
	w.send(call("1", "echo", `,"arguments":{"text":"second"}`))
	w.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"tools/call: the id is that of a request still in progress","data":{"code":"frame.invalid"}}}`)
	close(g.let)
	w.want(text("1", "let go"))
	for range MaxInFlight + 50 { // an id is free once its answer is there
		w.send(call("1", "echo", `,"arguments":{"text":"third"}`))
		w.want(text("1", "third"))
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestTooManyCalls(t *testing.T) {
	g := newGate()
	s := newServer(t, g)
	var told []fault.Code
	s.refused = func(n *Session, err *fault.Error) {
		if n.ID() == "" {
			t.Error("a session without a name")
		}
		told = append(told, err.Code)
	}
	w := open(t, s)
	for i := range MaxInFlight {
		w.send(call(`"`+strings.Repeat("x", i)+`"`, "gate", ""))
	}
	w.send(call("1", "echo", ""))
	line := w.next()
	if !strings.Contains(line, `"isError":true`) || !strings.Contains(line, `"code":"limit.exceeded"`) || !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,`) {
		t.Errorf("%s", line)
	}
	close(g.let)
	for range MaxInFlight {
		w.next()
	}
	if err := w.close(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(told, []fault.Code{fault.LimitExceeded}) {
		t.Errorf("recorded %v", told)
	}
}

func TestOversizedLine(t *testing.T) {
	s := newServer(t, newGate())
	s.limit = 2000
	w := open(t, s)
	w.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 100000) + `"}},"id":4}`)
	w.send(call("5", "echo", `,"arguments":{"text":"ok"}`))
	w.want(
		`{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"a line is longer than 2000 bytes","data":{"code":"limit.exceeded"}}}`,
		text("5", "ok"))
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

// A script that writes its requests and closes gets its answers.
func TestEndOfInputLetsQuickCallsEnd(t *testing.T) {
	var out bytes.Buffer
	in := opening + "\n" + call("1", "echo", `,"arguments":{"text":"a"}`) + "\n" + call("2", "count", "")
	if err := newServer(t, newGate()).ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, text("1", "a")+"\n") || !strings.Contains(got, text("2", "done")+"\n") {
		t.Error(got)
	}
}

func TestEndOfInputCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := open(t, newServer(t, g))
		w.send(call("1", "gate", ""), call("2", "walk", ""))
		<-g.started
		<-g.started
		start := time.Now()
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > Grace {
			t.Errorf("took %v", took)
		}
		if err := <-g.ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// A tool that doesn't heed its context is given up after a bounded time.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, started := make(chan struct{}), make(chan struct{})
		s, err := New(Config{Tools: []Tool{{Name: "stuck", InputSchema: anyObject, Class: core.ReadOnly, Call: func(context.Context, *Call) Result {
			close(started)
			<-stuck
			return Result{}
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		w := open(t, s)
		w.send(call("1", "stuck", ""))
		<-started
		start := time.Now()
		if err := w.close(); !errors.Is(err, ErrDrain) {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took != Grace+Drain {
			t.Errorf("took %v", took)
		}
		close(stuck)
		synctest.Wait()
	})
}

// An interrupt does not hide that.
func TestDrainIsToldOfAnInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, started := make(chan struct{}), make(chan struct{})
		s, err := New(Config{Tools: []Tool{{Name: "stuck", InputSchema: anyObject, Class: core.ReadOnly, Call: func(context.Context, *Call) Result {
			close(started)
			<-stuck
			return Result{}
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := connectContext(ctx, t, s)
		w.send(opening)
		w.next()
		w.send(call("1", "stuck", ""))
		<-started
		cancel()
		if err := <-w.served; !errors.Is(err, ErrDrain) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(stuck)
		synctest.Wait()
	})
}

func TestContextEndsTheServer(t *testing.T) {
	g := newGate()
	ctx, cancel := context.WithCancelCause(t.Context())
	w := connectContext(ctx, t, newServer(t, g))
	w.send(opening)
	w.next()
	w.send(call("1", "gate", ""))
	<-g.started
	cause := errors.New("signal")
	cancel(cause)
	if err := <-w.served; !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if _, err := w.in.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the input is still open: %v", err)
	}
	if err := <-g.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestBrokenStreams(t *testing.T) {
	broken := errors.New("broken pipe")
	s := newServer(t, newGate())
	if err := s.ServeStdio(t.Context(), iotest.ErrReader(broken), io.Discard); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	in, feed := io.Pipe()
	go io.WriteString(feed, opening+"\n") //nolint:errcheck // the server may close it first
	if err := s.ServeStdio(t.Context(), in, failingWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// Nothing starts in a session that is over.
func TestClosedSession(t *testing.T) {
	s := newServer(t, newGate())
	n := s.NewSession(nil)
	var got []string
	send := func(frame []byte) error { got = append(got, string(frame)); return nil }
	s.Dispatch(t.Context(), n, []byte(opening), send)
	if c := n.Client(); c.Name.String() != "test" || c.Version.String() != "0" || n.Version() != "2025-11-25" {
		t.Errorf("%v %s", c, n.Version())
	}
	n.Close(t.Context())
	n.Close(t.Context())
	if work := s.Dispatch(t.Context(), n, []byte(call("1", "echo", "")), send); work != nil {
		t.Error("there is work")
	}
	if len(got) != 2 || !strings.Contains(got[1], `"code":"call.cancelled"`) {
		t.Errorf("%q", got)
	}
}

// A call that is cancelled while it waits, or just as it gets its place, does
// not run; its id is free afterwards.
func TestCancelledBeforeItRuns(t *testing.T) {
	g := newGate()
	s := newServer(t, g)
	n := s.NewSession(nil)
	var sent []string
	send := func(frame []byte) error { sent = append(sent, string(frame)); return nil }
	s.Dispatch(t.Context(), n, []byte(opening), send)
	for range 50 {
		work := s.Dispatch(t.Context(), n, []byte(call("1", "gate", "")), send)
		s.Dispatch(t.Context(), n, []byte(cancelled("1")), send)
		work()
	}
	if len(g.started) != 0 || len(sent) != 1 {
		t.Errorf("%d calls ran, sent %q", len(g.started), sent)
	}
	s.Dispatch(t.Context(), n, []byte(call("1", "echo", `,"arguments":{"text":"x"}`)), send)()
	if sent[len(sent)-1] != text("1", "x") {
		t.Errorf("%q", sent)
	}
}

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var frames []string
		c := &Call{token: []byte(`"p"`), send: func(frame []byte) error { frames = append(frames, string(frame)); return nil }}
		step := func(done, total float64, message string) {
			c.Progress(done, total, textsafe.Clean(message))
			time.Sleep(ProgressInterval)
		}
		step(0, 0, "not beyond the start")
		step(1, 0, "")
		step(1, 0, "not more")
		step(0.5, 0, "less")
		step(math.NaN(), 0, "")
		step(2, math.Inf(1), "")
		c.Progress(2.5, 10, textsafe.Clean("a\nb"))
		c.Progress(3, 10, textsafe.Clean("too soon"))
		time.Sleep(ProgressInterval)
		c.answer([]byte("answer"))
		step(4, 10, "after the answer")
		c.answer([]byte("second answer"))
		const head = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":`
		want := []string{head + `1}}`, head + `2.5,"total":10,"message":"a b"}}`, "answer"}
		if !slices.Equal(frames, want) {
			t.Errorf("%q", frames)
		}
	})
}

// A client that doesn't read holds the server up, not the other way round:
// nothing is lost or mixed once it reads again.
func TestSlowReader(t *testing.T) {
	const calls = 500
	s := newServer(t, newGate())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeStdio(t.Context(), inR, outW); outW.Close() }()
	long := strings.Repeat("z", 3000)
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(inW, opening+"\n"+strings.Repeat(call("1e3", "nope", "")+"\n", calls)+call("7", "echo", `,"arguments":{"text":"`+long+`"}`)+"\n")
		inW.Close()
		written <- err
	}()
	out, err := io.ReadAll(iotest.OneByteReader(outR))
	if err != nil || <-written != nil || <-served != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != calls+2 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1e3,"error"`) && line != text("7", long) {
			t.Errorf("%.200s", line)
		}
	}
}
