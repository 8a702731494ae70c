// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/postern-gate/postern/core/fault"
)

// stdout is where every verb prints its answer. That it could not be written is
// remembered, so that no verb can end well without its answer.
type stdout struct {
	to io.Writer

	mu  sync.Mutex
	err *fault.Error
}

// Write writes nothing after a gap.
func (s *stdout) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.to.Write(p)
	if err == nil {
		return n, nil
	}
	s.err = &fault.Error{
		Code: fault.IOFailed, Op: "print", Rule: "stdout can't be written; what was done before that is done",
		Hint: "give it room, or somebody who reads it, and ask again", Err: err,
	}
	return n, s.err
}

// ended is how a verb ended: not well without its answer.
func (s *stdout) ended(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var code exitCode
	if s.err != nil && (err == nil || errors.As(err, &code)) {
		return s.err
	}
	return err
}

// unread reports whether err is only that nobody reads the answer to its end,
// about which nothing is said.
func (s *stdout) unread(err error) bool {
	return s.err != nil && fault.As(err) == s.err && errors.Is(s.err, syscall.EPIPE)
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
