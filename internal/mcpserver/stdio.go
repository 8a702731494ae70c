// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/postern-gate/postern/internal/mcpwire"
)

// Limits of the end of a connection.
const (
	// Grace is how long calls may go on by themselves after the input ended,
	// so that a script which writes its requests and closes gets its answers. Clients
	// wait two seconds for a server to end before they kill it.
	Grace = 1500 * time.Millisecond
	// Drain is how long cancelled calls are waited for.
	Drain = 5 * time.Second
)

// ErrDrain says that calls were still running when the server gave up on them.
var ErrDrain = errors.New("calls did not end after they were cancelled")

// ServeStdio serves one session over in and out, one message a line, until in
// ends, out fails or ctx is done. It closes in, if it is an io.Closer, to stop
// reading; otherwise one read may stay blocked. The error is nil at the end of the input, the cause of ctx, that of
// the stream that failed, or ErrDrain.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	writer := mcpwire.NewWriter(out)
	send := func(frame []byte) error {
		err := writer.Write(frame)
		if err != nil {
			fail(err)
		}
		return err
	}
	n := s.NewSession(send)
	room := newFrameRoom(s.frames)
	ended := make(chan error, 1)
	go func() { ended <- s.read(ctx, n, in, send, room) }()
	var err error
	select {
	case err = <-ended:
		if err == nil {
			grace, stop := context.WithTimeout(ctx, Grace)
			n.wait(grace)
			stop()
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
		if c, ok := in.(io.Closer); ok {
			_ = c.Close() // only to wake the reader up
		}
	}
	drain, stop := context.WithTimeout(context.WithoutCancel(ctx), Drain)
	defer stop()
	if !n.Close(drain) {
		err = errors.Join(err, ErrDrain)
	}
	return err
}

// read hands each line to Dispatch until the input ends. It waits while the
// lines in work hold too much memory.
func (s *Server) read(ctx context.Context, n *Session, in io.Reader, send Send, room *frameRoom) error {
	reader := mcpwire.NewReader(in, s.limit)
	for ctx.Err() == nil {
		frame, err := reader.Next()
		var long *mcpwire.TooLong
		switch {
		case errors.As(err, &long):
			s.Oversized(n, long, send)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case room.take(ctx, len(frame)):
			work := s.Dispatch(ctx, n, frame, send)
			if work == nil {
				room.free(len(frame))
				continue
			}
			go func() {
				defer room.free(len(frame))
				work()
			}()
		}
	}
	return context.Cause(ctx)
}
