// SPDX-License-Identifier: Apache-2.0

package mcpwire

import (
	"encoding/json"
	"strconv"

	"github.com/postern-gate/postern/core/fault"
)

// Object is a JSON object in its own bytes: members in their order, keys found
// by exact match only, nothing folded, numbers as text. The zero value is an
// object without members.
type Object struct {
	raw     []byte
	at      string
	members []Member
}

// Member is one key, unescaped, with its value.
type Member struct {
	Key   string
	Value Value
}

// Value is one JSON value in its own bytes. The zero value stands for a member
// that is absent; each decoder refuses it.
//
// A decoder takes exactly one type and converts nothing. Its errors are
// *fault.Error with the code request.invalid and say where the value stands.
type Value struct {
	raw         []byte
	within, key string // where it stands, joined only for an error
}

// path is where the value stands, as edits[0].oldText.
func (v Value) path() string {
	if v.within == "" {
		return v.key
	}
	return v.within + "." + v.key
}

// NewObject takes apart one JSON object. It refuses what Parse refuses, and
// keys that are equal under case folding at its top level. Nil raw is the
// object without members.
func NewObject(raw []byte) (Object, error) { return newObject(raw, "") }

func newObject(raw []byte, at string) (Object, error) {
	o := Object{raw: raw, at: at}
	if raw == nil {
		return o, nil
	}
	var stack [16][]byte
	s := scanner{b: raw, keys: stack[:0]}
	o.members = make([]Member, 0, 4)
	if s.peek() != '{' {
		return Object{}, invalid(at, "must be an object")
	}
	ok := s.object(guarded, func(key, value []byte) {
		k := string(key)
		o.members = append(o.members, Member{k, Value{value, at, k}})
	})
	if s.space(); !ok || s.flaw != "" || s.i < len(raw) {
		return Object{}, invalid(at, "is not one well-formed object: "+s.flaw+s.bad)
	}
	return o, nil
}

func invalid(at, what string) error {
	if at == "" {
		at = "it"
	}
	return &fault.Error{Code: fault.RequestInvalid, Rule: at + " " + what}
}

// Raw returns the object's own bytes, nil for one without.
func (o Object) Raw() []byte { return o.raw }

// Members returns the members in their order; the slice must not be changed.
func (o Object) Members() []Member { return o.members }

// Get returns the value of key, matched byte for byte, or the absent value
// that still knows its name.
func (o Object) Get(key string) (Value, bool) {
	for _, m := range o.members {
		if m.Key == key {
			return m.Value, true
		}
	}
	return Value{within: o.at, key: key}, false
}

// Only returns an error that names the first member whose key isn't in keys.
func (o Object) Only(keys ...string) error {
next:
	for _, m := range o.members {
		for _, key := range keys {
			if m.Key == key {
				continue next
			}
		}
		return invalid(m.Value.path(), "is not a parameter of this tool")
	}
	return nil
}

// Raw returns the value's own bytes, nil if it is absent.
func (v Value) Raw() json.RawMessage { return v.raw }

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return string(v.raw) == "null" }

func (v Value) first() byte {
	if len(v.raw) == 0 {
		return 0
	}
	return v.raw[0]
}

// wrong is the error of a decoder for the type that was wanted.
func (v Value) wrong(want string) error {
	if v.raw == nil {
		return invalid(v.path(), "is missing; it must be "+want)
	}
	return invalid(v.path(), "must be "+want)
}

// String decodes a string.
func (v Value) String() (string, error) {
	if v.first() != '"' {
		return "", v.wrong("a string")
	}
	return decodeText(v.raw), nil
}

// Bool decodes true and false; 1 and "true" are neither.
func (v Value) Bool() (bool, error) {
	switch string(v.raw) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, v.wrong("true or false")
}

// Int decodes an integer of 64 bits, written without fraction and exponent.
func (v Value) Int() (int64, error) {
	if c := v.first(); c != '-' && (c < '0' || c > '9') {
		return 0, v.wrong("an integer")
	}
	n, err := strconv.ParseInt(string(v.raw), 10, 64)
	if err != nil {
		return 0, v.wrong("an integer of 64 bits without fraction or exponent")
	}
	return n, nil
}

// Object takes an object apart, as NewObject does.
func (v Value) Object() (Object, error) {
	if v.first() != '{' {
		return Object{}, v.wrong("an object")
	}
	return newObject(v.raw, v.path())
}

// Array returns the elements of an array in their order.
func (v Value) Array() ([]Value, error) {
	if v.first() != '[' {
		return nil, v.wrong("an array")
	}
	var stack [16][]byte
	s := scanner{b: v.raw, keys: stack[:0]}
	values := []Value{}
	at := v.path()
	s.array(func(value []byte) {
		values = append(values, Value{raw: value, key: at + "[" + strconv.Itoa(len(values)) + "]"})
	})
	return values, nil
}
