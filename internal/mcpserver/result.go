// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"encoding/json"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Content is one block of a result. It is made by the functions below, each of
// which says where its bytes come from; the zero value is an empty text.
type Content struct {
	kind string
	text string
	data []byte
	mime string
	uri  string
}

// Own is a text block in our own words, made drawable by textsafe.
func Own(text textsafe.Text) Content { return Content{text: text.String()} }

// Outside is a text block with bytes from outside.
func Outside(text untrusted.Wrapped) Content { return Content{text: text.String()} }

// Image is an image block. The data must not change any more.
func Image(mime textsafe.Line, data []byte) Content {
	return Content{kind: "image", mime: mime.String(), data: data}
}

// Audio is an audio block. The data must not change any more.
func Audio(mime textsafe.Line, data []byte) Content {
	return Content{kind: "audio", mime: mime.String(), data: data}
}

// Blob is an embedded resource with binary content. The data must not change
// any more.
func Blob(uri, mime textsafe.Line, data []byte) Content {
	return Content{kind: "resource", uri: uri.String(), mime: mime.String(), data: data}
}

func (c *Content) append(b []byte) []byte {
	switch c.kind {
	case "":
		b = append(b, `{"type":"text","text":`...)
		return append(mcpwire.AppendString(b, c.text), '}')
	case "resource":
		b = mcpwire.AppendString(append(b, `{"type":"resource","resource":{"uri":`...), c.uri)
		b = mcpwire.AppendString(append(b, `,"mimeType":`...), c.mime)
		b = mcpwire.AppendBase64(append(b, `,"blob":`...), c.data)
		return append(b, '}', '}')
	}
	b = mcpwire.AppendString(append(b, `{"type":`...), c.kind)
	b = mcpwire.AppendString(append(b, `,"mimeType":`...), c.mime)
	b = mcpwire.AppendBase64(append(b, `,"data":`...), c.data)
	return append(b, '}')
}

// size is how many bytes the block takes in a message, or a few more: a large
// one is then encoded in memory of its own length.
func (c *Content) size() int { return mcpwire.TextLen(c.text) + len(c.data)/3*4 + 256 }

// Meta is one entry of a result's _meta. The key has a prefix, as
// "dev.postern/result"; the value is JSON.
type Meta struct {
	Key   string
	Value json.RawMessage
}

// Result is what a tool answers. The zero value is an empty success.
type Result struct {
	Content []Content
	IsError bool
	// Structured is a JSON object whose strings are scrubbed, or nil. Clients
	// show it instead of the text, so it is set only with the envelope off.
	Structured json.RawMessage
	Meta       []Meta

	refused fault.Code // of a Refusal
}

// errorMeta is where a refusal has its code, rule and record.
const errorMeta = "dev.postern/error"

// Refusal is the result of a call that was refused or failed: the three lines
// as text, and code, rule and the id of the record in _meta. The rule is the one
// of the policy that decided, and "" where none did: the text says why then. A
// record of "" leaves the id out.
func Refusal(err *fault.Error, record string) Result {
	rule := ""
	if err.Code == fault.PolicyDenied || err.Code == fault.PolicyAsk {
		rule = err.Rule
	}
	b := mcpwire.AppendString([]byte(`{"code":`), err.Code.String())
	b = mcpwire.AppendString(append(b, `,"rule":`...), textsafe.Clean(rule).String())
	if record != "" {
		b = mcpwire.AppendString(append(b, `,"id":`...), record)
	}
	return Result{
		Content: []Content{Own(textsafe.Block(err.Lines()))},
		IsError: true,
		Meta:    []Meta{{errorMeta, append(b, '}')}},
		refused: err.Code,
	}
}

// append appends the members of the result, which meta precedes in _meta.
func (r *Result) append(b []byte, meta []Meta) []byte {
	b = append(b, `"content":[`...)
	for i := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.Content[i].append(b)
	}
	b = append(b, ']')
	if r.Structured != nil {
		b = append(append(b, `,"structuredContent":`...), r.Structured...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return appendMeta(b, append(meta, r.Meta...))
}

func appendMeta(b []byte, meta []Meta) []byte {
	for i, m := range meta {
		if i == 0 {
			b = append(b, `,"_meta":{`...)
		} else {
			b = append(b, ',')
		}
		b = append(append(mcpwire.AppendString(b, m.Key), ':'), m.Value...)
		if i == len(meta)-1 {
			b = append(b, '}')
		}
	}
	return b
}

func (r *Result) size() int {
	n := len(r.Structured) + 512
	for i := range r.Content {
		n += r.Content[i].size()
	}
	return n
}
