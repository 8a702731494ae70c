// SPDX-License-Identifier: Apache-2.0

// Package records reads an audit log for people and programs that want to know
// what happened: it parses its lines, chooses among them, and follows a log
// that grows. It only reads, and it takes no lock.
//
// Not guaranteed: that a log is whole. Package verify tells that.
package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// ErrNotRecord is the error for a line that isn't one.
var ErrNotRecord = errors.New("not a record")

// Record is what one line of the log tells. The fields have the names of the
// file, docs/log.md says what they mean.
type Record struct {
	Time     time.Time
	Agent    string
	Op       string
	Decision string
	Reason   string
	Source   string
	Session  string
	Corr     string
	Policy   string
	Level    string
	Event    string

	// These are there only where a record has something to say.
	Resource string
	Code     string
	Was      string
	Found    string
	Undoes   string
	N        int64
	Approval string
	Kind     string
	Approver string
	Shown    string
	Folder   string
}

// start is how every record begins.
var start = []byte(`{"t":"`)

// field is one of the names that are known, and where its text goes.
type field struct {
	name string
	text *string
}

// required are the fields that every record has besides its time.
const required = 10

func (r *Record) fields() [required + 10]field {
	return [...]field{
		{"agent", &r.Agent},
		{"op", &r.Op},
		{"decision", &r.Decision},
		{"reason", &r.Reason},
		{"source", &r.Source},
		{"session", &r.Session},
		{"corr", &r.Corr},
		{"policy", &r.Policy},
		{"level", &r.Level},
		{"event", &r.Event},
		{"resource", &r.Resource},
		{"code", &r.Code},
		{"was", &r.Was},
		{"found", &r.Found},
		{"approval", &r.Approval},
		{"kind", &r.Kind},
		{"approver", &r.Approver},
		{"shown", &r.Shown},
		{"undoes", &r.Undoes},
		{"folder", &r.Folder},
	}
}

// Parse reads a line without its end. A record is one JSON object in printable
// ASCII that begins with its time, has no blanks between its members, has
// every required field and no known field twice. Names count byte for byte.
// Fields that are not known are left out, since a newer version may add some.
// Any other line is ErrNotRecord. Because of its alphabet a line that parses
// can be shown as it is.
func Parse(line []byte) (Record, error) {
	if !bytes.HasPrefix(line, start) || !printable(line) || !json.Valid(line) {
		return Record{}, ErrNotRecord
	}
	var r Record
	fields := r.fields()
	seen := 0 // a bit a field, those of time and n last
	for rest := line[1:]; len(rest) > 1; {
		var name, value []byte
		name, rest = cut(rest)
		if len(rest) < 2 || rest[0] != ':' {
			return Record{}, ErrNotRecord // a blank
		}
		value, rest = cut(rest[1:])
		if len(rest) > 1 && rest[0] == ',' {
			rest = rest[1:]
		}
		bit, err := r.take(fields[:], name, value)
		if err != nil || seen&bit != 0 {
			return Record{}, ErrNotRecord
		}
		seen |= bit
	}
	if seen&(1<<required-1) != 1<<required-1 {
		return Record{}, ErrNotRecord
	}
	return r, nil
}

// take sets the field with that name. It returns the field's bit, 0 for a
// field that isn't known.
func (r *Record) take(fields []field, name, value []byte) (int, error) {
	key := name
	if bytes.IndexByte(name, '\\') >= 0 {
		plain, err := unquoted(name)
		if err != nil {
			return 0, err
		}
		key = []byte(`"` + plain + `"`)
	}
	key = key[1 : len(key)-1]
	var err error
	for i, f := range fields {
		if f.name == string(key) {
			*f.text, err = unquoted(value)
			return 1 << i, err
		}
	}
	switch string(key) {
	case "t":
		var at string
		if at, err = unquoted(value); err == nil {
			r.Time, err = time.Parse(time.RFC3339Nano, at)
		}
		return 1 << len(fields), err
	case "n":
		r.N, err = strconv.ParseInt(string(value), 10, 64)
		return 1 << (len(fields) + 1), err
	}
	return 0, nil
}

// printable reports whether the line holds nothing but printable ASCII.
func printable(line []byte) bool {
	for _, c := range line {
		if c < 0x20 || c > 0x7e {
			return false
		}
	}
	return true
}

// cut splits JSON that is known to be valid after its first value, which
// begins at its first byte.
func cut(b []byte) (value, rest []byte) {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return b[:i], b[i:] // the end of what it is in, after a number
			}
			depth--
		case ',':
			if depth == 0 {
				return b[:i], b[i:]
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return b[:i+1], b[i+1:]
		}
	}
	return b, nil
}

// unquoted is the text of a JSON string. Half of a surrogate pair becomes
// U+FFFD.
func unquoted(b []byte) (string, error) {
	if len(b) < 2 || b[0] != '"' {
		return "", ErrNotRecord
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1]), nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}
