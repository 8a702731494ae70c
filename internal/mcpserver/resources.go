// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Resources are what a server offers to read beside its tools. Read is required.
type Resources struct {
	List      []Resource
	Templates []Template
	// Read returns what a resource holds: each block of the result is a part.
	// A refusal becomes a protocol error with the same text and code.
	Read func(ctx context.Context, call *Call, uri string) Result
	// Watch, if set, calls changed until stop is called, at once and never after
	// it has told of WatchOver. changed doesn't block. A result that is an error
	// refuses, and then there is no stop.
	Watch func(ctx context.Context, call *Call, uri string, changed func(Change)) (stop func(), refused Result)
}

// Resource is an entry of resources/list. Its texts are ours, but for the URI.
type Resource struct{ URI, Name, Description, MIME string }

// Template is an entry of resources/templates/list. Its texts are ours.
type Template struct{ URITemplate, Name, Description, MIME string }

// resourceNotFound is the number up to 2025-11-25; later it is that of invalid
// params.
const resourceNotFound = -32002

// offer is the Resources of a server with its lists as they are sent.
type offer struct {
	*Resources
	list, templates []byte
	// These stand for the methods among the tools, which name themselves where
	// something goes wrong.
	read, subscribe, listen Tool
}

func newOffer(r *Resources) (*offer, error) {
	if r == nil {
		return nil, nil //nolint:nilnil // a server without resources
	}
	if r.Read == nil {
		return nil, fmt.Errorf("the resources can't be read")
	}
	o := &offer{Resources: r, list: []byte(`"resources":[`), templates: []byte(`"resourceTemplates":[`)}
	for i, e := range r.List {
		o.list = appendOffered(o.list, i, "uri", [4]string{e.URI, e.Name, e.Description, e.MIME})
	}
	for i, e := range r.Templates {
		o.templates = appendOffered(o.templates, i, "uriTemplate", [4]string{e.URITemplate, e.Name, e.Description, e.MIME})
	}
	o.list, o.templates = slices.Clip(append(o.list, ']')), slices.Clip(append(o.templates, ']'))
	for name, t := range map[string]*Tool{"resources/read": &o.read, "resources/subscribe": &o.subscribe, "subscriptions/listen": &o.listen} {
		*t = Tool{Name: name, Class: core.ReadOnly}
	}
	return o, nil
}

func appendOffered(b []byte, i int, key string, texts [4]string) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	b = append(b, '{')
	for j, key := range [4]string{key, "name", "description", "mimeType"} {
		if texts[j] == "" {
			continue
		}
		if j > 0 {
			b = append(b, ',')
		}
		b = append(mcpwire.AppendString(b, key), ':')
		b = mcpwire.AppendString(b, texts[j])
	}
	return append(b, '}')
}

// appendCapability appends what the server says of its resources.
func (o *offer) appendCapability(b []byte) []byte {
	if o == nil {
		return b
	}
	return fmt.Appendf(b, `,"resources":{"subscribe":%t,"listChanged":false}`, o.Watch != nil)
}

// serveResource answers the methods about resources; ok is false for another
// one, and for all on a server that has none.
func (s *Server) serveResource(ctx context.Context, r request) (work func(), ok bool) {
	o := s.resources
	if o == nil {
		return nil, false
	}
	watches := o.Watch != nil
	switch {
	case r.method == "resources/list":
		s.listed(r, o.list)
	case r.method == "resources/templates/list":
		s.listed(r, o.templates)
	case r.method == "resources/read":
		return s.onResource(ctx, r, &o.read, s.readResource), true
	case r.method == "resources/subscribe" && watches && !r.modern:
		return s.subscribe(ctx, r), true
	case r.method == "resources/unsubscribe" && watches && !r.modern:
		s.unsubscribe(r)
	case r.method == "subscriptions/listen" && watches && r.modern:
		return s.listen(ctx, r), true
	default:
		return nil, false
	}
	return nil, true
}

func (s *Server) listed(r request, list []byte) {
	if _, paged := r.params.Get("cursor"); paged {
		s.invalid(r, "the list has one page, so there is no such cursor")
		return
	}
	s.reply(r, func(b []byte) []byte { return s.appendCached(append(b, list...), r.modern) })
}

// onResource registers a request about one resource and returns its work.
func (s *Server) onResource(ctx context.Context, r request, as *Tool, do func(context.Context, *Call, string) []byte) func() {
	uri, err := uriOf(r)
	if err != nil {
		s.invalid(r, fault.As(err).Rule)
		return nil
	}
	ctx, c := s.enter(ctx, r, as)
	if c == nil {
		return nil
	}
	return func() {
		defer c.Session.finish(c)
		defer c.cancel()
		defer c.leave(true)
		if _, err := c.take(ctx, Small, 1); err != nil {
			return
		}
		answer := do(ctx, c, uri)
		if ctx.Err() != nil {
			return // cancelled: no answer may follow
		}
		c.Session.release(c)
		if refused := c.admitted(len(answer)); refused != nil {
			answer = appendError(nil, c.id, refused, 0, "")
		}
		c.answer(answer)
	}
}

// maxURI is the longest URI: that of a name of Linux with every byte escaped,
// and more. It is repeated in answers.
const maxURI = 16 << 10

func uriOf(r request) (string, error) {
	v, _ := r.params.Get("uri")
	uri, err := v.String()
	if err == nil && len(uri) > maxURI {
		err = &fault.Error{Code: fault.RequestInvalid, Rule: "the URI is too long"}
	}
	return uri, err
}

// enter registers a request that isn't answered at once; the call is nil where
// there is no place for it, which is answered.
func (s *Server) enter(ctx context.Context, r request, as *Tool) (context.Context, *Call) {
	c := &Call{Tool: as, Session: r.session, id: r.id, modern: r.modern, send: r.send, admit: r.admit, token: progressToken(r.meta), places: &s.loads, HostSession: hostSession(r.meta)}
	ctx, c.cancel = context.WithCancel(ctx)
	if full := r.session.register(c); full != nil {
		c.cancel()
		s.refuse(r, full, 0, "")
		return ctx, nil
	}
	return ctx, c
}

func (s *Server) readResource(ctx context.Context, c *Call, uri string) []byte {
	reader := *c.Tool
	reader.Call = func(ctx context.Context, c *Call) Result { return s.resources.Read(ctx, c, uri) }
	c.Tool = &reader
	result, bug := s.invoke(ctx, c)
	if bug != nil {
		return appendError(nil, c.id, bug, 0, "")
	}
	if result.IsError {
		return appendRefused(nil, c, uri, &result)
	}
	b := append(openResult(make([]byte, 0, result.size()), c.id, c.modern), `"contents":[`...)
	for i := range result.Content {
		if i > 0 {
			b = append(b, ',')
		}
		b = result.Content[i].appendPart(b, uri)
	}
	b = append(b, ']')
	if c.modern {
		b = append(b, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	return append(appendMeta(b, append(s.serverMeta(c.modern), result.Meta...)), '}', '}')
}

// appendPart appends the block as a part of a resource.
func (c *Content) appendPart(b []byte, uri string) []byte {
	mime := c.mime
	if mime == "" {
		mime = "text/plain"
	}
	b = mcpwire.AppendString(append(b, `{"uri":`...), uri)
	b = mcpwire.AppendString(append(b, `,"mimeType":`...), mime)
	if c.kind == "" {
		b = mcpwire.AppendString(append(b, `,"text":`...), c.text)
	} else {
		b = mcpwire.AppendBase64(append(b, `,"blob":`...), c.data)
	}
	return append(b, '}')
}

// appendRefused appends a refusal as a protocol error: the same text as message,
// and what is in the _meta of a tool's refusal as data, with the URI.
func appendRefused(b []byte, c *Call, uri string, r *Result) []byte {
	b = fmt.Appendf(append(appendHead(b, c.id), `"error":{"code":`...), "%d", refusedNumber(r.refused, c.modern))
	message := ""
	if len(r.Content) > 0 {
		message = r.Content[0].text
	}
	b = mcpwire.AppendString(append(b, `,"message":`...), message)
	b = append(b, `,"data":`...)
	for _, m := range r.Meta {
		if m.Key == errorMeta {
			b = append(append(b, bytes.TrimSuffix(m.Value, []byte{'}'})...), ',')
		}
	}
	if b[len(b)-1] == ':' {
		b = append(b, '{')
	}
	b = mcpwire.AppendString(append(b, `"uri":`...), textsafe.Clean(uri).String())
	return append(b, '}', '}', '}')
}

// refusedNumber is what the specifications fix: a resource that isn't there, and
// what is wrong inside. Anything else that is refused is a fault of the params.
func refusedNumber(code fault.Code, modern bool) int {
	switch {
	case code == fault.PathMissing && !modern:
		return resourceNotFound
	case code == fault.PathMissing || code.Kind() == fault.KindDenial:
		return invalidParams
	case code.RPC() != 0:
		return code.RPC()
	}
	return internalError
}

// KnownRoots returns what the client reported last, without asking it; false
// where it has reported nothing since it said that its roots changed.
func (n *Session) KnownRoots() (Roots, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.hasRoots || !n.byCall && n.ask == nil:
		return Roots{State: RootsNone}, true
	case n.roots == nil:
		return Roots{}, false
	}
	select {
	case <-n.roots.done:
		return n.roots.roots, true
	default:
		return Roots{}, false
	}
}
