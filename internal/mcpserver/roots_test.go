// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	openWithRoots = `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"test","version":"0"}}}`
	initialized   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listChanged   = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
)

func asks(n int) string {
	return `{"jsonrpc":"2.0","id":"postern-` + strconv.Itoa(n) + `","method":"roots/list"}`
}

func answers(n int, result string) string {
	return `{"jsonrpc":"2.0","id":"postern-` + strconv.Itoa(n) + `",` + result + `}`
}

func withRoots(t *testing.T) *wire {
	t.Helper()
	w := connect(t, newServer(t, newGate()))
	w.send(openWithRoots)
	w.next()
	return w
}

func TestRootsAreReadAndRefreshed(t *testing.T) {
	w := withRoots(t)
	w.send(initialized)
	w.want(asks(1))
	w.send(call("1", "roots", "")) // waits for the answer
	w.send(answers(1, `"result":{"roots":[{"uri":"file:///a%20b","name":"A"},{"uri":"file:///c"}]}`))
	w.want(text("1", "2 file:///a%20b file:///c"))
	w.send(listChanged)
	w.want(asks(2))
	w.send(call("2", "roots", ""))
	w.send(answers(2, `"result":{"roots":[]}`))
	w.want(text("2", "2 "))
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

// The old list must not be used once the client has said that it changed, even
// while its answer is on the way.
func TestRootsChangeWhileAsked(t *testing.T) {
	w := withRoots(t)
	w.send(initialized)
	w.want(asks(1))
	w.send(listChanged, listChanged, call("1", "roots", ""), answers(1, `"result":{"roots":[{"uri":"file:///old"}]}`))
	w.want(asks(2))
	w.send(answers(2, `"result":{"roots":[{"uri":"file:///new"}]}`))
	w.want(text("1", "2 file:///new"))
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestRootsUnusable(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"uri":"file:///x"},`, MaxRoots+1), ",")
	for name, result := range map[string]string{
		"error":           `"error":{"code":-32601,"message":"no"}`,
		"null":            `"result":null`,
		"array":           `"result":[]`,
		"no list":         `"result":{}`,
		"list an object":  `"result":{"roots":{}}`,
		"root a string":   `"result":{"roots":["file:///x"]}`,
		"uri a number":    `"result":{"roots":[{"uri":1}]}`,
		"no uri":          `"result":{"roots":[{"name":"x"}]}`,
		"twin keys":       `"result":{"roots":[{"uri":"file:///a","URI":"file:///"}]}`,
		"one of two bad":  `"result":{"roots":[{"uri":"file:///a"},{}]}`,
		"beyond the cap":  `"result":{"roots":[` + many + `]}`,
		"not what it was": `"result":{"tools":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := withRoots(t)
			w.send(call("1", "roots", "")) // before notifications/initialized
			w.want(asks(1))
			w.send(answers(1, result))
			if line := w.next(); !strings.HasPrefix(line, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"0 the client`) {
				t.Errorf("%s", line)
			}
			if err := w.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRootsNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := withRoots(t)
		w.send(initialized)
		w.want(asks(1))
		start := time.Now()
		w.send(call("1", "roots", ""))
		w.want(text("1", "0 the client did not report its roots in time"))
		if took := time.Since(start); took != RootsTimeout {
			t.Errorf("took %v", took)
		}
		// Late and foreign answers are dropped, a change is asked for again.
		w.send(answers(1, `"result":{"roots":[{"uri":"file:///"}]}`), `{"jsonrpc":"2.0","id":1,"result":{}}`, call("2", "roots", ""))
		w.want(text("2", "0 the client did not report its roots in time"))
		w.send(listChanged)
		w.want(asks(2))
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}

// A request of the client's own may have the id of one of ours: the tables are
// kept by direction, so both complete.
func TestSameIDInBothDirections(t *testing.T) {
	w := withRoots(t)
	w.send(initialized)
	w.want(asks(1))
	w.send(call(`"postern-1"`, "roots", ""), answers(1, `"result":{"roots":[{"uri":"file:///x"}]}`))
	w.want(text(`"postern-1"`, "2 file:///x"))
	if err := w.close(); err != nil {
		t.Error(err)
	}
}

func TestRootsWithoutAWay(t *testing.T) {
	s := newServer(t, newGate())
	silent := func([]byte) error { return nil }
	n := s.NewSession(nil) // no way to ask
	s.Dispatch(t.Context(), n, []byte(openWithRoots), silent)
	s.Dispatch(t.Context(), n, []byte(initialized), silent)
	if r := n.Roots(t.Context()); r.State != RootsNone {
		t.Errorf("%+v", r)
	}
	n = s.NewSession(func([]byte) error { return errors.New("gone") })
	s.Dispatch(t.Context(), n, []byte(openWithRoots), silent)
	if r := n.Roots(t.Context()); r.State != RootsUnusable || r.Why.String() != "the client can't be reached" {
		t.Errorf("%+v", r)
	}
	n = s.NewSession(silent)
	s.Dispatch(t.Context(), n, []byte(openWithRoots), silent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := n.Roots(ctx); r.State != RootsUnusable || r.Why.String() == "" {
		t.Errorf("%+v", r)
	}
	asked := make(chan Roots, 1)
	go func() { asked <- n.Roots(t.Context()) }()
	n.Close(t.Context())
	if r := <-asked; r.State != RootsUnusable {
		t.Errorf("%+v", r)
	}
	late := s.NewSession(silent)
	s.Dispatch(t.Context(), late, []byte(openWithRoots), silent)
	late.Close(t.Context())
	if r := late.Roots(t.Context()); r.State != RootsUnusable {
		t.Errorf("%+v", r)
	}
}
