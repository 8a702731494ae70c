// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/mcpserver"
)

// octets is the type of what is nothing else.
const octets = "application/octet-stream"

// sniffed is how much of a file tells its type.
const sniffed = 1024

// signatures are how files begin that clients draw or play, or know by name. A
// dot in one stands for any byte. What a name says of a file doesn't count:
// clients fail at a picture that is none.
var signatures = []struct{ begins, mime string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF87a", "image/gif"},
	{"GIF89a", "image/gif"},
	{"RIFF....WEBP", "image/webp"},
	{"RIFF....WAVE", "audio/wav"},
	{"ID3", "audio/mpeg"},
	{"\xff\xfb", "audio/mpeg"},
	{"\xff\xf3", "audio/mpeg"},
	{"\xff\xf2", "audio/mpeg"},
	{"OggS", "audio/ogg"},
	{"fLaC", "audio/flac"},
	{"%PDF-", "application/pdf"},
	{"PK\x03\x04", "application/zip"},
	{"\x1f\x8b", "application/gzip"},
}

// mediaType is the type by the first bytes of a file.
func mediaType(b []byte) string {
	for _, s := range signatures {
		if begins(b, s.begins) {
			return s.mime
		}
	}
	if begins(b, "BM....\x00\x00\x00\x00") {
		return "image/bmp"
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\ufeff")), " \t\r\n")
	xml := begins(text, "<?xml") || begins(text, "<!--") || begins(text, "<!DOCTYPE svg")
	if begins(text, "<svg") || xml && bytes.Contains(text, []byte("<svg")) {
		return "image/svg+xml"
	}
	return octets
}

func begins(b []byte, signature string) bool {
	if len(b) < len(signature) {
		return false
	}
	for i := range len(signature) {
		if c := signature[i]; c != '.' && c != b[i] {
			return false
		}
	}
	return true
}

func readMediaFile(ctx context.Context, c *call) (reply, error) {
	f, err := c.gate.Open(ctx, c.args.path)
	if err != nil {
		return reply{}, err
	}
	defer f.Close()
	e := extent{ranged: c.args.offset.given || c.args.length.given, from: min(c.args.offset.n, f.Size())}
	n := f.Size() - e.from
	if c.args.length.given {
		n = min(n, c.args.length.n)
	}
	if n/3*4 > c.o.Answer {
		return reply{}, &fault.Error{
			Code: fault.LimitExceeded, Op: "fs.read", Resource: f.Name().String(),
			Rule: "these are " + strconv.FormatInt(n, 10) + " bytes, more than an answer holds as base64",
			Hint: "read a part with offset and length",
		}
	}
	if n > large {
		if err := c.large(ctx); err != nil {
			return reply{}, err
		}
	}
	first, err := section(f, 0, min(f.Size(), sniffed))
	if err == nil {
		e.content, err = section(f, e.from, n)
	}
	if err != nil {
		return reply{}, err
	}
	block := c.media(f.Name(), mediaType(first), e.content, n == f.Size())
	r := reply{media: &block, etag: f.Fingerprint().String()}
	e.measured(f.Size()).tell(&r)
	return r, nil
}

// media is a block of the file's type. A part of a picture is none.
func (c *call) media(name pathguard.Name, mime string, data []byte, whole bool) mcpserver.Content {
	kind, _, _ := strings.Cut(mime, "/")
	switch {
	case whole && kind == "image":
		return mcpserver.Image(textsafe.Clean(mime), data)
	case whole && kind == "audio":
		return mcpserver.Audio(textsafe.Clean(mime), data)
	default:
		return mcpserver.Blob(textsafe.Clean(c.url(name)), textsafe.Clean(mime), data)
	}
}

// url is the file's URL under the name that the caller used, which tells
// nothing of where a link leads.
func (c *call) url(canonical pathguard.Name) string {
	name := canonical
	if names, err := c.o.Gate.Workspace.Parse(c.args.path); err == nil && len(names) == 1 {
		name = names[0]
	}
	if alias := name.Root().Alias(); alias != "" {
		return alias + fileURL(name.Rel())[len("file"):]
	}
	return fileURL(name.Abs())
}
