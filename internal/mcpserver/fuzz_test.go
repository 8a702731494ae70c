// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/postern-gate/postern/internal/mcpwire"
)

// FuzzWire sends arbitrary bytes. Whatever they are, the server ends with the
// input, writes only whole messages, and answers no line twice: not more
// answers with an id than requests with it, not more of the others than lines.
func FuzzWire(f *testing.F) {
	for _, line := range []string{
		opening, openWithRoots, initialized, listChanged, cancelled("1"),
		call("1", "echo", `,"arguments":{"text":"x"}`), call("1", "count", `,"_meta":{"progressToken":1}`),
		call("2", "mixed", ""), call("3", "panic", ""), call("4", "roots", ""),
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":"postern-1","result":{"roots":[]}}`, "[]", "nonsense", `{"jsonrpc":"2.0","id":5,"method":"tools/call","Method":"ping"}`,
	} {
		f.Add([]byte(opening + "\n" + line + "\n" + line))
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := newServer(t, openGate())
		s.limit = 1 << 16
		var out bytes.Buffer
		if err := s.ServeStdio(t.Context(), bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		checkAnswers(t, in, out.String())
	})
}

func checkAnswers(t *testing.T, in []byte, out string) {
	asked, lines := map[mcpwire.ID]int{}, 0
	for _, line := range bytes.Split(in, []byte{'\n'}) {
		lines++
		m, bad := mcpwire.Parse(line)
		if bad == nil && m.Kind == mcpwire.Request {
			asked[m.ID]++
		} else if bad != nil && bad.ID != "" {
			asked[bad.ID]++
		}
	}
	if out == "" {
		return
	}
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if !json.Valid([]byte(line)) {
			t.Fatalf("not a message: %q", line)
		}
		if strings.HasPrefix(line, `{"jsonrpc":"2.0","id":null,`) {
			if lines--; lines < 0 {
				t.Errorf("more errors than lines")
			}
			continue
		}
		m, bad := mcpwire.Parse([]byte(line))
		if bad != nil {
			t.Fatalf("we would refuse our own %q: %v", line, bad)
		}
		if m.Kind == mcpwire.Response {
			if asked[m.ID]--; asked[m.ID] < 0 {
				t.Errorf("one answer too many for %s: %q", m.ID, line)
			}
		}
	}
}
