// SPDX-License-Identifier: Apache-2.0

//go:build linux

package fsserver

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/grant"
)

// asker is a person who takes a while.
type asker struct {
	takes time.Duration
	aside bool // the call is told that it waits
	tells bool // and its client
	open  chan struct{}

	mu    sync.Mutex
	asked []enforce.Question
}

func (a *asker) Approve(ctx context.Context, q *enforce.Question) (enforce.Permission, error) {
	a.mu.Lock()
	a.asked = append(a.asked, *q)
	a.mu.Unlock()
	back := func() error { return nil }
	if a.aside {
		back = q.Aside()
	}
	if a.tells {
		q.Progress(5*time.Second, 45*time.Second, textsafe.Clean("somebody\x1b is asked"))
	}
	var after <-chan time.Time
	if a.open == nil {
		after = time.After(a.takes)
	}
	select {
	case <-after:
	case <-a.open:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return a, back()
}

func (a *asker) Spend(context.Context, *enforce.Question) (string, error) { return "", nil }
func (a *asker) Reaches(core.Resource) bool                               { return true }

func (w *world) asks(a *asker) *client {
	w.Helper()
	o, closer, err := w.setup.options()
	w.must(err)
	w.Cleanup(closer)
	o.Gate.Approver = a
	srv, err := New(o)
	w.must(err)
	return connect(w.T, srv, nil)
}

// TestWaitIsNoWork: a call that waits for a person longer than it may work
// succeeds, and one that works for as long runs out of time.
func TestWaitIsNoWork(t *testing.T) {
	for _, aside := range []bool{true, false} {
		w := newWorld(t, map[string]string{"a": "A"}, later)
		w.setup.Rules, w.setup.CallTime = map[string]string{"fs.write": "ask"}, 2*time.Second
		c := w.asks(&asker{takes: 3 * time.Second, aside: aside})
		r := c.call("write_file", args{"path": "a", "content": "new"})
		if aside {
			w.is(w.at("a"), "new")
		} else if r.code() != fault.Cancelled.String() {
			t.Errorf("it did not run out of time: %s", r.text())
		}
	}
}

// TestWaitKeepsNobodyWaiting: more calls wait for a person than may run at
// once, and others go on meanwhile.
func TestWaitKeepsNobodyWaiting(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A"}, later)
	w.setup.Rules = map[string]string{"fs.write": "ask"}
	a := &asker{aside: true, open: make(chan struct{})}
	c := w.asks(a)
	var wg sync.WaitGroup
	const calls = 40
	for range calls {
		wg.Go(func() { c.call("edit_file", args{"path": "a", "edits": []args{{"oldText": "A", "newText": "AB"}}}) })
		wg.Go(func() { c.call("write_file", args{"path": "a", "content": "A"}) })
	}
	for n := 0; n < 2*calls; time.Sleep(time.Millisecond) {
		a.mu.Lock()
		n = len(a.asked)
		a.mu.Unlock()
	}
	if r := c.call("read_text_file", args{"path": "a"}); !strings.Contains(r.text(), "A") {
		t.Errorf("a read beside them: %s", r.text())
	}
	close(a.open)
	wg.Wait()
}

// TestQuestionOfACall: what a person is asked about, as the tool has it.
func TestQuestionOfACall(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "one\n"}, later)
	w.setup.Rules = map[string]string{"fs.write": "ask", "fs.delete": "ask"}
	a := &asker{}
	c := w.asks(a)
	c.call("write_file", args{"path": "a", "content": "two\n"})
	c.call("write_file", args{"content": "two\n", "path": "a"})
	c.call("write_file", args{"path": "a", "content": "three\n"})
	c.call("edit_file", args{"path": "a", "edits": []args{{"oldText": "three", "newText": "four"}}})
	c.call("delete_file", args{"path": "a", "confirm": true})
	if len(a.asked) != 5 {
		t.Fatalf("asked %d times", len(a.asked))
	}
	first, again, other, edited, deleted := a.asked[0], a.asked[1], a.asked[2], a.asked[3], a.asked[4]
	if first.Server != "postern" || first.Tool != "write_file" || first.Class.String() != "mutating" || len(first.Says) != 1 || first.Says[0].Name != "client" {
		t.Errorf("%+v", first)
	}
	if first.Arguments != again.Arguments || first.Arguments == other.Arguments || first.Arguments == "" {
		t.Errorf("arguments %s, %s, %s", first.Arguments, again.Arguments, other.Arguments)
	}
	if edited.Tool != "edit_file" || deleted.Class.String() != "destructive" {
		t.Errorf("%+v, %+v", edited, deleted)
	}
	if text, unshown := deleted.Change(); text+unshown != "" {
		t.Errorf("%q, %q", text, unshown)
	}
}

// TestWaitIsTold: a client that asks for progress hears that a person is asked.
func TestWaitIsTold(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A"}, later)
	w.setup.Rules = map[string]string{"fs.write": "ask"}
	a := &asker{tells: true}
	c := w.asks(a)
	c.request("tools/call", map[string]any{
		"name": "write_file", "arguments": args{"path": "a", "content": "x"}, "_meta": map[string]any{"progressToken": "p"},
	})
	if len(c.progress) != 1 || !strings.Contains(c.progress[0], `"progress":5,"total":45,"message":"somebody  is asked"`) {
		t.Errorf("%v", c.progress)
	}
}

// TestHostSession: the name that a host gives its session, if it is one.
func TestHostSession(t *testing.T) {
	for name, want := range map[string]string{
		`"S-1"`: "S-1", `"` + strings.Repeat("x", 128) + `"`: strings.Repeat("x", 128), `"` + strings.Repeat("x", 129) + `"`: "",
		`7`: "", `null`: "", `{}`: "", `""`: "", `"a b"`: "", `"\u001b"`: "", `"é"`: "",
	} {
		w := newWorld(t, map[string]string{"a": "A"}, later)
		w.setup.Rules = map[string]string{"fs.write": "ask"}
		a := &asker{}
		c := w.asks(a)
		c.request("tools/call", json.RawMessage(`{"name":"write_file","_meta":{"sessionId":`+name+`},"arguments":{"path":"a","content":"x"}}`))
		if len(a.asked) != 1 || a.asked[0].HostSession != want {
			t.Errorf("%s: %+v", name, a.asked)
		}
	}
}

// TestAskNobodyHere: without an approver the refusal says so.
func TestAskNobodyHere(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "A"})
	r := w.call("delete_file", args{"path": "a", "confirm": true})
	if r.code() != fault.PolicyAsk.String() || !strings.Contains(r.text(), "nobody can be asked") {
		t.Errorf("%s", r.text())
	}
}

// TestQuestionsOfOneCall: one call about many files asks about a few of them, and
// leaves room for the questions of others.
func TestQuestionsOfOneCall(t *testing.T) {
	files := map[string]string{}
	var paths []string
	for i := range 60 {
		name := strconv.Itoa(i)
		paths, files[name] = append(paths, name), "content "+name
	}
	w := newWorld(t, files, later)
	w.setup.Rules = map[string]string{"fs.read": "ask"}
	c, person := w.desk()
	r := c.call("read_multiple_files", args{"paths": paths}).ok().lacks("content 7").has("one call asks about 8 things at most")
	if n := len(person.Pending()); n != maxUnanswered || strings.Count(r.text(), "postern approve ") != n {
		t.Errorf("%d questions: %s", n, r.text())
	}
	for _, q := range person.Pending() { // the rest goes on where they were answered
		_, err := person.Decide(t.Context(), q.ID, grant.Answer{Kind: grant.Once, Approver: "test"})
		w.must(err)
	}
	c.call("read_multiple_files", args{"paths": paths}).ok().has("content 7").lacks("content 8")
	if n := len(person.Pending()); n != maxUnanswered {
		t.Errorf("%d questions then", n)
	}
}
