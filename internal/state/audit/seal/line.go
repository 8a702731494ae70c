// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// Kind is what a line of a segment is.
type Kind uint8

// The kinds. Every line that doesn't claim to be another kind is a leaf of the
// tree, whatever it holds.
const (
	KindLeaf Kind = iota
	KindCheckpoint
	KindHead
)

var (
	checkpointStart = []byte(`{"checkpoint":"`)
	headStart       = []byte(`{"segment":`)
)

// KindOf tells by its beginning what a line claims to be. A head is one only
// as the first line of a segment.
func KindOf(line []byte) Kind {
	switch {
	case bytes.HasPrefix(line, checkpointStart):
		return KindCheckpoint
	case bytes.HasPrefix(line, headStart):
		return KindHead
	default:
		return KindLeaf
	}
}

// Head is the first line of a segment: where in the tree it begins.
type Head struct {
	Segment int       // the number in the file's name
	Time    time.Time // when it was begun
	Note    string    // the checkpoint that it goes on from
	Edge    Edge      // of the tree of that checkpoint
}

type headJSON struct {
	Segment    int       `json:"segment"`
	Time       time.Time `json:"t"`
	Checkpoint string    `json:"checkpoint"`
	Edge       []Hash    `json:"edge"`
}

type checkpointJSON struct {
	Checkpoint string `json:"checkpoint"`
}

// Line returns the head as a line, without its line end.
func (h Head) Line() []byte {
	return encode(headJSON{h.Segment, h.Time.UTC(), h.Note, append([]Hash{}, h.Edge.roots...)})
}

// Line returns the checkpoint as a line of a segment, without its line end.
func (c Checkpoint) Line() []byte { return encode(checkpointJSON{c.Note}) }

// ParseHead reads a head. Only the bytes that Line gives are taken.
func ParseHead(line []byte) (Head, error) {
	var j headJSON
	if err := json.Unmarshal(line, &j); err != nil {
		return Head{}, ErrFormat
	}
	c, err := Peek(j.Checkpoint)
	if err != nil {
		return Head{}, err
	}
	edge, err := NewEdge(c.Size, j.Edge)
	if err != nil {
		return Head{}, err
	}
	h := Head{j.Segment, j.Time.UTC(), j.Checkpoint, edge}
	if y := h.Time.Year(); y < 0 || y > 9999 { // what UTC made of a time that JSON took
		return Head{}, ErrFormat
	}
	if !bytes.Equal(h.Line(), line) {
		return Head{}, ErrFormat
	}
	if edge.Root() != c.Root {
		return Head{}, errors.New("the edge is not that of the checkpoint")
	}
	return h, nil
}

// ParseCheckpoint returns the note in a checkpoint line. Only the bytes that
// Line gives are taken. The signature is not looked at.
func ParseCheckpoint(line []byte) (Checkpoint, error) {
	var j checkpointJSON
	if err := json.Unmarshal(line, &j); err != nil {
		return Checkpoint{}, ErrFormat
	}
	c, err := Peek(j.Checkpoint)
	if err == nil && !bytes.Equal(c.Line(), line) {
		return Checkpoint{}, ErrFormat
	}
	return c, err
}

// encode is JSON in printable ASCII.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and a time in range
	}
	out := make([]byte, 0, len(b)+8)
	for _, r := range string(b) {
		if r < 0x7f {
			out = append(out, byte(r))
			continue
		}
		const hex = "0123456789abcdef" // a note holds nothing beyond the basic plane
		out = append(out, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
	}
	return out
}
