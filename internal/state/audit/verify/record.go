// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"strconv"
	"time"
)

// always are the names that every record has, in their order.
var always = [...]string{"t", "agent", "op", "decision", "reason", "source", "session", "corr", "policy", "level", "event"}

// Places of always.
const (
	atTime  = 0
	atOp    = 2
	atEvent = 10
)

// mostMore bounds the names after those.
const mostMore = 16

// record is what is looked at of one record. Its slices are parts of the line.
type record struct {
	at       time.Time
	op       []byte
	event    []byte
	resource []byte
}

var (
	recordStart = []byte(`{"t":"`)
	opLog       = []byte("log")
)

// own tells whether the record is one about the log itself.
func (r *record) own() bool { return bytes.Equal(r.op, opLog) }

// scan reads the frame of a record by hand: encoding/json would take most of
// the time of a check. It is strict JSON: one flat object of strings and
// integers, without blanks and without a name twice. The second result says
// what is wrong with it, "" for nothing.
func scan(line []byte) (r record, kind Kind, wrong string) {
	if !bytes.HasPrefix(line, recordStart) {
		return r, Garbage, "the line is not a record"
	}
	for _, b := range line {
		if b < 0x20 || b > 0x7e {
			return r, Garbage, "the line holds bytes that are not printable ASCII"
		}
	}
	s := scanner{line: line, at: 1}
	var more [mostMore][]byte
	for k := 0; ; k++ {
		name, value, ok := s.pair()
		if !ok {
			return r, Garbage, "the line is not a whole JSON object of strings and integers"
		}
		if k >= len(always)+mostMore {
			return r, Record, "the record has too many names"
		}
		if wrong = expected(k, name, s.text, more[:max(0, k-len(always))]); wrong == "" {
			wrong = r.keep(k, name, value)
		}
		if wrong != "" {
			return r, Record, wrong
		}
		if k >= len(always) {
			more[k-len(always)] = name
		}
		if s.end() {
			if k+1 < len(always) {
				return r, Record, "the record has no " + always[k+1]
			}
			return r, "", ""
		}
	}
}

// expected tells what is wrong with the name at place k, after those in more.
func expected(k int, name []byte, text bool, more [][]byte) string {
	switch {
	case k < len(always) && (string(name) != always[k] || !text):
		return "the record has no " + always[k] + " in its place"
	case k >= len(always) && twice(name, more):
		return "the record has a name twice"
	}
	return ""
}

// keep takes what is looked at.
func (r *record) keep(k int, name, value []byte) (wrong string) {
	switch {
	case k == atTime:
		if err := r.at.UnmarshalText(value); err != nil || value[len(value)-1] != 'Z' {
			return "the record has no time"
		}
	case k == atOp:
		r.op = value
	case k == atEvent:
		r.event = value
	case k > atEvent && string(name) == "resource":
		r.resource = value
	}
	return ""
}

func twice(name []byte, more [][]byte) bool {
	for _, n := range more {
		if bytes.Equal(n, name) {
			return true
		}
	}
	for _, n := range always {
		if string(name) == n {
			return true
		}
	}
	return false
}

// scanner reads pairs of a JSON object in printable ASCII.
type scanner struct {
	line []byte
	at   int
	text bool // the last value was a string
}

// pair reads "name":value, and what follows it stays.
func (s *scanner) pair() (name, value []byte, ok bool) {
	if name, ok = s.str(); !ok || !s.skip(':') {
		return nil, nil, false
	}
	if s.text = s.at < len(s.line) && s.line[s.at] == '"'; s.text {
		value, ok = s.str()
	} else {
		value, ok = s.integer()
	}
	if !ok || s.at >= len(s.line) {
		return nil, nil, false
	}
	c := s.line[s.at]
	s.at++
	return name, value, c == ',' || c == '}' && s.at == len(s.line)
}

// end tells whether the last pair was the last one.
func (s *scanner) end() bool { return s.at == len(s.line) && s.line[s.at-1] == '}' }

func (s *scanner) skip(c byte) bool {
	if s.at < len(s.line) && s.line[s.at] == c {
		s.at++
		return true
	}
	return false
}

// str reads a string and returns it as it is written.
func (s *scanner) str() ([]byte, bool) {
	if !s.skip('"') {
		return nil, false
	}
	start := s.at
	for s.at < len(s.line) {
		switch s.line[s.at] {
		case '"':
			s.at++
			return s.line[start : s.at-1], true
		case '\\':
			n := escape(s.line[s.at:])
			if n == 0 {
				return nil, false
			}
			s.at += n
		default:
			s.at++
		}
	}
	return nil, false
}

// escape returns the length of the escape that b begins with, 0 for none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), b[1]) < 0 {
			return 0
		}
		return 2
	}
	if len(b) < 6 {
		return 0
	}
	for _, c := range b[2:6] {
		if bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0 {
			return 0
		}
	}
	return 6
}

// integer reads one as JSON writes it.
func (s *scanner) integer() ([]byte, bool) {
	start := s.at
	_ = s.skip('-')
	for s.at < len(s.line) && '0' <= s.line[s.at] && s.line[s.at] <= '9' {
		s.at++
	}
	b := s.line[start:s.at]
	n, err := strconv.ParseInt(string(b), 10, 64)
	return b, err == nil && strconv.FormatInt(n, 10) == string(b)
}
