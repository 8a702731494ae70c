// SPDX-License-Identifier: Apache-2.0

package mcpwire

import "unicode/utf8"

// idFinder looks for the id in a line that is too long to keep. Clients put it
// first or last, so it follows the nesting over the whole line, in constant
// memory, and keeps the strings and scalars of the envelope alone.
type idFinder struct {
	depth   int
	quoted  bool
	escaped bool
	isID    bool // the key before the colon is "id"
	inValue bool
	token   []byte // at depth 1: the key or the value so far, up to maxID+1 bytes
	id      []byte
	ids     int
}

func (f *idFinder) write(p []byte) {
	for _, c := range p {
		if f.quoted {
			f.quote(c)
		} else {
			f.plain(c)
		}
	}
}

func (f *idFinder) keep(c byte) {
	if f.depth == 1 && len(f.token) <= maxID {
		f.token = append(f.token, c)
	}
}

func (f *idFinder) quote(c byte) {
	f.keep(c)
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.quoted = false
	}
}

func (f *idFinder) plain(c byte) {
	switch c {
	case ' ', '\t', '\r', '\n':
	case '"':
		f.keep(c)
		f.quoted = true
	case '{', '[':
		f.keep(c)
		f.depth++
	case '}', ']':
		if f.depth == 1 {
			f.endMember()
		}
		f.depth--
	case ':':
		if f.depth == 1 && !f.inValue {
			f.isID, f.inValue = len(f.token) == 4 && isID(f.token[1:3]), true
			f.token = f.token[:0]
		}
	case ',':
		if f.depth == 1 {
			f.endMember()
		}
	default:
		f.keep(c)
	}
}

func (f *idFinder) endMember() {
	if f.isID {
		f.ids++
		f.id = append([]byte(nil), f.token...)
	}
	f.isID, f.inValue = false, false
	f.token = f.token[:0]
}

// found returns the id if there was exactly one and JSON-RPC allows it.
func (f *idFinder) found() ID {
	if f.ids != 1 || !validID(f.id) || !utf8.Valid(f.id) {
		return ""
	}
	s := scanner{b: f.id}
	if !s.value(exact) || s.i < len(f.id) || s.flaw != "" {
		return ""
	}
	return ID(f.id)
}
