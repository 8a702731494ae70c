// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

func question() *grant.Question {
	return &grant.Question{
		ID: "0123abcd", Life: time.Hour,
		For: grant.Binding{
			Asker:  grant.Asker{Agent: "claude-code", Session: "s"},
			Server: "postern", Tool: "write_file", Class: "mutating",
			Operations: []grant.Operation{{Action: "fs.write", Resource: "project://src/a.go"}},
			Objects:    []grant.Object{{Name: "project://src/a.go"}},
		},
		Card: grant.Card{Rule: "fs.write: ask", Change: "-a\n+b\n", Undo: "no", Says: []grant.Field{{Name: "client", Text: `x" y`}}},
	}
}

func TestDraw(t *testing.T) {
	c := Draw(question())
	for _, want := range []string{
		"agent       claude-code\n", "tool        postern/write_file\n", "class       mutating\n", `it says     client: "x' y"` + "\n",
		"change\n  | -a\n  | +b\n", "can be undone: no\nfs.write project://src/a.go\n",
	} {
		if !strings.Contains(c.Text, want) {
			t.Errorf("no %q in\n%s", want, c.Text)
		}
	}
	if c.Code != "" || c.Pattern != "project://src/**" || len(c.Digest) != 64 {
		t.Errorf("%+v", c)
	}
	q := question()
	q.For.Class = "destructive"
	if d := Draw(q); len(d.Code) != 4 || d.Pattern != "" || d.Digest == c.Digest {
		t.Errorf("%+v", d)
	}
	for _, change := range []func(*grant.Question){
		func(q *grant.Question) { q.Card.Unshown = "the rest of the change: 7 lines, 70 bytes" },
		func(q *grant.Question) { q.For.More = 1 },
	} {
		q = question()
		change(q)
		d := Draw(q)
		if len(d.Code) != 4 || d.Pattern != "" || q.Card.Unshown != "" && !strings.Contains(d.Text, "  | +b\nnot shown   the rest of the change: 7 lines, 70 bytes\ncan be undone") {
			t.Errorf("what isn't shown whole: %+v", d)
		}
	}
	q = question()
	q.For.Private = true
	if d := Draw(q); d.Pattern != "" {
		t.Errorf("a pattern for a private name: %+v", d)
	}
}

// TestCardProperties: whatever anybody writes into a question, the card has no
// control character but the line feed, names whole and at its end, and each of
// their lines is marked.
func TestCardProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a\x1b[\n\r\u202e\u200b\"|\x00\u2028 fs.write"))))
		q := question()
		name := "project://" + text.Draw(rt, "name")
		q.For.Operations[0].Resource, q.For.Objects[0].Name = name, name
		q.For.Agent, q.For.Tool, q.For.Session = text.Draw(rt, "agent"), text.Draw(rt, "tool"), text.Draw(rt, "session")
		q.Card.Says[0].Text, q.Card.Change, q.Card.Rule = text.Draw(rt, "says"), text.Draw(rt, "change"), text.Draw(rt, "rule")
		q.Card.Details = []grant.Field{{Name: "arguments", Text: text.Draw(rt, "arguments")}}
		c := Draw(q)
		if i := strings.IndexFunc(c.Text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) && r != '\t' }); i >= 0 {
			rt.Fatalf("a control at %d of %q", i, c.Text)
		}
		if want := "fs.write " + spell.Name(name) + "\n"; !strings.HasSuffix(c.Text, want) {
			rt.Fatalf("%q does not end in %q", c.Text, want)
		}
		if !strings.Contains(c.Text, "arguments   "+spelled(q.Card.Details[0].Text)+"\n") {
			rt.Fatalf("the arguments were shortened: %q", c.Text)
		}
		plain := strings.Count(Draw(question()).Text, "\n") + 1 // one detail more
		if strings.Contains(c.Text, "\nhidden ") {
			plain++
		}
		if got := strings.Count(c.Text, "\n") - strings.Count(c.Text, "\n  | "); got > plain-2 {
			rt.Fatalf("%d lines, %d are ours: %q", got, plain-2, c.Text)
		}
	})
}

// TestAnswers: of what can't be taken back only the code is a yes.
func TestAnswers(t *testing.T) {
	once := grant.Answer{Kind: grant.Once}
	plain, hard := Card{Pattern: "p://a/**"}, Card{Code: "abcd"}
	named := Card{Pattern: "p://a/**", Named: true}
	for _, tc := range []struct {
		card Card
		line string
		yes  grant.Answer
		kind grant.Kind
		ok   bool
	}{
		{plain, "y", once, grant.Once, true},
		{plain, "YES", once, grant.Once, true},
		{plain, "s", once, grant.Session, true},
		{plain, "p", once, grant.Pattern, true},
		{Card{}, "p", once, grant.Once, false},
		{named, "a", once, grant.Always, true},
		{plain, "a", once, grant.Once, false},
		{Card{Named: true}, "a", once, grant.Once, false},
		{Card{Pattern: "p://**", Named: true}, "a", once, grant.Once, false},
		{named, "a", grant.Answer{Kind: grant.Session}, grant.Session, false},
		{hard, "a", once, grant.Once, false},
		{plain, "n", once, grant.No, true},
		{plain, "", once, grant.Once, false},
		{plain, "yn", once, grant.Once, false},
		{plain, "l", once, "", true},
		{hard, "y", once, grant.Once, false},
		{hard, "s", once, grant.Once, false},
		{hard, "", once, grant.Once, false},
		{hard, "abcd", once, grant.Once, true},
		{hard, "abce", once, grant.Once, false},
		{hard, "no", once, grant.No, true},
		{plain, "y", grant.Answer{Kind: grant.Session}, grant.Session, true},
		{plain, "p", grant.Answer{Kind: grant.Session}, grant.Session, false},
	} {
		a, ok := tc.card.answer(tc.line, tc.yes)
		if ok != tc.ok || ok && a.Kind != tc.kind {
			t.Errorf("%q on %+v: %+v, %v", tc.line, tc.card, a, ok)
		}
	}
}

// screen is what a terminal shows, safe to read while it is written.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestDeaf: what is typed in the first half second is dropped, ctrl-c is not.
func TestDeaf(t *testing.T) {
	var clock struct {
		sync.Mutex
		now time.Time
	}
	clock.now = time.Now()
	in, keys := io.Pipe()
	out := &screen{}
	term := newTerminal(in, out)
	term.now = func() time.Time { clock.Lock(); defer clock.Unlock(); return clock.now }
	got := make(chan string, 1)
	go func() {
		line, err := term.ask(t.Context(), "?", func() error { return nil })
		got <- fmt.Sprint(line, err)
	}()
	for out.String() != "?" {
		time.Sleep(time.Millisecond)
	}
	if _, err := keys.Write([]byte("yes\r")); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Write([]byte("y")); err != nil { // the reader has stamped what came before
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond)
	clock.Lock()
	clock.now = clock.now.Add(Deaf)
	clock.Unlock()
	if _, err := keys.Write([]byte("nx\x7fo\x1b\r")); err != nil {
		t.Fatal(err)
	}
	if line := <-got; line != "no<nil>" {
		t.Errorf("heard %q", line)
	}
	go func() {
		_, err := term.ask(t.Context(), "?", func() error { return nil })
		got <- fmt.Sprint(errors.Is(err, ErrInterrupted))
	}()
	if _, err := keys.Write([]byte("\x03")); err != nil {
		t.Fatal(err)
	}
	if line := <-got; line != "true" {
		t.Errorf("ctrl-c: %s", line)
	}
	_ = keys.Close()
}

func deskOf(store *grant.Store) *Desk {
	return &Desk{Store: store, Since: func(*grant.Binding) []string { return nil }}
}

// TestWatch: it is there while it runs, and tells what was answered elsewhere.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	store := grant.Open(dir, grant.Options{})
	in, keys := io.Pipe()
	defer keys.Close()
	out := &screen{}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- deskOf(store).Watch(ctx, newTerminal(in, out)) }()
	wait := func(text string) {
		t.Helper()
		for late := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), text); time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%q never shows: %q", text, out.String())
			}
		}
	}
	wait("questions of agents")
	if !store.Attended(t.Context()) {
		t.Error("nobody is there")
	}
	b := question().For
	b.Host = true
	q, err := store.Ask(t.Context(), b, question().Card, "c", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	wait("y yes, once")
	if _, err := store.Decide(t.Context(), q.ID, grant.Answer{Kind: grant.Once, Approver: "command"}); err != nil {
		t.Fatal(err)
	}
	wait("answered: " + q.ID + ", approved by command")
	if strings.Contains(out.String(), "failed") {
		t.Errorf("it is told as an error: %q", out.String())
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if store.Attended(t.Context()) {
		t.Error("somebody is still there")
	}
	if _, err := store.Question(t.Context(), q.ID); fault.CodeOf(err) != fault.PreconditionFailed {
		t.Error(err)
	}
}
