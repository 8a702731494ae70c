// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"bytes"
	"context"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// matches are the entries that a search has found, by full path, as they will be
// sent.
type matches struct {
	walk       *traversal
	pattern    pattern
	bare       bool
	lines      strings.Builder
	structured []byte
}

func (m *matches) entry(e entry) visitor {
	if e.told || !m.pattern.match(e.path) {
		return m
	}
	found := e.item.Entry
	found.Name = shownBeneath(e.dir, e.item.Name)
	line, object := shownName(found)+"\n", []byte(nil)
	if m.bare {
		object = append(appendItem(nil, found), '}', ',')
	}
	m.walk.mu.Lock()
	defer m.walk.mu.Unlock()
	if m.walk.fits(mcpwire.TextLen(line) + len(object)) {
		m.lines.WriteString(line)
		m.structured = append(m.structured, object...)
	}
	return m
}

func (m *matches) unreadable() {}

func searchFiles(ctx context.Context, c *call) (reply, error) {
	patterns := newCompiler()
	wanted, err := patterns.wanted(c.args.pattern, c.args.substring)
	if err != nil {
		return reply{}, err
	}
	exclude, err := patterns.exclude(c.args.exclude)
	if err != nil {
		return reply{}, err
	}
	t := &traversal{exclude: exclude}
	m := &matches{walk: t, pattern: wanted, bare: c.o.Bare}
	t.first = m
	t.answer = func(top pathguard.Name) reply {
		r := reply{kind: untrusted.Search, source: top.String(), body: m.text()}
		if c.o.Bare {
			r.structured = m.object()
		}
		return r
	}
	return c.gather(ctx, t)
}

func (m *matches) text() string {
	if m.lines.Len() == 0 {
		return "No matches found"
	}
	return strings.TrimSuffix(m.lines.String(), "\n")
}

// object is {"matches":[{"name","type"}]}, the names being full paths; it is not
// ended yet.
func (m *matches) object() []byte {
	b := append([]byte(`{"matches":[`), bytes.TrimSuffix(m.structured, []byte{','})...)
	return append(b, ']')
}
