// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// position is a place in a list, a tree or a search: what was told last. The
// zero value is before the first.
type position struct {
	path string // relative to where the walk began
	past bool   // with all beneath it
	// n is the line of the file up to which it was told, 0 for all of it; of a
	// listing by size the size.
	n   int64
	tag uint64 // of the file's state
}

// A cursor is a position with the digest of the request that it belongs to.
// Nothing in it is trusted: what it leads to is judged like anything else. It
// is drawn over a random pad, so that no file's name can choose how it reads.
const (
	cursorVersion = 1
	padBytes      = 8
	digestBytes   = 8
	// cursorHead is the version, the digest, past, n and tag.
	cursorHead = 1 + digestBytes + 1 + 8 + 8
	maxCursor  = 8 << 10
)

// digest stands for a request without what differs from page to page.
func (c *call) digest() []byte {
	a := c.args
	a.cursor, a.limit = "", count{}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %#v", c.tool.name, a))
	return sum[:digestBytes]
}

// cursor is the text that leads to the position.
func (c *call) cursor(p position) string {
	b := append([]byte{cursorVersion}, c.digest()...)
	past := byte(0)
	if p.past {
		past = 1
	}
	b = append(b, past)
	b = binary.BigEndian.AppendUint64(b, uint64(p.n)) //nolint:gosec // the same bits come back
	b = binary.BigEndian.AppendUint64(b, p.tag)
	b = append(b, p.path...)
	pad := make([]byte, padBytes, padBytes+len(b))
	_, _ = rand.Read(pad) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(append(pad, masked(pad, b)...))
}

// masked takes a text under its pad, or out of it.
func masked(pad, b []byte) []byte {
	out := make([]byte, len(b))
	for i := 0; i < len(b); i += sha256.Size {
		block := sha256.Sum256(binary.BigEndian.AppendUint64(pad[:padBytes:padBytes], uint64(i))) //nolint:gosec // not negative
		for j := i; j < min(len(b), i+sha256.Size); j++ {
			out[j] = b[j] ^ block[j-i]
		}
	}
	return out
}

// position is where the call's cursor leads, before the first without one.
func (c *call) position() (position, error) {
	if c.args.cursor == "" {
		return position{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.args.cursor)
	if err != nil || len(c.args.cursor) > maxCursor || len(raw) < padBytes+cursorHead {
		return position{}, invalid("the cursor is none of ours", "send it as it was given, or leave it out to begin anew")
	}
	b := masked(raw[:padBytes], raw[padBytes:])
	if b[0] != cursorVersion || string(b[1:1+digestBytes]) != string(c.digest()) {
		return position{}, invalid("the cursor belongs to another request", "repeat all other arguments as they were, or leave it out to begin anew")
	}
	b = b[1+digestBytes:]
	return position{
		past: b[0] == 1, n: int64(binary.BigEndian.Uint64(b[1:])), tag: binary.BigEndian.Uint64(b[9:]), //nolint:gosec // its own bits
		path: string(b[cursorHead-1-digestBytes:]),
	}, nil
}

// page is what the call says of its page.
func (c *call) page() (from position, most int, err error) {
	if c.args.limit.given && c.args.limit.n == 0 {
		return from, 0, invalid("limit must be at least 1", "leave it out for no limit of your own")
	}
	from, err = c.position()
	return from, int(min(c.args.limit.n, 1<<30)), err
}

// relation is where a path lies, seen from a position.
type relation uint8

const (
	passed relation = iota // told, with all beneath it
	onWay                  // told, but not all beneath it
	onward                 // not told yet
)

func (p *position) relation(path string) relation {
	switch {
	case p.path == "":
		return onward
	case path == p.path && p.past:
		return passed
	case path == p.path, strings.HasPrefix(p.path, path) && p.path[len(path)] == '/':
		return onWay
	case strings.HasPrefix(path, p.path) && path[len(p.path)] == '/':
		if p.past {
			return passed
		}
		return onward
	}
	if comparePaths(path, p.path) < 0 {
		return passed
	}
	return onward
}

// comparePaths is the order of a walk: by the bytes of each component.
func comparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if order := strings.Compare(x, y); order != 0 {
			return order
		}
		switch {
		case moreA && moreB:
			a, b = restA, restB
		case moreA:
			return 1
		case moreB:
			return -1
		default:
			return 0
		}
	}
}

// refer makes the reply lead on to the position.
func (c *call) refer(r *reply, p position) {
	cursor := c.cursor(p)
	r.notes = append(r.notes, "next: the same call with cursor "+cursor)
	r.next = fmt.Appendf(nil, `{"cursor":%q}`, cursor)
}
