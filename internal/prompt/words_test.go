// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/internal/state/grant"
)

// TestChoices: each says what it covers, and what is to be typed.
func TestChoices(t *testing.T) {
	once := grant.Answer{Kind: grant.Once}
	c := Draw(question())
	if got := c.choices(once); got != "y yes, once · s the same call, this session · p fs.write on project://src/**, this session · a that in any session, for a year · n no · l later: " {
		t.Error(got)
	}
	c.Named = false
	if got := c.choices(once); got != "y yes, once · s the same call, this session · p fs.write on project://src/**, this session · n no · l later: " {
		t.Error(got)
	}
	c.Named = true
	for _, none := range []string{"", "project://**"} {
		c.Pattern = none
		if got := c.choices(once); got != "y yes, once · s the same call, this session · n no · l later: " {
			t.Error(got)
		}
		if a, ok := c.answer("p", once); ok {
			t.Errorf("p is %+v", a)
		}
	}
	c.Pattern = "project://src/**"
	if a, ok := c.answer("p", once); !ok || a.Pattern != c.Pattern {
		t.Errorf("p is %+v", a)
	}
	c.Code, c.WhyCode = "rd7p", "it is destructive"
	if got := c.choices(once); got != "it is destructive: a yes, once, wants its code: type rd7p · n no · l later: " {
		t.Error(got)
	}
	if got := c.unanswered(once); got != "not answered: the code is wrong; for a yes type rd7p" {
		t.Error(got)
	}
}

// TestReach: a yes that was asked for with flags says the action, the tools, the
// names and until when; one that begins with a wildcard wants more than a key.
func TestReach(t *testing.T) {
	in := func(life time.Duration) string { return time.Now().Add(life).Format("2006-01-02") }
	const tail = " · n no · l later: "
	for _, tc := range []struct {
		yes               grant.Answer
		begin, ends, word string
	}{
		{
			grant.Answer{Kind: grant.Always, Pattern: "project://src/**"},
			"y yes: fs.write (a new file is fs.create, and not in it), by any tool, on project://src/**, in any session, until " + in(grant.AlwaysLife), tail, "y",
		},
		{
			grant.Answer{Kind: grant.Pattern, Pattern: "project://**"},
			"y yes: fs.write (a new file is fs.create, and not in it), by any tool, on project://**, in this session, until ", tail, "y",
		},
		{
			grant.Answer{Kind: grant.Always, Pattern: "project://**"},
			"it begins with a wildcard, so for a yes type always: fs.write (a new file is fs.create, and not in it), by any tool, on project://**, in any session, until " + in(grant.AlwaysLife),
			tail, "always",
		},
		{grant.Answer{Kind: grant.Session}, "y yes: the same call, in this session, until ", tail, "y"},
		{grant.Answer{Kind: grant.Until, Life: 48 * time.Hour}, "y yes: the same call, in any session, until " + in(48*time.Hour), tail, "y"},
	} {
		c := Draw(question())
		if got := c.choices(tc.yes); !strings.HasPrefix(got, tc.begin) || !strings.HasSuffix(got, tc.ends) {
			t.Errorf("%+v: %q", tc.yes, got)
		}
		for _, typed := range []string{"y", "yes", "always", "p", ""} {
			want := typed == tc.word || typed == "yes" && tc.word == "y"
			if a, ok := c.answer(typed, tc.yes); ok != want || ok && a != tc.yes {
				t.Errorf("%q to %+v: %+v, %v", typed, tc.yes, a, ok)
			}
		}
		if a, ok := c.answer("n", tc.yes); !ok || a.Kind != grant.No {
			t.Errorf("n to %+v: %+v", tc.yes, a)
		}
	}
	c := Draw(question())
	if got := c.unanswered(grant.Answer{Kind: grant.Always, Pattern: "project://**"}); got != "not answered: for a yes to this type always" {
		t.Error(got)
	}
	q := question()
	q.For.Operations[0].Action = "fs.create"
	if got := Draw(q).choices(grant.Answer{Kind: grant.Pattern, Pattern: "project://src/**"}); !strings.HasPrefix(got, "y yes: fs.create, by any tool, on project://src/**, ") {
		t.Error(got)
	}
}

// TestWhyCode: a card that has a code has the reason.
func TestWhyCode(t *testing.T) {
	for want, change := range map[string]func(*grant.Question){
		"":                              func(*grant.Question) {},
		"it is destructive":             func(q *grant.Question) { q.For.Class = "destructive" },
		"it controls a running program": func(q *grant.Question) { q.For.Class = "runtime" },
		"nobody knows what it does":     func(q *grant.Question) { q.For.Class = "unknown" },
		"not all of it is shown":        func(q *grant.Question) { q.For.More = 1 },
	} {
		q := question()
		change(q)
		if c := Draw(q); c.WhyCode != want || (c.Code != "") != (want != "") {
			t.Errorf("%q with the code %q, want %q", c.WhyCode, c.Code, want)
		}
	}
}

// TestSized: a terminal that doesn't tell its size is a usual one.
func TestSized(t *testing.T) {
	for given, want := range map[[2]int][2]int{{0, 0}: {80, 24}, {0, 50}: {80, 50}, {132, 0}: {132, 24}, {16, 10}: {16, 10}} {
		if columns, rows := sized(given[0], given[1]); columns != want[0] || rows != want[1] {
			t.Errorf("%v is %d×%d", given, columns, rows)
		}
	}
}

// TestPausedTold: the no that pauses the agent says so, and how it is resumed; no
// other answer does.
func TestPausedTold(t *testing.T) {
	store := grant.Open(t.TempDir(), grant.Options{})
	d := deskOf(store)
	said := ""
	for i := range grant.NoesInRow {
		if said != "" {
			t.Errorf("told after %d: %q", i, said)
		}
		b := question().For
		b.Host, b.Agent, b.Arguments = true, "my agent", string(rune('a'+i))
		q, err := store.Ask(t.Context(), b, question().Card, "c", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		g, err := d.Decide(t.Context(), q, grant.Answer{Kind: grant.No})
		if err != nil {
			t.Fatal(err)
		}
		said = d.Paused(g)
		g.Kind = grant.Once
		if got := d.Paused(g); got != "" {
			t.Errorf("a yes: %q", got)
		}
	}
	if want := "my agent is paused: three noes in a row. its other questions are over; to let it ask again: postern resume 'my agent'\n"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
}

// TestPausedOnTerminal: a watch says it of questions that come by themselves, and of
// those on one card.
func TestPausedOnTerminal(t *testing.T) {
	for name, tools := range map[string][]string{"by themselves": {"one", "two", "three"}, "on one card": {"one", "one", "one"}} {
		store := grant.Open(t.TempDir(), grant.Options{})
		for i, tool := range tools {
			b := question().For
			b.Host, b.Tool, b.Arguments = true, tool, string(rune('a'+i))
			if _, err := store.Ask(t.Context(), b, question().Card, "c", time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		in, keys := io.Pipe()
		out := &screen{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		at := newTerminal(in, out)
		at.size = func() (int, int) { return 80, 200 }
		go func() { ended <- deskOf(store).Watch(ctx, at) }()
		said := func() bool {
			return strings.Contains(strings.ReplaceAll(out.String(), "\r\n"+goesOn, ""), "claude-code is paused: three noes in a row. its other questions are over; to let it ask again: postern resume claude-code\r\n")
		}
		for late := time.Now().Add(30 * time.Second); !said(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%s: it doesn't say so: %q", name, out.String())
			}
			if strings.Contains(out.String(), "l later: ") {
				_, _ = keys.Write([]byte("n\r")) // the first ones are not heard
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		_ = keys.Close()
	}
}

// TestIndex: the head of a diff that clients expect tells a person nothing; what
// only begins like one stays.
func TestIndex(t *testing.T) {
	const diff = "--- a\toriginal\n+++ a\tmodified\n@@ -1 +1 @@\n-a\n+b\n"
	for change, want := range map[string]string{
		"Index: a\n" + strings.Repeat("=", 67) + "\n" + diff: diff,
		diff:                        diff,
		"Index: a\n=\n+b\n":         "Index: a\n=\n+b\n",
		"Index: a\n-=\n" + diff:     "Index: a\n-=\n" + diff,
		"Index: a\n\n" + diff:       "Index: a\n\n" + diff,
		"the change is too large\n": "the change is too large\n",
	} {
		if got := withoutIndex(change); got != want {
			t.Errorf("%q: %q", change, got)
		}
	}
	q := question()
	q.Card.Change = "Index: a\n===\n" + diff
	if c := Draw(q); strings.Contains(c.Text, "Index") || !strings.Contains(c.Text, "change\n  | --- a\toriginal\n") {
		t.Error(c.Text)
	}
}

// TestLeft: what is put off says how it is answered then.
func TestLeft(t *testing.T) {
	store := grant.Open(t.TempDir(), grant.Options{})
	b := question().For
	b.Host = true
	q, err := store.Ask(t.Context(), b, question().Card, "c", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	in, keys := io.Pipe()
	defer keys.Close()
	out := &screen{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- deskOf(store).Watch(ctx, newTerminal(in, out)) }()
	for late := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), "left for later: postern approve "+q.ID+"\r\n"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it doesn't say so: %q", out.String())
		}
		if strings.Contains(out.String(), "l later: ") {
			_, _ = keys.Write([]byte("l\r")) // the first ones are not heard
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
