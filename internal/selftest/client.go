// SPDX-License-Identifier: Apache-2.0

package selftest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postern-gate/postern/internal/mcpserver"
)

// callTime bounds one call. None takes a hundredth of it; one that hangs is a
// finding.
const callTime = 5 * time.Second

// client is an MCP client at the other end of a pipe.
type client struct {
	ctx    context.Context //nolint:containedctx // that of the run, as in lab
	in     io.WriteCloser
	served chan struct{}

	mu   sync.Mutex
	n    int
	wait map[string]chan answer
}

// answer is what came back of a request: the code of a refusal or of a
// protocol error, "" for neither.
type answer struct {
	raw  []byte
	code string
	text string
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"selftest","version":"1"}}}`

// connect serves a session in this process.
func connect(ctx context.Context, server *mcpserver.Server) *client {
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	c := &client{ctx: ctx, in: in, served: make(chan struct{}), wait: map[string]chan answer{}}
	go func() {
		defer close(c.served)
		err := server.ServeStdio(ctx, fromClient, toClient)
		_ = toClient.CloseWithError(err)
		_ = fromClient.CloseWithError(io.ErrClosedPipe)
	}()
	go c.receive(out)
	if _, err := c.raw("hello", hello); err == nil {
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

func (c *client) close() {
	_ = c.in.Close()
	<-c.served
}

func (c *client) send(line string) {
	_, _ = io.WriteString(c.in, line+"\n") // a server that is gone is noticed by the wait
}

func (c *client) receive(from io.Reader) {
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Result struct {
				Content []struct{ Text string }
				IsError bool
				Meta    struct {
					Error struct{ Code string } `json:"dev.postern/error"`
				} `json:"_meta"`
			}
			Error *struct{ Code int }
		}
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		a := answer{raw: line, code: m.Result.Meta.Error.Code}
		switch {
		case m.Error != nil:
			a.code = strconv.Itoa(m.Error.Code)
		case m.Result.IsError && a.code == "":
			a.code = "error"
		}
		var text []string
		for _, part := range m.Result.Content {
			text = append(text, part.Text)
		}
		a.text = strings.Join(text, "\n")
		c.mu.Lock()
		got := c.wait[string(m.ID)]
		c.mu.Unlock()
		if got != nil {
			got <- a
		}
	}
}

// raw sends one line as it is; id is the one that its answer has.
func (c *client) raw(id, line string) (answer, error) {
	key := strconv.Quote(id)
	got := make(chan answer, 1)
	c.mu.Lock()
	c.wait[key] = got
	c.mu.Unlock()
	c.send(line)
	timer := time.NewTimer(callTime)
	defer timer.Stop()
	select {
	case a := <-got:
		return a, nil
	case <-c.served:
		return answer{}, errors.New("the server ended")
	case <-c.ctx.Done():
		return answer{}, c.ctx.Err()
	case <-timer.C:
		return answer{}, errors.New("there was no answer")
	}
}

func (c *client) id() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return "n" + strconv.Itoa(c.n)
}

// args are the arguments of a call.
type args map[string]any

// call runs a tool.
func (c *client) call(tool string, a args) (answer, error) {
	id := c.id()
	line, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": a},
	})
	if err != nil {
		return answer{}, err
	}
	return c.raw(id, string(line))
}

// does is a call that must succeed.
func (c *client) does(tool string, a args) (answer, error) {
	got, err := c.call(tool, a)
	if err == nil && got.code != "" {
		err = errors.New(tool + " was refused: " + got.code)
	}
	return got, err
}
