// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// reply is what a tool answers, before it is marked.
type reply struct {
	// body is text with bytes from outside, of the given kind: it is wrapped
	// whole. source is the canonical name that it comes from.
	body         string
	kind         untrusted.Kind
	source, etag string
	// blocks are several texts instead, each marked for itself, so that none can
	// pass for a part of another.
	blocks []piece
	// own is the text instead where kind is untrusted.Unknown: our words and
	// the caller's own path.
	own   string
	media *mcpserver.Content
	// notes say in our words what isn't in the body.
	notes []string
	// structured is a JSON object, used only without envelopes.
	structured []byte
	// next is a JSON object with the arguments that lead on, if there is more.
	next    []byte
	outcome enforce.Outcome
}

// piece is a file of several, or our words about one.
type piece struct{ source, etag, body, own string }

// outside makes a text block of text from outside.
func (s *server) outside(kind untrusted.Kind, source, etag, body string) mcpserver.Content {
	if s.o.Bare {
		return mcpserver.Outside(untrusted.Bare(kind, body))
	}
	return mcpserver.Outside(untrusted.Wrap(kind, source, etag, body))
}

// own makes a text block of our words. They may repeat the caller's own path,
// so what looks like an envelope in it is defused.
func own(text string) mcpserver.Content {
	return mcpserver.Outside(untrusted.Bare(untrusted.ToolResult, text))
}

// result marks a reply.
func (s *server) result(r reply) mcpserver.Result {
	s.cut(&r)
	var res mcpserver.Result
	switch {
	case r.media != nil:
		res.Content = append(res.Content, *r.media)
	case r.blocks != nil:
		for _, b := range r.blocks {
			if b.own != "" {
				res.Content = append(res.Content, own(b.own))
				continue
			}
			res.Content = append(res.Content, s.outside(r.kind, b.source, b.etag, b.body))
		}
	case r.kind == untrusted.Unknown:
		res.Content = append(res.Content, own(r.own))
	default:
		res.Content = append(res.Content, s.outside(r.kind, r.source, r.etag, r.body))
	}
	if s.o.Bare {
		res.Structured = r.structured
	}
	if r.outcome.Etag == "" {
		r.outcome.Etag = r.etag
	}
	if r.next != nil {
		res.Meta = append(res.Meta, mcpserver.Meta{Key: "dev.postern/next", Value: r.next})
	}
	s.conclude(&res, r.outcome, r.notes)
	return res
}

// cut keeps a text within the limit for answers, which counts it as it is sent:
// of a file between two characters, of a list between two lines.
func (s *server) cut(r *reply) {
	end := mcpwire.Fit(r.body, int(s.o.Answer))
	if end == len(r.body) {
		return
	}
	for end > 0 && !utf8.RuneStart(r.body[end]) {
		end--
	}
	if r.kind != untrusted.File {
		end = max(0, strings.LastIndexByte(r.body[:end], '\n'))
	}
	r.notes = append(r.notes, "cut after "+strconv.Itoa(end)+" of "+strconv.Itoa(len(r.body))+" bytes, the limit of an answer")
	r.body, r.structured, r.outcome.Partial = r.body[:end], nil, true
}

// conclude adds what the outcome has to say, for programs in _meta and for
// models as text. A place that a walk stopped at is a name from outside.
func (s *server) conclude(res *mcpserver.Result, o enforce.Outcome, notes []string) {
	if meta, err := json.Marshal(o); err == nil && string(meta) != "{}" {
		res.Meta = append(res.Meta, mcpserver.Meta{Key: "dev.postern/result", Value: meta})
	}
	text := strings.Join(append(notes, o.Lines()...), "\n")
	switch {
	case text == "":
	case o.AbortedAt != "":
		res.Content = append(res.Content, s.outside(untrusted.ToolResult, o.AbortedAt, "", text))
	default:
		res.Content = append(res.Content, own(text))
	}
}

// refusal is a refused or failed call: the three lines about the path that the
// caller sent, in its canonical form if it has one, and what may be known of it
// from outside in a block of its own.
func (s *server) refusal(c *call, f fault.Error, o enforce.Outcome, detail string) mcpserver.Result {
	source := c.canonical(c.spelling())
	switch {
	case c.owns(f.Resource):
		f.Resource = c.canonical(f.Resource)
		source = f.Resource
	case c.mayName(f.Resource):
		source = f.Resource
		detail = strings.TrimSuffix(textsafe.Name(f.Resource)+"\n"+detail, "\n")
		fallthrough
	default:
		f.Resource = c.canonical(c.spelling())
	}
	res := mcpserver.Refusal(&f, f.ID)
	lines := textsafe.Block(f.Lines()).String()
	switch {
	case detail == "":
		res.Content = []mcpserver.Content{own(lines)}
	case s.o.Bare:
		blocks := untrusted.BareAll(untrusted.ToolError, lines, detail)
		res.Content = []mcpserver.Content{mcpserver.Outside(blocks[0]), mcpserver.Outside(blocks[1])}
	default:
		res.Content = []mcpserver.Content{own(lines), mcpserver.Outside(untrusted.Wrap(untrusted.ToolError, source, "", detail))}
	}
	s.conclude(&res, o, nil)
	return res
}
