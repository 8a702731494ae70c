// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/textsafe"
)

// Kind says what the bytes are. The list is closed; the zero value and any
// number beyond it is "unknown", which is treated like all kinds but File.
type Kind uint8

// The kinds. File is the content of a file, which keeps its control and hidden
// characters since an edit must be able to name them.
const (
	Unknown Kind = iota
	File
	Listing
	Search
	ToolResult
	ToolOutput
	ToolError
	Page
	kindCount
)

var kindNames = [kindCount]string{
	"unknown", "file", "listing", "search", "tool_result", "tool_output", "tool_error", "page",
}

// String returns the spelling in the envelope.
func (k Kind) String() string {
	if k >= kindCount {
		return kindNames[Unknown]
	}
	return kindNames[k]
}

// maxAttribute is the longest attribute in bytes, after escaping: enough for
// any name that a person reads, too little to hold a second message.
const maxAttribute = 200

// Wrapped is text from outside that is safe to hand to a model. Only this
// package makes it; the zero value is empty.
type Wrapped struct{ s string }

// String returns the text with its envelope, or without one if Bare made it.
func (w Wrapped) String() string { return w.s }

// Wrap puts body in an envelope. Source is the canonical name of its origin;
// an etag of "" leaves that attribute out. Both may hold any bytes: they
// become one line, HTML-escaped, of at most 200 bytes.
func Wrap(kind Kind, source, etag, body string) Wrapped {
	return envelope(freshNonce(randomNonce, body), kind, source, etag, body)
}

// Bare is what Wrap would put in the envelope, for a client that turned
// envelopes off: look-alikes are escaped and, for every kind but File, the
// text is a textsafe.Text.
func Bare(kind Kind, body string) Wrapped { return BareAll(kind, body)[0] }

// BareAll is Bare for the blocks of one answer: clients join them, so a tag
// that is cut over several blocks counts as one.
func BareAll(kind Kind, bodies ...string) []Wrapped {
	s := scanner{}
	texts := make([]string, len(bodies))
	base := 0
	for i, body := range bodies {
		texts[i] = drawable(kind, body)
		s.feed(texts[i], base)
		base += len(texts[i])
	}
	wrapped := make([]Wrapped, len(bodies))
	base = 0
	for i, text := range texts {
		n := s.before(base + len(text))
		wrapped[i].s = escape(text, s.hits[:n], base)
		s.hits = s.hits[n:]
		base += len(text)
	}
	return wrapped
}

func randomNonce() (n [4]byte) {
	rand.Read(n[:]) // never fails: the program ends instead
	return n
}

// freshNonce draws until the nonce doesn't occur in body.
func freshNonce(draw func() [4]byte, body string) string {
	for {
		n := draw()
		if nonce := hex.EncodeToString(n[:]); !strings.Contains(body, nonce) {
			return nonce
		}
	}
}

func envelope(nonce string, kind Kind, source, etag, body string) Wrapped {
	hidden := textsafe.Hidden(body)
	text := drawable(kind, body)
	var s scanner
	s.feed(text, 0)

	var b strings.Builder
	b.Grow(len(text) + len(s.hits)*len(escaped) + 2*maxAttribute + 128)
	b.WriteString("<untrusted-")
	b.WriteString(nonce)
	attribute(&b, "kind", kind.String())
	attribute(&b, "source", value(source))
	if etag != "" {
		attribute(&b, "etag", value(etag))
	}
	if hidden > 0 {
		attribute(&b, "hidden", strconv.Itoa(hidden))
	}
	b.WriteString(">\n")
	writeEscaped(&b, text, s.hits, 0)
	b.WriteString("\n</untrusted-")
	b.WriteString(nonce)
	b.WriteByte('>')
	return Wrapped{b.String()}
}

func drawable(kind Kind, body string) string {
	if kind == File {
		return body
	}
	return textsafe.Block(body).String()
}

func attribute(b *strings.Builder, name, value string) {
	b.WriteByte(' ')
	b.WriteString(name)
	b.WriteString(`="`)
	b.WriteString(value)
	b.WriteByte('"')
}

// value makes an attribute's value: one line, escaped, not too long, and cut
// neither inside an entity nor inside a code point.
func value(s string) string {
	line := textsafe.Clean(s).HTML()
	var look scanner
	look.feed(line, 0)
	line = escape(line, look.hits, 0)
	if len(line) <= maxAttribute {
		return line
	}
	cut := maxAttribute
	for !utf8.RuneStart(line[cut]) {
		cut--
	}
	line = line[:cut]
	if amp := strings.LastIndexByte(line, '&'); amp >= 0 && !strings.Contains(line[amp:], ";") {
		line = line[:amp]
	}
	return line
}
