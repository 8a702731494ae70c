// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
)

const hugeSize = 4 << 20

// sized is a server whose tools answer with much; both change what they like.
func sized(t *testing.T) (*HTTP, string) {
	t.Helper()
	tools := testTools(openGate())
	for i, size := range map[int]int{0: hugeSize, 2: 150_000, 3: hugeSize} { // echo, walk, count
		tools[i].Call = func(context.Context, *Call) Result { return own(strings.Repeat("x", size)) }
	}
	if tools[3].Class == core.ReadOnly {
		t.Fatal("count changes nothing")
	}
	s, err := New(Config{Tools: tools, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	h, srv := started(t, s.HTTP(), func(c net.Conn, state http.ConnState) {
		if state == http.StateNew { // else a system with large buffers takes a whole answer
			_ = c.(*net.TCPConn).SetWriteBuffer(64 << 10)
		}
	})
	return h, srv.URL
}

// drip asks for a huge answer and reads it slowly, but without a stop.
func drip(t *testing.T, url string) {
	t.Helper()
	c := dial(t, url, "")
	_ = c.(*net.TCPConn).SetReadBuffer(64 << 10) // the test says less without
	if _, err := c.Write([]byte(rawCall("1", "echo", ""))); err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 16<<10)
		for {
			if _, err := c.Read(b); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
}

func heldBy(r *frameRoom) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Clients that read moderately, more than there are places and than there is
// room for, hold up neither small answers of others nor those of some size;
// another huge one is refused soon, and that says what has happened.
func TestModerateReaders(t *testing.T) {
	h, url := sized(t)
	full := func() bool {
		return heldBy(h.unsent)+hugeSize >= MaxUnsent-hugeLeaves && len(h.s.loads[Small]) == 0
	}
	// Each reads for half a minute, or is given up, and on a busy machine the first
	// have ended before the last have begun: then more come.
	fill := func() {
		const patience, again = 2 * time.Minute, 5 * time.Second
		for start, came := time.Now(), -again; !full(); time.Sleep(time.Millisecond) {
			since := time.Since(start)
			if since > patience {
				t.Fatalf("%d places and %d bytes are held", len(h.s.loads[Small]), heldBy(h.unsent))
			}
			if since-came >= again {
				came = since
				for range MaxSmall + 8 {
					drip(t, url)
				}
			}
		}
	}
	fill()
	for range 2 {
		for tool, want := range map[string]struct {
			in   time.Duration
			says string
		}{
			"mixed": {2 * RoomWait, "image/png"},
			"walk":  {2 * RoomWait, strings.Repeat("x", 150_000)},
			"echo":  {2 * RoomWait, "call again later"},
			"count": {2 * RoomWait, "the call has ended, but its answer is lost"},
		} {
			start := time.Now()
			status, body := answer(t, modern(t.Context(), t, url, "2", tool, ""))
			for range 5 {
				if full() || strings.Contains(body, want.says) {
					break
				}
				fill() // room came meanwhile
				start = time.Now()
				status, body = answer(t, modern(t.Context(), t, url, "2", tool, ""))
			}
			if took := time.Since(start); status != http.StatusOK || took > want.in || !strings.Contains(body, want.says) {
				t.Errorf("%s: %d after %v: %.300s", tool, status, took, body)
			}
		}
	}
	if held := heldBy(h.unsent) + heldBy(h.waiting); held > 2*MaxUnsent {
		t.Errorf("%d bytes are held", held)
	}
}

// A client that reads on, but too slowly, is given up.
func TestAnswersHaveATime(t *testing.T) {
	h, url := sized(t)
	h.stall, h.rate = 500*time.Millisecond, 4*hugeSize
	drip(t, url)
	for heldBy(h.unsent) == 0 {
		time.Sleep(time.Millisecond)
	}
	for end := time.Now().Add(5 * time.Second); heldBy(h.unsent) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the answer is still kept")
		}
	}
}

// Where the answers that wait are too many together, the next is refused at once
// and none is kept for ever.
func TestWaitingAnswersAreBounded(t *testing.T) {
	h, url := sized(t)
	h.unsent.take(t.Context(), MaxUnsent)
	h.waiting.take(t.Context(), MaxUnsent)
	start := time.Now()
	_, body := answer(t, modern(t.Context(), t, url, "1", "walk", ""))
	if took := time.Since(start); took > RoomWait/2 || !strings.Contains(body, "limit.exceeded") {
		t.Errorf("after %v: %.300s", took, body)
	}
	h.waiting.free(MaxUnsent)
	time.AfterFunc(RoomWait/4, func() { h.unsent.free(MaxUnsent) })
	if _, body = answer(t, modern(t.Context(), t, url, "1", "walk", "")); !strings.Contains(body, "xxx") {
		t.Errorf("there was room soon: %.300s", body)
	}
	for end := time.Now().Add(5 * time.Second); heldBy(h.unsent)+heldBy(h.waiting) != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d and %d bytes are never freed", heldBy(h.unsent), heldBy(h.waiting))
		}
	}
}
