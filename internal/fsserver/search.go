// SPDX-License-Identifier: Apache-2.0

package fsserver

import (
	"context"
	"strings"

	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/core/untrusted"
	"github.com/postern-gate/postern/enforce"
)

// matches are the entries that a search has found, by full path.
type matches struct {
	walk    *traversal
	pattern pattern
	paths   []string
	entries []pathguard.Entry
}

func (m *matches) entry(dir pathguard.Name, path string, item enforce.Item) visitor {
	if m.pattern.match(path) {
		full := strings.TrimSuffix(shown(dir), "/") + "/" + item.Name
		if strings.HasSuffix(shown(dir), "://") {
			full = shown(dir) + item.Name
		}
		m.paths, m.entries = append(m.paths, full), append(m.entries, item.Entry)
		m.walk.size += len(full) + 1
	}
	return m
}

func (m *matches) unreadable() {}

func searchFiles(ctx context.Context, c *call) (reply, error) {
	wanted, err := searchPattern(c.args.pattern)
	if err != nil {
		return reply{}, err
	}
	exclude, err := excludePatterns(c.args.exclude)
	if err != nil {
		return reply{}, err
	}
	t := &traversal{exclude: exclude}
	m := &matches{walk: t, pattern: wanted}
	t.first = m
	t.answer = func(top pathguard.Name) reply {
		r := reply{kind: untrusted.Search, source: top.String(), body: m.text()}
		if c.o.Bare {
			r.structured = m.structured()
		}
		return r
	}
	return c.gather(ctx, t)
}

func (m *matches) text() string {
	if len(m.paths) == 0 {
		return "No matches found"
	}
	lines := make([]string, len(m.paths))
	for i, path := range m.paths {
		lines[i] = textsafe.Name(path)
		if !m.entries[i].Reachable {
			lines[i] += unreachable
		}
	}
	return strings.Join(lines, "\n")
}

// structured is {"matches":[{"name","type"}]}, the names being full paths; the
// object is not ended yet.
func (m *matches) structured() []byte {
	b := []byte(`{"matches":[`)
	for i, path := range m.paths {
		if i > 0 {
			b = append(b, ',')
		}
		e := m.entries[i]
		e.Name = path
		b = append(appendItem(b, e), '}')
	}
	return append(b, ']')
}
