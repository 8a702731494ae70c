// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/mcpserver"
)

// resources are the roots, and every file and directory beneath them by its URI.
// There are none where the tools are off that show the same.
func (s *server) resources() *mcpserver.Resources {
	if slices.Contains(s.o.Off, "read_text_file") || slices.Contains(s.o.Off, "list_directory") {
		return nil
	}
	r := &mcpserver.Resources{
		Read: func(ctx context.Context, m *mcpserver.Call, uri string) mcpserver.Result {
			return s.resource(ctx, &readTool, m, uri)
		},
	}
	if s.o.Gate.Watcher != nil {
		r.Watch = s.watch
	}
	schemes := map[string]bool{}
	for _, root := range s.o.Gate.Workspace.Roots() {
		uri, scheme := strings.TrimSuffix(fileURL(root.Given()), "/")+"/", "file:///"
		if alias := root.Alias(); alias != "" {
			uri, scheme = alias+"://", alias+"://"
		}
		r.List = append(r.List, mcpserver.Resource{URI: uri, Name: root.Name(), MIME: "inode/directory"})
		if !schemes[scheme] {
			schemes[scheme] = true
			r.Templates = append(r.Templates, mcpserver.Template{
				URITemplate: scheme + "{+path}", Name: strings.TrimRight(scheme, ":/"),
				Description: "A file, or the list of a directory, beneath one of the listed directories.",
			})
		}
	}
	return r
}

// readTool is resources/read on its way through the same steps as a tool.
var readTool = tool{name: "resources/read", params: []param{pathParam(core.FSRead)}, run: readResource}

// resource runs what a resource method does as a call of one path.
func (s *server) resource(ctx context.Context, t *tool, m *mcpserver.Call, uri string) mcpserver.Result {
	c := &call{server: s, tool: t, message: m, session: m.Session, progress: m.Progress, wide: m.Large, held: func() {}}
	ctx, work, stop := working(ctx, s.o.CallTime)
	defer stop()
	c.work = work
	path, err := s.named(uri)
	if err != nil {
		f := *fault.As(err)
		f.Op = t.op().String()
		s.record(m.Session, t.op(), core.Resource{Name: uri}, &f)
		c.spellings = []string{uri}
		return s.refusal(c, f, enforce.Outcome{}, "")
	}
	c.args.path, c.spellings = path, []string{path}
	if f := s.prefilter(c); f != nil {
		return s.refusal(c, *f, enforce.Outcome{}, "")
	}
	return s.await(ctx, c)
}

// named returns the spelling that a URI stands for: percent-decoded once, and
// nothing else. What it means is for the workspace to say, as of a caller's own
// spelling.
func (s *server) named(uri string) (string, error) {
	for _, r := range s.o.Gate.Workspace.Roots() {
		rest, ok := strings.CutPrefix(uri, r.Alias()+"://")
		if r.Alias() == "" || !ok {
			continue
		}
		path, err := url.PathUnescape(rest)
		if err != nil || strings.ContainsAny(rest, "?#") || strings.Contains(strings.ToLower(rest), "%2f") {
			return "", &fault.Error{Code: fault.PathDenied, Resource: uri, Rule: "the URI is malformed", Hint: "percent-encode the name, without its slashes"}
		}
		return r.Alias() + "://" + path, nil
	}
	return pathguard.FileURI(uri)
}

// readResource reads a file, or lists a directory. A name that ends in a slash
// is a directory's; any other is read first.
func readResource(ctx context.Context, c *call) (reply, error) {
	if strings.HasSuffix(c.args.path, "/") {
		return listDirectory(ctx, c)
	}
	f, err := c.gate.Open(ctx, c.args.path)
	if fault.CodeOf(err) == fault.IOFailed {
		if r, listed := listDirectory(ctx, c); listed == nil {
			return r, nil
		}
	}
	if err != nil {
		return reply{}, err
	}
	defer f.Close()
	return c.contents(ctx, f)
}

// contents is a whole file, as text in an envelope or as bytes.
func (c *call) contents(ctx context.Context, f *pathguard.File) (reply, error) {
	first, err := section(f, 0, min(f.Size(), sniffed))
	if err != nil {
		return reply{}, err
	}
	mime := mediaType(first)
	limit := c.o.WholeRead
	if kind, _, _ := strings.Cut(mime, "/"); kind == "image" || kind == "audio" {
		limit = c.o.Answer / 4 * 3
	}
	if f.Size() > limit {
		return reply{}, &fault.Error{
			Code: fault.LimitExceeded, Op: "fs.read", Resource: f.Name().String(),
			Rule: "the file has " + strconv.FormatInt(f.Size(), 10) + " bytes, and at most " + strconv.FormatInt(limit, 10) + " are read whole",
			Hint: "read a part of it with the tool read_text_file",
		}
	}
	if f.Size() > large {
		if err := c.large(ctx); err != nil {
			return reply{}, err
		}
	}
	data, err := section(f, 0, f.Size())
	if err != nil {
		return reply{}, err
	}
	r := reply{etag: f.Fingerprint().String()}
	now, err := f.Stat()
	r.outcome.RescanPending = err != nil || now.Fingerprint != f.Fingerprint()
	if n := f.Info().Nlink; n > 1 {
		r.notes = append(r.notes, hardLinks(n))
	}
	if bytes.IndexByte(data, 0) < 0 && utf8.Valid(data) { // an SVG too: a model reads it
		r.kind, r.source, r.body = untrusted.File, f.Name().String(), string(data)
		return r, nil
	}
	block := mcpserver.Blob(textsafe.Line{}, textsafe.Clean(mime), data) // the URI is the request's
	r.media = &block
	return r, nil
}
