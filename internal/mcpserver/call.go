// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"cmp"
	"context"
	"math"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Call is one tools/call.
type Call struct {
	// Tool is the tool that was called.
	Tool *Tool
	// Arguments are the client's own bytes, checked by mcpwire.
	Arguments mcpwire.Object
	Session   *Session
	// HostSession is the client's own name for its session, which outlives a
	// connection, in _meta.sessionId; "" for none. It is the client's word.
	HostSession string

	id     mcpwire.ID
	key    mcpwire.ID // its name in the session: the id, unless requests are apart
	modern bool
	send   Send
	admit  admit
	token  []byte // progressToken, nil without
	cancel context.CancelFunc
	places *[Large + 1]chan struct{} // of the server, by load

	placing sync.Mutex
	place   func() // frees the place that the call has; nil without
	ended   bool   // the answer is sent, or none will be

	silent   atomic.Bool // answered or cancelled: nothing may follow
	mu       sync.Mutex  // held while progress is sent
	progress float64
	sent     time.Time
}

// ID returns the request's id in its own bytes, for records.
func (c *Call) ID() string { return string(c.id) }

// Progress reports done of total (0: unknown), if the client asked for it.
// The value must grow: others, those that come too soon after the last one,
// and all after the answer are dropped.
func (c *Call) Progress(done, total float64, message textsafe.Line) {
	if c.token == nil || !finite(done) || !finite(total) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.silent.Load() || done <= c.progress || !c.sent.IsZero() && now.Sub(c.sent) < ProgressInterval {
		return
	}
	c.progress, c.sent = done, now
	b := append([]byte(progressHead+`"params":{"progressToken":`), c.token...)
	b = strconv.AppendFloat(append(b, `,"progress":`...), done, 'g', -1, 64)
	if total > 0 {
		b = strconv.AppendFloat(append(b, `,"total":`...), total, 'g', -1, 64)
	}
	if text := message.String(); text != "" {
		b = mcpwire.AppendString(append(b, `,"message":`...), text)
	}
	_ = c.send(append(b, '}', '}')) // a transport that fails ends the session itself
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// admit takes room for an answer of n bytes that its client may read slowly, or
// reports that there is none. It calls leave, which frees the call's place,
// before it waits. A transport that sends in place has none: nil.
type admit func(n int, leave func()) bool

// admitted returns why an answer of n bytes can't be kept for its client, nil
// if it can.
func (c *Call) admitted(n int) *fault.Error {
	if c.admit == nil || c.admit(n, func() { c.leave(true) }) {
		return nil
	}
	f := &fault.Error{
		Code: fault.LimitExceeded, Op: "tool.call", Resource: c.Tool.Name,
		Rule: "answers that clients have not read yet are too large together", Hint: "call again later, or ask for less", Retry: true,
	}
	if c.Tool.Class != core.ReadOnly {
		f.Rule, f.Hint, f.Retry = "the call has ended, but its answer is lost: "+f.Rule, "see what was changed before you call again", false
	}
	return f
}

// run waits for a place, runs the tool and answers. The place is held until the
// answer is sent or has room to wait in, so that results which wait for a slow
// reader are bounded too.
func (s *Server) run(ctx context.Context, c *Call) {
	defer c.Session.finish(c)
	defer c.cancel()
	defer c.leave(true)
	if _, err := c.take(ctx, c.Tool.Load, 1); err != nil {
		return
	}
	result, bug := s.invoke(ctx, c)
	if ctx.Err() != nil {
		return // cancelled: no answer may follow
	}
	buf := s.buffer()
	defer s.keep(buf)
	if bug != nil {
		*buf = appendError(*buf, c.id, bug, 0, "")
	} else {
		*buf = s.appendResult(*buf, c.id, c.modern, &result)
	}
	c.Session.release(c)
	if refused := c.admitted(len(*buf)); refused != nil {
		result := Refusal(refused, "")
		*buf = s.appendResult((*buf)[:0], c.id, c.modern, &result)
	}
	c.answer(*buf)
}

// take waits for a place of that load, which is free again when that many have
// let it go.
func (c *Call) take(ctx context.Context, load Load, holders int32) (release func(), err error) {
	place := c.places[load]
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.placing.Lock()
	defer c.placing.Unlock()
	if err := ctx.Err(); err != nil || c.ended { // both were ready
		<-place
		return nil, cmp.Or(err, context.Canceled)
	}
	var left atomic.Int32
	left.Store(holders)
	release = func() {
		if left.Add(-1) == 0 {
			<-place
		}
	}
	c.place = release
	return release, nil
}

// leave frees the place that the call has, or its share in it.
func (c *Call) leave(ended bool) {
	c.placing.Lock()
	defer c.placing.Unlock()
	if c.place != nil {
		c.place()
	}
	c.place, c.ended = nil, ended
}

// Large gives the place of the call back and waits for one of the few that
// calls have which hold much memory, so that it keeps no small call waiting.
// The place is held until the answer is sent and done, which must be called
// once, has been: work that was given up holds its memory still. The error is
// that of ctx.
func (c *Call) Large(ctx context.Context) (done func(), err error) {
	c.leave(false)
	return c.take(ctx, Large, 2)
}

// Aside gives the place of the call back while it waits for a person, and
// takes one again when the function that it returns is called. The error is
// that of ctx.
func (c *Call) Aside(ctx context.Context) (back func() error) {
	c.leave(false)
	return func() error {
		_, err := c.take(ctx, c.Tool.Load, 1)
		return err
	}
}

// answer sends the one answer, unless the call was cancelled before. Progress
// that is on its way goes first.
func (c *Call) answer(frame []byte) {
	c.mu.Lock()
	silent := c.silent.Swap(true)
	c.mu.Unlock()
	if !silent {
		_ = c.send(frame) // a transport that fails ends the session itself
	}
}

// invoke runs the tool and turns a panic into a bug.
func (s *Server) invoke(ctx context.Context, c *Call) (result Result, bug *fault.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a tool panicked", "tool", c.Tool.Name, "panic", p, "stack", string(debug.Stack()))
			bug = &fault.Error{Code: fault.Bug, Op: "tool.call", Resource: c.Tool.Name}
			if c.Tool.Class != core.ReadOnly {
				bug.Rule = "a fault in postern itself; what the tool changes may have been changed"
			}
		}
	}()
	return c.Tool.Call(ctx, c), nil
}
