// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"errors"

	"github.com/postern-gate/postern/core/textsafe"
)

// Error is one refusal or failure, with everything that a door needs to say
// it in its own protocol. Its zero value is an internal bug.
type Error struct {
	Code Code
	// Op is the action that was asked for, as "fs.write".
	Op string
	// Resource is the canonical name, or the caller's own spelling where none
	// exists. It may hold any bytes: Lines draws it safely.
	Resource string
	// Rule is the "because" line: which rule or guard, where it is written.
	Rule string
	// Hint is the "next" line: one exact command or step, or "" for the
	// table's own hint.
	Hint string
	// Retry says that the same call may succeed later without any change.
	Retry bool
	// ID is the record's correlation id, "" before anything was recorded.
	ID string
	// Err is the cause. Its text never reaches an agent.
	Err error
}

// Error returns "op resource: message" in lower case, safe to draw.
func (e *Error) Error() string {
	if what := e.what(); what != "" {
		return what[1:] + ": " + e.Because()
	}
	return e.Because()
}

// what is the operation and the resource, each after a blank.
func (e *Error) what() (s string) {
	for _, part := range []string{e.Op, textsafe.Name(e.Resource)} {
		if part != "" {
			s += " " + part
		}
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of this error's code, so that
// errors.Is(err, fs.ErrPermission) holds for every refusal by a guard.
func (e *Error) Is(target error) bool {
	s := e.Code.row().sentinel
	return s != nil && (s == target || errors.Is(s, target))
}

// Lines is the text of a refusal or failure, the same three lines at every
// door: what, because of what, and the one next step. Names are drawn safely;
// the cause's own text is left out.
func (e *Error) Lines() string {
	return e.Code.Kind().word() + ":" + e.what() + "\nbecause: " + textsafe.Clean(e.Because()).String() +
		"\nnext: " + textsafe.Clean(e.Next()).String()
}

// Next is the text of the "next" line.
func (e *Error) Next() string {
	if e.Hint != "" {
		return e.Hint
	}
	return e.Code.row().hint
}

// Because is the text of the "because" line. It may hold any bytes.
func (e *Error) Because() string {
	if e.Rule != "" {
		return e.Rule
	}
	return e.Code.row().means
}

// As returns err as a fault. Any other error becomes an internal bug, which
// fails closed and keeps its cause for errors.Is; nil stays nil.
func As(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Bug, Err: err}
}

// CodeOf returns the code of err: OK for nil, Bug for a foreign error.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	return As(err).Code
}
