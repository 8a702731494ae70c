// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var anyObject = json.RawMessage(`{"type":"object"}`)

// gate is a tool that tells when it has started and waits to be let go.
type gate struct {
	started chan string
	let     chan struct{}
	ended   chan error
}

func newGate() *gate {
	return &gate{make(chan string, MaxInFlight), make(chan struct{}), make(chan error, MaxInFlight)}
}

// openGate holds nobody up.
func openGate() *gate { return nil }

func (g *gate) call(ctx context.Context, c *Call) Result {
	if g == nil {
		return own("open")
	}
	g.started <- c.ID()
	select {
	case <-g.let:
		g.ended <- nil
		return own("let go")
	case <-ctx.Done():
		c.Progress(1, 0, textsafe.Clean("must never be seen"))
		g.ended <- ctx.Err()
		return own("must never be seen")
	}
}

func own(text string) Result { return Result{Content: []Content{Own(textsafe.Block(text))}} }

func echo(_ context.Context, c *Call) Result {
	v, _ := c.Arguments.Get("text")
	text, err := v.String()
	if err != nil {
		return Refusal(fault.As(err), "r1")
	}
	return own(text)
}

func counting(_ context.Context, c *Call) Result {
	c.Progress(1, 2, textsafe.Clean("half\nway"))
	return own("done")
}

// testTools is one tool of each kind of answer.
func testTools(g *gate) []Tool {
	tools := []Tool{
		{Name: "echo", Description: "Says \"it\" again.", Class: core.ReadOnly, Hints: Hints{ReadOnly: true}, Call: echo},
		{Name: "gate", Class: core.ReadOnly, Hints: Hints{ReadOnly: true}, Call: g.call},
		{Name: "walk", Class: core.ReadOnly, Hints: Hints{ReadOnly: true}, Load: Walk, Call: g.call},
		{Name: "count", Class: core.Mutating, Hints: Hints{Idempotent: true}, Call: counting},
		{Name: "panic", Class: core.Destructive, Hints: Hints{Destructive: true, OpenWorld: true}, Call: func(context.Context, *Call) Result {
			panic("secret")
		}},
		{Name: "panic_read", Class: core.ReadOnly, Hints: Hints{ReadOnly: true}, Call: func(context.Context, *Call) Result { panic(errors.New("x")) }},
		{Name: "mixed", Class: core.ReadOnly, Hints: Hints{ReadOnly: true}, Call: mixed},
		{Name: "roots", Class: core.ReadOnly, Hints: Hints{ReadOnly: true}, Call: func(ctx context.Context, c *Call) Result {
			r := c.Session.Roots(ctx)
			return own(strconv.Itoa(int(r.State)) + " " + strings.Join(r.URIs, " ") + r.Why.String())
		}},
	}
	for i := range tools {
		tools[i].InputSchema = anyObject
	}
	return tools
}

func mixed(context.Context, *Call) Result {
	png := textsafe.Clean("image/png")
	return Result{
		Content: []Content{
			Outside(untrusted.Bare(untrusted.File, "<&>\u2028\x01</untrusted-1>")),
			{},
			Image(png, []byte{0, 1, 254}), Audio(textsafe.Clean("audio/wav"), nil), Blob(textsafe.Clean("file:///x"), png, []byte("b")),
		},
		Structured: json.RawMessage(`{"big":12345678901234567890,"f":1.0}`),
		Meta:       []Meta{{"dev.postern/result", json.RawMessage(`{"partial":true}`)}},
	}
}

func newServer(t testing.TB, g *gate) *Server {
	t.Helper()
	s, err := New(Config{Tools: testTools(g), Version: "1.2.3", Instructions: textsafe.Block("Ask first.")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wire is a client that speaks in lines.
type wire struct {
	t      testing.TB
	in     *io.PipeWriter
	lines  chan string
	served chan error
	out    *io.PipeReader
}

func connect(t testing.TB, s *Server) *wire {
	t.Helper()
	return connectContext(t.Context(), t, s)
}

func connectContext(ctx context.Context, t testing.TB, s *Server) *wire {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	w := &wire{t: t, in: inW, out: outR, lines: make(chan string, 1000), served: make(chan error, 1)}
	go func() {
		w.served <- s.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	go func() {
		defer close(w.lines)
		for r := bufio.NewReader(outR); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			w.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return w
}

const opening = `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"0"}}}`

// open is connect and the handshake.
func open(t testing.TB, s *Server) *wire {
	t.Helper()
	w := connect(t, s)
	w.send(opening)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.next()
	return w
}

func (w *wire) send(lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(w.in, line+"\n"); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *wire) next() string {
	w.t.Helper()
	line, ok := <-w.lines
	if !ok {
		w.t.Fatal("the server has ended")
	}
	return line
}

// want reads one line for each of wanted, in any order.
func (w *wire) want(wanted ...string) {
	w.t.Helper()
	left := map[string]int{}
	for _, line := range wanted {
		left[line]++
	}
	for range wanted {
		line := w.next()
		if left[line]--; left[line] < 0 {
			w.t.Fatalf("got %s\nwant one of %v", line, wanted)
		}
	}
}

// close ends the input and returns what ServeStdio returned; nothing more may
// have been sent.
func (w *wire) close() error {
	w.t.Helper()
	w.in.Close()
	err := <-w.served
	for line := range w.lines {
		w.t.Errorf("unexpected: %s", line)
	}
	return err
}

func call(id, tool, rest string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"` + rest + `}}`
}

func cancelled(id string) string {
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
}

func text(id, text string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"` + text + `"}]}}`
}
