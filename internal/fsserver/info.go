// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
)

func getFileInfo(ctx context.Context, c *call) (reply, error) {
	name, info, err := c.gate.Stat(ctx, c.args.path)
	if err != nil {
		return reply{}, err
	}
	etag := info.Fingerprint.String()
	var b strings.Builder
	fmt.Fprintf(&b, "size: %d\ncreated: %s\nmodified: %s\naccessed: %s\nisDirectory: %t\nisFile: %t\npermissions: %03o\n",
		info.Size, jsTime(info.BirthTime), jsTime(info.ModTime), jsTime(info.AccessTime),
		info.Kind == pathguard.KindDir, info.Kind == pathguard.KindFile, info.Mode.Perm())
	if info.Kind.Special() {
		fmt.Fprintf(&b, "kind: %s\n", info.Kind)
	}
	if info.Kind == pathguard.KindFile && info.Nlink > 1 {
		b.WriteString(hardLinks(info.Nlink) + "\n")
	}
	b.WriteString("etag: " + etag)
	r := reply{kind: untrusted.Listing, source: name.String(), etag: etag, body: b.String()}
	if c.o.Bare {
		r.structured = structuredInfo(info, etag)
	}
	return r, nil
}

func structuredInfo(info pathguard.Info, etag string) []byte {
	b := fmt.Appendf(nil, `{"size":%d`, info.Size)
	for _, t := range []struct {
		name string
		at   time.Time
	}{{"created", info.BirthTime}, {"modified", info.ModTime}, {"accessed", info.AccessTime}} {
		if !t.at.IsZero() {
			b = fmt.Appendf(b, `,"%s":"%s"`, t.name, t.at.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
	}
	return fmt.Appendf(b, `,"isDirectory":%t,"isFile":%t,"permissions":"%03o","type":"%s","etag":"%s"}`,
		info.Kind == pathguard.KindDir, info.Kind == pathguard.KindFile, info.Mode.Perm(), treeType(info.Kind), etag)
}

// listAllowedDirectories shows what the operator opened and what of it the
// client's roots leave.
func listAllowedDirectories(_ context.Context, c *call) (reply, error) {
	var open, left []string
	for _, r := range c.o.Gate.Workspace.Roots() {
		if c.roots.all || c.roots.whole(r) {
			open = append(open, rootLines(r)...)
		}
	}
	for _, n := range c.roots.open {
		if n.Rel() != "" {
			open = append(open, textsafe.Name(shown(n)))
		}
	}
	for _, r := range c.roots.left {
		left = append(left, rootLines(r)...)
	}
	text := "Allowed directories:\n" + strings.Join(open, "\n")
	if len(left) > 0 {
		text += "\nGiven by the operator but left out by the client's roots:\n" + strings.Join(left, "\n")
	}
	if len(c.roots.unusable) > 0 {
		text += "\nUnusable roots of the client:\n" + strings.Join(c.roots.unusable, "\n")
	}
	if c.roots.empty {
		text += "\nThe client's list of roots is empty, which narrows nothing."
	}
	r := reply{own: text}
	if c.o.Bare {
		b := []byte(`{"directories":`)
		if open == nil {
			b = append(b, '[', ']')
		} else {
			b = appendStrings(b, open)
		}
		r.structured = append(b, '}')
	}
	return r, nil
}

// rootLines shows a root under each of its spellings, as arguments take them.
func rootLines(r *pathguard.Root) []string {
	if r.Alias() != "" {
		return []string{r.Alias() + "://"}
	}
	lines := []string{textsafe.Name(r.Given())}
	if r.Resolved() != r.Given() {
		lines = append(lines, textsafe.Name(r.Resolved()))
	}
	if r.Missing() {
		lines[0] += " (absent)"
	}
	return lines
}

// fileURL is a path as a file URL (RFC 8089), escaped as Node does.
func fileURL(path string) string {
	const plain = "!$&'()*+,-./:;=@_|~"
	b := []byte("file://")
	for i := range len(path) {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(plain, c) >= 0:
			b = append(b, c)
		default:
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return string(b)
}

const upperHex = "0123456789ABCDEF"
