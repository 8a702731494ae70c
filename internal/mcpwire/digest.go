// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
)

// Digest returns the SHA-256 of the object in a canonical form: no white
// space, keys sorted by their bytes in UTF-8, strings with as few escapes as
// the grammar allows, numbers as they were written. 1 and 1.0 differ, since
// decoders differ on them. The top-level members named in without are left
// out: a closed list of those that are only shown.
//
// Two objects have one digest exactly if they differ in white space, in the
// order of members, in escapes or in members left out.
func Digest(o Object, without ...string) [sha256.Size]byte {
	s := scanner{b: o.raw}
	if o.raw == nil {
		s.b = []byte("{}")
	}
	s.space()
	return sha256.Sum256(s.canonObject(nil, without))
}

// canon appends the canonical form of the next value, which the scanner has
// accepted before.
func (s *scanner) canon(dst []byte) []byte {
	switch s.peek() {
	case '{':
		return s.canonObject(dst, nil)
	case '[':
		return s.canonArray(dst)
	case '"':
		return AppendString(dst, s.canonText())
	}
	start := s.i
	s.value(exact)
	return append(dst, s.b[start:s.i]...)
}

func (s *scanner) canonText() string {
	raw, escaped, _ := s.text()
	if escaped {
		raw = unescape(raw)
	}
	return string(raw)
}

func (s *scanner) canonArray(dst []byte) []byte {
	dst = append(dst, '[')
	s.i++
	for s.peek() != ']' {
		if s.b[s.i] == ',' {
			s.i++
			dst = append(dst, ',')
		}
		dst = s.canon(dst)
	}
	s.i++
	return append(dst, ']')
}

func (s *scanner) canonObject(dst []byte, without []string) []byte {
	type member struct {
		key   string
		bytes []byte
	}
	var members []member
	s.i++
	for s.peek() != '}' {
		if s.b[s.i] == ',' {
			s.i++
			s.space()
		}
		key := s.canonText()
		s.peek()
		s.i++ // the colon
		value := s.canon(append(AppendString(nil, key), ':'))
		if !slices.Contains(without, key) {
			members = append(members, member{key, value})
		}
	}
	s.i++
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.key, b.key) })
	parts := make([][]byte, len(members))
	for i, m := range members {
		parts[i] = m.bytes
	}
	dst = append(dst, '{')
	dst = append(dst, bytes.Join(parts, []byte{','})...)
	return append(dst, '}')
}
