// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// Revisions of the protocol, newest first. The stateless one is negotiated by
// request, the others by initialize.
const stateless = "2026-07-28"

var versions = [...]string{stateless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Keys of a request's _meta in the stateless era.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// request is one request with its params taken apart once.
type request struct {
	session *Session
	id      mcpwire.ID
	method  string
	params  mcpwire.Object
	meta    mcpwire.Object
	modern  bool
	send    Send
	admit   admit
	flaw    error   // of params or _meta
	status  *status // what HTTP says beside the answer; nil on other transports
}

// status is the HTTP status of an answer. An error of the envelope is one of
// the request itself in the stateless era; one of what it asks for is not.
type status int

func (st *status) set(code int) {
	if st != nil {
		*st = status(code)
	}
}

// maxEcho is how many bytes of a client's own word an error repeats.
const maxEcho = 64

// name is the method as an error names it.
func (r request) name() string {
	if len(r.method) > maxEcho {
		return ""
	}
	return r.method
}

// Dispatch takes one frame of a session. Everything but the work of a tool is
// done when it returns, so that later frames find the call in flight; what is
// returned, if not nil, is that work, to be run once, at once or in a goroutine.
// Answers and progress go to send. The call ends with ctx, with the session or
// when the client cancels it.
func (s *Server) Dispatch(ctx context.Context, n *Session, frame []byte, send Send) func() {
	m, bad := mcpwire.Parse(frame)
	if bad != nil {
		s.malformed(n, bad, send)
		return nil
	}
	switch m.Kind {
	case mcpwire.Response:
		n.deliver(m)
	case mcpwire.Notification:
		s.notified(n, m)
	case mcpwire.Request:
		return s.requested(ctx, newRequest(n, m, send))
	case mcpwire.Invalid:
	}
	return nil
}

// malformed answers a frame that is no message, unless it looks like a response.
func (s *Server) malformed(n *Session, bad *mcpwire.Error, send Send) {
	if !bad.Unanswerable {
		err := &fault.Error{Code: fault.FrameInvalid, Rule: bad.Reason}
		s.refuse(request{session: n, id: bad.ID, send: send}, err, bad.Number, "")
	}
}

// newRequest takes the params of a request apart; what is wrong with them is
// answered by requested.
func newRequest(n *Session, m mcpwire.Message, send Send) request {
	r := request{session: n, id: m.ID, method: m.Method, send: send}
	if r.params, r.flaw = mcpwire.NewObject(m.Params); r.flaw == nil {
		if meta, present := r.params.Get("_meta"); present {
			r.meta, r.flaw = meta.Object()
		}
	}
	return r
}

// Oversized answers a line that was too long to read.
func (s *Server) Oversized(n *Session, e *mcpwire.TooLong, send Send) {
	err := &fault.Error{Code: fault.LimitExceeded, Rule: e.Error()}
	s.refuse(request{session: n, id: e.ID, send: send}, err, mcpwire.InvalidRequest, "")
}

// refuse answers with a protocol error and has it recorded.
func (s *Server) refuse(r request, err *fault.Error, number int, extra string) {
	err.Resource = r.name()
	s.refused(r.session, err)
	buf := s.buffer()
	defer s.keep(buf)
	*buf = appendError(*buf, r.id, err, number, extra)
	_ = r.send(*buf) // a transport that fails ends the session itself
}

func (s *Server) invalid(r request, rule string) {
	s.refuse(r, &fault.Error{Code: fault.RequestInvalid, Rule: rule}, invalidParams, "")
}

// reply answers with what fill appends.
func (s *Server) reply(r request, fill func(b []byte) []byte) {
	buf := s.buffer()
	defer s.keep(buf)
	*buf = fill(openResult(*buf, r.id, r.modern))
	_ = r.send(*buf) // a transport that fails ends the session itself
}

// notified takes a notification; one that is malformed or unknown is ignored,
// as the protocol asks.
func (s *Server) notified(n *Session, m mcpwire.Message) {
	switch m.Method {
	case "notifications/cancelled":
		if params, err := mcpwire.NewObject(m.Params); err == nil {
			id, _ := params.Get("requestId")
			n.abandon(mcpwire.ID(id.Raw()))
		}
	case "notifications/initialized", "notifications/roots/list_changed":
		n.refreshRoots()
	}
}

// requested finds the era of a request and passes it on.
func (s *Server) requested(ctx context.Context, r request) func() {
	if r.flaw != nil {
		s.invalid(r, fault.As(r.flaw).Rule)
		return nil
	}
	version, present := r.meta.Get(metaVersion)
	switch {
	case present && (r.session.apart || r.method != "initialize"):
		return s.stateless(ctx, r, version)
	case r.session.apart:
		s.invalid(r, "_meta does not hold "+metaVersion)
	case r.method == "initialize":
		s.initialize(r)
	case r.method == "ping":
		s.reply(r, func(b []byte) []byte { return append(b, '}', '}') })
	case r.session.Version() == "":
		s.invalid(r, "neither has initialize opened a session nor does _meta hold "+metaVersion)
	default:
		return s.serve(ctx, r)
	}
	return nil
}

// stateless serves a request of the stateless era.
func (s *Server) stateless(ctx context.Context, r request, version mcpwire.Value) func() {
	r.modern = true
	asked, err := version.String()
	if err != nil {
		s.invalid(r, fault.As(err).Rule)
		return nil
	}
	if asked != stateless {
		s.refuse(r, &fault.Error{Code: fault.RequestInvalid, Rule: wrongVersion}, unsupportedVersion, unsupported(asked))
		return nil
	}
	capabilities, _ := r.meta.Get(metaCapabilities)
	if _, err := capabilities.Object(); err != nil {
		s.invalid(r, fault.As(err).Rule)
		return nil
	}
	r.status.set(http.StatusOK)
	if r.method == "server/discover" {
		s.reply(r, func(b []byte) []byte {
			b = append(appendVersions(append(b, `"supportedVersions":`...)), ',')
			return s.appendCached(append(b, s.intro...), true)
		})
		return nil
	}
	return s.serve(ctx, r)
}

const wrongVersion = "the protocol version is not supported"

// unsupported are the members of data beside a version that is not spoken here.
func unsupported(asked string) string {
	return `,"supported":` + string(appendVersions(nil)) + `,"requested":` +
		string(mcpwire.AppendString(nil, asked[:min(len(asked), maxEcho)]))
}

func appendVersions(b []byte) []byte {
	for i, v := range versions {
		b = mcpwire.AppendString(append(b, "[,"[min(i, 1)]), v)
	}
	return append(b, ']')
}

// initialize opens the session of an older revision.
func (s *Server) initialize(r request) {
	asked, _ := r.params.Get("protocolVersion")
	version, err := asked.String()
	if err != nil {
		s.invalid(r, fault.As(err).Rule)
		return
	}
	if version == stateless || !slices.Contains(versions[:], version) {
		version = versions[1]
	}
	if !r.session.open(version, r.params) {
		s.refuse(r, &fault.Error{Code: fault.FrameInvalid, Rule: "the session is open already"}, 0, "")
		return
	}
	s.reply(r, func(b []byte) []byte {
		b = mcpwire.AppendString(append(b, `"protocolVersion":`...), version)
		b = append(append(append(b, `,"serverInfo":`...), s.info...), ',')
		return append(append(b, s.intro...), '}', '}')
	})
}

// open notes what initialize says; it reports false the second time.
func (n *Session) open(version string, params mcpwire.Object) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.version != "" {
		return false
	}
	n.version = version
	capabilities, _ := params.Get("capabilities")
	if c, err := capabilities.Object(); err == nil {
		_, n.hasRoots = c.Get("roots")
	}
	info, _ := params.Get("clientInfo")
	if c, err := info.Object(); err == nil {
		n.client = Client{Name: shown(c, "name"), Version: shown(c, "version")}
	}
	return true
}

func shown(o mcpwire.Object, key string) textsafe.Line {
	v, _ := o.Get(key)
	text, _ := v.String()
	return textsafe.Clean(text)
}

// serve answers what both eras have in common.
func (s *Server) serve(ctx context.Context, r request) func() {
	switch r.method {
	case "tools/list":
		if _, paged := r.params.Get("cursor"); paged {
			s.invalid(r, "the list has one page, so there is no such cursor")
			return nil
		}
		s.reply(r, func(b []byte) []byte { return s.appendCached(append(b, s.list...), r.modern) })
	case "tools/call":
		return s.call(ctx, r)
	default:
		if work, ok := s.serveResource(ctx, r); ok {
			return work
		}
		r.status.set(http.StatusNotFound)
		s.refuse(r, &fault.Error{Code: fault.MethodUnknown}, 0, "")
	}
	return nil
}

// call registers the call of a tool and returns its work.
func (s *Server) call(ctx context.Context, r request) func() {
	named, _ := r.params.Get("name")
	name, err := named.String()
	if err != nil {
		s.invalid(r, fault.As(err).Rule)
		return nil
	}
	c := &Call{Tool: s.tools[name], Session: r.session, id: r.id, modern: r.modern, send: r.send, admit: r.admit, token: progressToken(r.meta), places: &s.loads, HostSession: hostSession(r.meta)}
	if c.Tool == nil {
		s.invalid(r, "there is no tool of that name")
		return nil
	}
	if arguments, present := r.params.Get("arguments"); present {
		if c.Arguments, err = mcpwire.NewObject(arguments.Raw()); err != nil {
			s.invalid(r, "arguments: "+fault.As(err).Rule)
			return nil
		}
	}
	ctx, c.cancel = context.WithCancel(ctx)
	if full := r.session.register(c); full != nil {
		c.cancel()
		s.full(r, c, full)
		return nil
	}
	return func() { s.run(ctx, c) }
}

// full answers a call that finds no place: a refused call is a result, a
// second use of an id is a malformed message.
func (s *Server) full(r request, c *Call, err *fault.Error) {
	if err.Code != fault.LimitExceeded {
		s.refuse(r, err, 0, "")
		return
	}
	err.Op, err.Resource = "tool.call", c.Tool.Name
	s.refused(r.session, err)
	result := Refusal(err, err.ID)
	buf := s.buffer()
	defer s.keep(buf)
	*buf = s.appendResult(*buf, r.id, r.modern, &result)
	_ = r.send(*buf) // a transport that fails ends the session itself
}

// maxHostSession bounds the name of a host's session in bytes.
const maxHostSession = 128

// hostSession returns the name that the host gives its session, if it is short
// and printable.
func hostSession(meta mcpwire.Object) string {
	named, present := meta.Get("sessionId")
	if !present {
		return ""
	}
	name, err := named.String()
	if err != nil || len(name) > maxHostSession || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return name
}

// progressToken returns the token in its own bytes if it is a string or number.
func progressToken(meta mcpwire.Object) []byte {
	token, _ := meta.Get("progressToken")
	raw := token.Raw()
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9') {
		return raw
	}
	return nil
}
