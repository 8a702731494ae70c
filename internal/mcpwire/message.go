// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"strconv"
	"unicode/utf8"
)

// The numbers of JSON-RPC 2.0, section 5.1, for frames that are no message.
const (
	ParseError     = -32700
	InvalidRequest = -32600
)

// maxID is the longest id in bytes that is answered. It is sent back and kept
// while the call runs, so it must not be a way to make us hold megabytes.
const maxID = 1024

// ID is the id of a request in its own bytes, quotes included, so that 1,
// 1.0, "1" and numbers beyond 2^53 stay apart and return as they came. The
// zero value is no id, which an answer spells null.
type ID string

// Kind is what a message is.
type Kind uint8

// The kinds. The zero value is no message.
const (
	Invalid Kind = iota
	Request
	Notification
	Response
)

// Message is one frame, taken apart. All slices are parts of the frame.
type Message struct {
	Kind   Kind
	ID     ID     // of a request or response
	Method string // of a request or notification
	Params []byte // an object, or nil
	Result []byte // of a response: exactly one of the two is set
	Error  []byte
}

// Error says why a frame is no message and what to answer.
type Error struct {
	Number int // ParseError or InvalidRequest
	ID     ID  // of the request that fails, if it can be told
	Reason string
	// Unanswerable says that the frame looks like a response: answering one
	// with an error would be answered in turn.
	Unanswerable bool
}

// Error returns the number and the reason.
func (e *Error) Error() string { return strconv.Itoa(e.Number) + ": " + e.Reason }

// frame gathers the members of an envelope while it is scanned.
type frame struct {
	version, id, method, params, result, err []byte
	ids                                      int // how many keys read as "id" by some decoder
}

func (f *frame) visit(key, value []byte) {
	if isID(key) {
		f.ids++
	}
	switch string(key) {
	case "jsonrpc":
		f.version = value
	case "id":
		f.id = value
	case "method":
		f.method = value
	case "params":
		f.params = value
	case "result":
		f.result = value
	case "error":
		f.err = value
	}
}

// isID reports whether some decoder takes key for id; no letter beyond ASCII
// folds to either of the two.
func isID(key []byte) bool {
	return len(key) == 2 && key[0]|0x20 == 'i' && key[1]|0x20 == 'd'
}

// answerID is the id that an answer to the frame carries: the only one, and
// one that JSON-RPC allows.
func (f *frame) answerID() ID {
	if f.ids == 1 && validID(f.id) {
		return ID(f.id)
	}
	return ""
}

func validID(raw []byte) bool {
	return len(raw) > 0 && len(raw) <= maxID && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// Parse takes one frame apart. It keeps no copy: the frame must not change
// while the message is in use.
func Parse(b []byte) (Message, *Error) {
	if !utf8.Valid(b) {
		return Message{}, &Error{Number: ParseError, Reason: "it is not UTF-8"}
	}
	var stack [16][]byte
	s := scanner{b: b, keys: stack[:0]}
	switch s.peek() {
	case '{':
	case '[':
		return Message{}, &Error{Number: InvalidRequest, Reason: "batches are not accepted"}
	default:
		if s.value(exact) && s.peek() == 0 && s.i == len(b) {
			return Message{}, &Error{Number: InvalidRequest, Reason: "it is not an object"}
		}
		return Message{}, &Error{Number: ParseError, Reason: "it is not JSON"}
	}
	var f frame
	complete := s.object(envelope, f.visit)
	if complete {
		if s.space(); s.i < len(b) {
			s.fail("something follows the object")
		}
	}
	if s.bad != "" {
		return Message{}, &Error{Number: ParseError, Reason: s.bad}
	}
	if s.flaw == "" {
		var m Message
		if m, s.flaw = f.message(); s.flaw == "" {
			return m, nil
		}
	}
	return Message{}, &Error{
		Number: InvalidRequest, ID: f.answerID(), Reason: s.flaw,
		Unanswerable: f.method == nil && (f.result != nil || f.err != nil),
	}
}

// message returns what the envelope says, or the flaw that makes it invalid.
func (f *frame) message() (Message, string) {
	switch {
	case string(f.version) != `"2.0"`:
		return Message{}, `jsonrpc is not "2.0"`
	case f.id != nil && !validID(f.id):
		return Message{}, "id is not a string or number of at most 1024 bytes"
	case f.method == nil:
		return f.response()
	case f.result != nil || f.err != nil:
		return Message{}, "it has both a method and a result"
	case f.method[0] != '"':
		return Message{}, "method is not a string"
	case f.params != nil && f.params[0] != '{':
		return Message{}, "params is not an object"
	}
	m := Message{Kind: Request, ID: ID(f.id), Method: decodeText(f.method), Params: f.params}
	if f.id == nil {
		m.Kind = Notification
	}
	return m, ""
}

func (f *frame) response() (Message, string) {
	switch {
	case f.result == nil && f.err == nil:
		return Message{}, "it has no method"
	case f.result != nil && f.err != nil:
		return Message{}, "it has both a result and an error"
	case f.params != nil:
		return Message{}, "a response has no params"
	case f.id == nil:
		return Message{}, "a response without an id"
	}
	return Message{Kind: Response, ID: ID(f.id), Result: f.result, Error: f.err}, ""
}

// decodeText decodes a JSON string that the scanner accepted.
func decodeText(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	for _, c := range inner {
		if c == '\\' {
			return string(unescape(inner))
		}
	}
	return string(inner)
}
