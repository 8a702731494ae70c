// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-gate/postern/core"
)

// The lines in work are bounded by their sum; what waits behind them is read
// when there is room, in its order, and one that is larger than all goes alone.
func TestFramesInWorkAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := newServer(t, g)
		s.frames = 10_000
		w := open(t, s)
		big := func(id string, size int) string {
			return call(id, "gate", `,"arguments":{"pad":"`+strings.Repeat("x", size)+`"}`)
		}
		go func() {
			w.send(big("1", 6000), big("2", 3000), big("3", 3000), call("4", "gate", ""), big("5", 20_000), call("6", "gate", ""))
		}()
		synctest.Wait()
		if n := len(g.started); n != 2 {
			t.Errorf("%d calls run within the bound", n)
		}
		g.let <- struct{}{}
		g.let <- struct{}{}
		synctest.Wait()
		if n := len(g.started); n != 4 {
			t.Errorf("%d calls have started, want those before the one that goes alone", n)
		}
		g.let <- struct{}{}
		g.let <- struct{}{}
		synctest.Wait()
		if n := len(g.started); n != 5 {
			t.Errorf("%d calls have started, want the one that goes alone", n)
		}
		g.let <- struct{}{}
		synctest.Wait()
		if n := len(g.started); n != 6 {
			t.Errorf("%d calls have started, want all", n)
		}
		close(g.let)
		for range 6 {
			w.next()
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}

// The reader that waits for room ends with the server.
func TestWaitingForRoomEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := newServer(t, g)
		s.frames = 100
		ctx, cancel := context.WithCancel(t.Context())
		w := connectContext(ctx, t, s)
		w.send(opening)
		w.next()
		go io.WriteString(w.in, call("1", "gate", "")+"\n"+call("2", "gate", "")+"\n") //nolint:errcheck // closed by the server
		synctest.Wait()
		cancel()
		if err := <-w.served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if n := len(g.started); n != 1 {
			t.Errorf("%d calls ran", n)
		}
	})
}

// larges is a tool whose calls take a place of the large ones and leave work
// behind that holds it, until they are let go.
type larges struct {
	*gate
	end chan struct{} // of the work left behind
}

func (l larges) call(ctx context.Context, c *Call) Result {
	done, err := c.Large(ctx)
	if err != nil {
		l.ended <- err
		return own("no place")
	}
	c.Session.Go(func() {
		defer done()
		<-l.end
	})
	return l.gate.call(ctx, c)
}

func largeServer(t *testing.T, l larges) *Server {
	t.Helper()
	s, err := New(Config{Tools: append(testTools(openGate()), Tool{Name: "large", InputSchema: anyObject, Class: core.ReadOnly, Call: l.call})})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Calls that hold much memory have few places, which they keep until both the
// answer and the work are done; those that wait keep no small call waiting.
func TestLargeCallsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := larges{newGate(), make(chan struct{})}
		s := largeServer(t, l)
		w := open(t, s)
		for i := range MaxSmall + MaxLarge {
			w.send(call("1"+strings.Repeat("0", i), "large", ""))
		}
		synctest.Wait()
		if n := len(l.started); n != MaxLarge {
			t.Errorf("%d large calls run", n)
		}
		w.send(call("2", "echo", `,"arguments":{"text":"quick"}`))
		w.want(text("2", "quick"))
		l.let <- struct{}{}
		w.next()
		synctest.Wait()
		if n := len(l.started); n != MaxLarge {
			t.Errorf("%d large calls have started, but the work of the first one is not done", n)
		}
		l.end <- struct{}{}
		synctest.Wait()
		if n, taken := len(l.started), len(s.loads[Large]); n < MaxLarge || taken != MaxLarge {
			t.Errorf("%d have started, %d places are taken", n, taken)
		}
		close(l.let)
		close(l.end)
		for range MaxSmall + MaxLarge - 1 {
			w.next()
		}
		synctest.Wait()
		for load, places := range s.loads {
			if len(places) != 0 {
				t.Errorf("%d places of load %d are taken at the end", len(places), load)
			}
		}
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
}

// A result that nobody reads keeps its place: the number of those is bounded.
func TestUnreadAnswersKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, newGate())
		n := s.NewSession(nil)
		s.Dispatch(t.Context(), n, []byte(opening), func([]byte) error { return nil })
		read := make(chan struct{})
		unread := func([]byte) error { <-read; return nil }
		for i := range MaxSmall * 2 {
			go s.Dispatch(t.Context(), n, []byte(call("1"+strings.Repeat("0", i), "echo", `,"arguments":{"text":"x"}`)), unread)()
		}
		synctest.Wait()
		if n := len(s.loads[Small]); n != MaxSmall {
			t.Errorf("%d places are taken", n)
		}
		close(read)
		synctest.Wait()
		if n := len(s.loads[Small]); n != 0 {
			t.Errorf("%d places are taken at the end", n)
		}
	})
}

// The end of the session waits for what calls left running, for a bounded time.
func TestEndWaitsForWhatCallsLeft(t *testing.T) {
	for name, want := range map[string]error{"ends": nil, "never ends": ErrDrain} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				let, left := make(chan struct{}), make(chan struct{})
				s, err := New(Config{Tools: []Tool{{Name: "leaves", InputSchema: anyObject, Class: core.Mutating, Call: func(_ context.Context, c *Call) Result {
					c.Session.Go(func() { <-let; close(left) })
					return own("given up")
				}}}})
				if err != nil {
					t.Fatal(err)
				}
				w := open(t, s)
				w.send(call("1", "leaves", ""))
				w.next()
				if want == nil {
					time.AfterFunc(Drain/2, func() { close(let) })
				}
				if err := w.close(); !errors.Is(err, want) {
					t.Errorf("%v", err)
				}
				if want != nil {
					close(let)
				}
				<-left
			})
		})
	}
}
