// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/mcpwire"
)

// refusedWith is the answer to a frame that no tool may see.
func refusedWith(id string, number, reason string) func(t *testing.T, input string) {
	return func(t *testing.T, input string) {
		s := newServer(t, newGate())
		recorded := ""
		s.refused = func(_ *Session, err *fault.Error) { recorded = err.Rule }
		w := open(t, s)
		w.send(input)
		line := w.next()
		if !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":`+number+`,`) {
			t.Errorf("%s", line)
		}
		w.send(call(`"next"`, "echo", `,"arguments":{"text":"lives"}`))
		w.want(text(`"next"`, "lives"))
		if err := w.close(); err != nil {
			t.Error(err)
		}
		if !strings.Contains(recorded, reason) {
			t.Errorf("recorded %q", recorded)
		}
	}
}

// answeredWith is the id of the answer to a call of echo without its argument.
func answeredWith(id string) func(t *testing.T, input string) {
	return func(t *testing.T, input string) {
		w := open(t, newServer(t, newGate()))
		w.send(input)
		if line := w.next(); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+id+`,"result":`) {
			t.Errorf("%s", line)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
}

var gatewayTests = map[string]func(t *testing.T, input string){
	"gw-casefold-bypass": refusedWith("2", "-32600", `"Name"`),
	"gw-method-casefold": refusedWith("1", "-32600", `"Method"`),
	"gw-duplicate-key":   refusedWith("5", "-32600", `"name"`),
	"gw-batch-smuggle": func(t *testing.T, input string) {
		refusedWith("null", "-32600", "batch")(t, input)
		refusedWith("null", "-32600", "batch")(t, " \t"+input)
	},
	"gw-bigint-id":   answeredWith("9007199254740993"),
	"gw-fraction-id": answeredWith("1.5"),
	"gw-client-bad-json": func(t *testing.T, input string) {
		line, _, _ := strings.Cut(input, `\n`)
		refusedWith("null", "-32700", "not JSON")(t, line)
	},
	"gw-server-id-collision": func(t *testing.T, _ string) { TestSameIDInBothDirections(t) },
	"gw-bigint-arg": func(t *testing.T, _ string) {
		w := open(t, newServer(t, newGate()))
		w.send(call("1", "count", `,"_meta":{"progressToken":9007199254740993}`))
		if line := w.next(); !strings.Contains(line, `"progressToken":9007199254740993,`) {
			t.Errorf("%s", line)
		}
		w.want(text("1", "done"))
		w.send(call("2", "mixed", ""))
		if line := w.next(); !strings.Contains(line, `"structuredContent":{"big":12345678901234567890,"f":1.0}`) {
			t.Errorf("%s", line)
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	},
	"gw-progress-after-end": func(t *testing.T, _ string) { TestProgress(t) },
	"gw-image-audio": func(t *testing.T, _ string) {
		w := open(t, newServer(t, newGate()))
		w.send(call("1", "mixed", ""))
		line := w.next()
		for _, block := range []string{`{"type":"image","mimeType":"image/png","data":"AAH+"}`, `{"type":"audio","mimeType":"audio/wav","data":""}`, `"blob":"Yg=="`} {
			if !strings.Contains(line, block) {
				t.Errorf("%s is not in %s", block, line)
			}
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	},
	// A server executes the text that it decodes, so a lone surrogate, which no
	// text can hold, is refused; the rest arrives as it was meant.
	"gw-unicode": func(t *testing.T, input string) {
		arguments := strings.TrimPrefix(input, "arguments ")
		refusedWith("3", "-32600", "surrogate")(t, call("3", "echo", `,"arguments":`+arguments))
		fine, err := mcpwire.NewObject([]byte(strings.Replace(arguments, `\ud800`, "", 1)))
		if err != nil {
			t.Fatal(err)
		}
		u, _ := fine.Get("u")
		if got, err := u.String(); got != "\u2028<&>" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		spelled, err := mcpwire.NewObject([]byte("{\"s\":\"\",\"u\":\"\u2028\\u003c&>\"}"))
		if err != nil || mcpwire.Digest(spelled) != mcpwire.Digest(fine) {
			t.Errorf("one text, two digests (%v)", err)
		}
	},
}

func TestGatewayVectors(t *testing.T) {
	f, err := os.Open("../../vectors/gateway/server.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := 0
	for sc := bufio.NewScanner(f); sc.Scan(); seen++ {
		var v struct{ ID, Input string }
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		test := gatewayTests[v.ID]
		if test == nil {
			t.Errorf("no test for %s", v.ID)
			continue
		}
		t.Run(v.ID, func(t *testing.T) { test(t, v.Input) })
	}
	if seen != len(gatewayTests) {
		t.Errorf("%d vectors, %d tests", seen, len(gatewayTests))
	}
}
