// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Call is a tool call that the model asks for.
type Call struct {
	Server string // the MCP server, as it is named in the agent's configuration; "" for a tool of the agent's own
	Tool   string
	Input  any    // becomes a JSON object
	Text   string // in the place of Input, for a tool of Codex that takes free text
}

// Result is what the model is shown after its call.
type Result struct {
	Text    string
	IsError bool // always false for Codex, which tells its model in words
}

// model plays a list of calls. Where the conversation stands is read from what
// the agent sends, so a request that is sent again gets the same answer.
type model struct {
	calls []Call
	blind bool // makes calls of tools that aren't offered

	before  func(int, []Result)
	started int // calls for which before was called

	mu      sync.Mutex
	results []Result
	have    []bool
	waited  int
	odd     []string // requests that nobody should have made
}

func newModel(calls []Call) *model {
	return &model{calls: calls, results: make([]Result, len(calls)), have: make([]bool, len(calls))}
}

// maxRequest bounds a conversation that is sent: a hundred times what the tests need.
const maxRequest = 64 << 20

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "unreadable", http.StatusBadRequest)
		return
	}
	switch {
	case r.URL.Host != "" || r.Method == http.MethodConnect:
		m.note(r.Method + " " + r.Host)
		http.Error(w, "this machine has no network", http.StatusBadGateway)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		m.messages(w, body)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/responses":
		m.responses(w, body)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages/count_tokens":
		answer(w, map[string]any{"input_tokens": 1})
	case r.URL.Path == "/v1/models":
		answer(w, map[string]any{"data": []any{}, "models": []any{}})
	default:
		m.note(r.Method + " " + r.URL.Path)
		http.NotFound(w, r)
	}
}

func (m *model) note(odd string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.odd, odd) {
		m.odd = append(m.odd, odd)
	}
}

// idPrefix marks the calls that this model made, in whatever else a
// conversation holds.
const idPrefix = "toolu_scripted_"

// keep notes the result of a call.
func (m *model) keep(id string, r Result) {
	digits, ours := strings.CutPrefix(id, idPrefix)
	i, err := strconv.Atoi(digits)
	if !ours || err != nil || i < 0 || i >= len(m.calls) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.have[i] {
		m.results[i], m.have[i] = r, true
	}
}

// next is the call to answer the request with, and its id: the first one
// without a result; ok is false when none is left. While the agent doesn't yet
// offer the tool, because it doesn't wait for a server that starts, the call is
// one of no effect, after which the agent looks again.
func (m *model) next(request []byte) (c Call, id string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.have, false)
	if i < 0 {
		return Call{}, "", false
	}
	c = m.calls[i]
	if c.Server != "" && !m.blind && !bytes.Contains(request, []byte(c.Tool)) && m.waited < patience {
		m.waited++
		time.Sleep(pause)
		return Call{Tool: "not_yet", Input: object{}}, "toolu_wait_" + strconv.Itoa(m.waited), true
	}
	if i >= m.started && m.before != nil {
		m.started = i + 1
		m.before(i, m.results[:i])
	}
	return c, idPrefix + strconv.Itoa(i), true
}

// patience is how often a model looks for a tool, and pause how long between:
// half a minute together.
const (
	patience = 120
	pause    = time.Second / 4
)

func answer(w http.ResponseWriter, document any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(document)
}

// object is JSON in the making.
type object = map[string]any

// stream sends the events, each under its type.
func stream(w http.ResponseWriter, events ...object) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err) // http's recover ends this connection, and the agent says so
		}
		fmt.Fprintf(w, "event: %v\ndata: %s\n\n", e["type"], data)
	}
}

// blocks is the text of a tool result: a string, or a list of blocks.
func blocks(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var list []struct{ Text string }
	if json.Unmarshal(raw, &list) != nil {
		return string(raw)
	}
	var all []string
	for _, b := range list {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}
