// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/postern-gate/postern/core/fault"
)

// stdout is where every verb prints its answer. That it could not be written is
// remembered, so that no verb can end well without its answer.
type stdout struct {
	to io.Writer

	turn sync.Mutex // of writes; whoever reads too slowly holds it
	err  atomic.Pointer[fault.Error]
}

// Write writes nothing after a gap.
func (s *stdout) Write(p []byte) (int, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if f := s.err.Load(); f != nil {
		return 0, f
	}
	n, err := s.to.Write(p)
	if err == nil {
		return n, nil
	}
	f := &fault.Error{
		Code: fault.IOFailed, Op: "print", Rule: "stdout can't be written; what was done before that is done",
		Hint: "give it room, or somebody who reads it, and ask again", Err: err,
	}
	s.err.Store(f)
	return n, f
}

// ended is how a verb ended: not well without its answer. It waits for no write that
// the verb itself didn't wait for.
func (s *stdout) ended(err error) error {
	var code exitCode
	if f := s.err.Load(); f != nil && (err == nil || errors.As(err, &code)) {
		return f
	}
	return err
}

// unread reports whether err is only that nobody reads the answer to its end,
// about which nothing is said.
func (s *stdout) unread(err error) bool {
	f := s.err.Load()
	return f != nil && fault.As(err) == f && errors.Is(f, syscall.EPIPE)
}

// fileOf is the file that w writes to in the end.
func fileOf(w io.Writer) (f *os.File, ok bool) {
	switch w := w.(type) {
	case *lines:
		return fileOf(w.to)
	case *stdout:
		return fileOf(w.to)
	}
	f, ok = w.(*os.File)
	return f, ok
}
