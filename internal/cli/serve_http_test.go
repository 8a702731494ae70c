// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/mcpserver"
	"github.com/postern-gate/postern/internal/state/endpoint"
)

// refusals are what was recorded.
type refusals struct {
	mu  sync.Mutex
	all []string
}

func (r *refusals) note(_ *mcpserver.Session, f *fault.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, f.Resource+": "+f.Rule)
}

func (r *refusals) take() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, r.all = r.all, nil
	return all
}

// httpEndpoint serves until end is called, which returns how long that took.
func httpEndpoint(t *testing.T) (address string, told *refusals, end func() time.Duration) {
	t.Helper()
	told = &refusals{}
	s, err := mcpserver.New(mcpserver.Config{Version: "1", Refused: told.note})
	if err != nil {
		t.Fatal(err)
	}
	l, err := listen.Open(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- serveUntil(ctx, l, s.HTTP(), "t") }()
	end = sync.OnceValue(func() time.Duration {
		stop()
		start := time.Now()
		if err := <-served; err != nil {
			t.Error(err)
		}
		return time.Since(start)
	})
	t.Cleanup(func() { end() })
	return l.Address().String(), told, end
}

// connect sends text over a connection of its own, and leaves that open.
func connect(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, strings.ReplaceAll(strings.ReplaceAll(text, "HOST", address), "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	return c
}

// untilClosed is what comes back until the server closes.
func untilClosed(t *testing.T, c net.Conn, within time.Duration) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(within))
	got, err := io.ReadAll(c)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Errorf("it is not closed: %q", got)
	}
	return string(got)
}

const (
	letIn     = "Host: HOST\nAuthorization: Bearer t\n"
	mcpHead   = "Content-Type: application/json\nAccept: */*\n"
	announces = "Content-Length: 1000\n\n"
	chunks    = "Transfer-Encoding: chunked\n\n"
)

// unsent are requests that announce a body and never send it, each refused for
// another reason before it is read.
var unsent = map[string]struct {
	text string
	want string
}{
	"no token":       {"POST /mcp HTTP/1.1\nHost: HOST\n", " 401 "},
	"a host":         {"POST /mcp HTTP/1.1\nHost: evil.example\n", " 403 "},
	"an origin":      {"POST /mcp HTTP/1.1\nOrigin: null\n" + letIn, " 403 "},
	"a target":       {"POST http://a/mcp HTTP/1.1\n" + letIn, " 400 "},
	"an upgrade":     {"POST /mcp HTTP/1.1\nUpgrade: x\n" + letIn, " 400 "},
	"another type":   {"POST /mcp HTTP/1.1\n" + letIn, " 415 "},
	"accepts little": {"POST /mcp HTTP/1.1\nContent-Type: application/json\n" + letIn, " 406 "},
	"another path":   {"POST /nope HTTP/1.1\n" + letIn + mcpHead, " 404 "},
	"below the path": {"POST /mcp/ HTTP/1.1\n" + letIn + mcpHead, " 404 "},
	"a path to mend": {"POST //mcp HTTP/1.1\n" + letIn + mcpHead, " 404 "},
	"a dotted path":  {"POST /a/../mcp HTTP/1.1\n" + letIn + mcpHead, " 404 "},
	"another method": {"PUT /mcp HTTP/1.1\n" + letIn + mcpHead, " 405 "},
	"GET":            {"GET /mcp HTTP/1.1\n" + letIn + mcpHead, " 400 "},
	"DELETE":         {"DELETE /mcp HTTP/1.1\n" + letIn + mcpHead, " 400 "},
}

// A body that is announced and never sent keeps no refusal back and no
// connection open; each refusal is recorded.
func TestUnsentBodies(t *testing.T) {
	address, told, _ := httpEndpoint(t)
	open := map[string]net.Conn{}
	for name, tt := range unsent {
		for _, way := range []string{announces, chunks} {
			told.take()
			c := connect(t, address, tt.text+way)
			_ = c.SetReadDeadline(time.Now().Add(listen.Linger / 2))
			first := make([]byte, 12)
			if _, err := io.ReadFull(c, first); err != nil || !strings.HasSuffix(string(first)+" ", tt.want) {
				t.Errorf("%s: %q %v", name, first, err)
			}
			if all := told.take(); len(all) != 1 {
				t.Errorf("%s: recorded: %q", name, all)
			}
			open[name+" "+way] = c
		}
	}
	for name, c := range open {
		if got := untilClosed(t, c, 3*listen.Linger); got == "" {
			t.Errorf("%s: no headers", name)
		}
	}
}

// As many such connections as there may be keep nobody out for long, and the
// end doesn't wait for them, nor for those that say nothing.
func TestUnsentBodiesKeepNobodyOut(t *testing.T) {
	address, _, end := httpEndpoint(t)
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range unsent {
			if !yield(name) {
				return
			}
		}
	})
	for i := range listen.MaxConns {
		connect(t, address, unsent[names[i%len(names)]].text+announces)
	}
	const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	good := "POST /mcp HTTP/1.1\n" + letIn + mcpHead + "Connection: close\nMcp-Protocol-Version: 2026-07-28\nMcp-Method: server/discover\nContent-Length: "
	good += "180\n\n" + discover + strings.Repeat(" ", 180-len(discover))
	served := false
	for start := time.Now(); !served && time.Since(start) < 4*listen.Linger; time.Sleep(50 * time.Millisecond) {
		served = strings.Contains(untilClosed(t, connect(t, address, good), time.Second), " 200 ")
	}
	if !served {
		t.Error("a client with the token is kept out")
	}
	for range 3 {
		connect(t, address, "")
		connect(t, address, unsent["no token"].text+announces)
		connect(t, address, "POST /mcp HTTP/1.1\n"+letIn+mcpHead+announces)
	}
	time.Sleep(50 * time.Millisecond) // until they are accepted
	if took := end(); took > 2*lastWords {
		t.Errorf("the end took %v", took)
	}
}

// A body that is too long is refused readably, also to a client that reads only
// when it has sent all.
func TestTooLongBodyIsAnswered(t *testing.T) {
	address, _, _ := httpEndpoint(t)
	const size = 70 << 20
	for name, length := range map[string]string{"a length": "Content-Length: 73400320\n\n", "chunks": "Transfer-Encoding: chunked\n\n4600000\n"} {
		c := connect(t, address, "POST /mcp HTTP/1.1\n"+letIn+mcpHead+length)
		piece := []byte(strings.Repeat(" ", 1<<20))
		for sent := 0; sent < size; sent += len(piece) {
			if _, err := c.Write(piece); err != nil {
				t.Fatalf("%s: %d MiB: %v", name, sent>>20, err)
			}
		}
		if got := untilClosed(t, c, 20*time.Second); !strings.Contains(got, " 413 ") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A port that another program has: it may have got the token meanwhile, so that
// the next start makes a new one at the same address.
func TestTokenIsDroppedWhereThePortIsTaken(t *testing.T) {
	dir := endpoint.Open(t.TempDir())
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	address := netip.MustParseAddrPort(other.Addr().String())
	for _, last := range []string{address.String(), "127.0.0.1:1"} {
		held, err := dir.Hold(t.Context(), []string{"/a"})
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Save(last, "secret", false); err != nil {
			t.Fatal(err)
		}
		held.Release()
		if held, err = dir.Hold(t.Context(), []string{"/a"}); err != nil {
			t.Fatal(err)
		}
		_, taken := listen.Open(t.Context(), address, false, nil)
		if err := cannotListen(t.Context(), held, address, taken); fault.CodeOf(err) != fault.IOFailed {
			t.Error(err)
		}
		held.Release()
		if held, err = dir.Hold(t.Context(), []string{"/a"}); err != nil {
			t.Fatal(err)
		}
		if kept := held.Last.Token == "secret"; kept != (last != address.String()) || held.Last.Address != last {
			t.Errorf("%+v", held.Last)
		}
		held.Release()
	}
}
