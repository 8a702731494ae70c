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
	if got := c.choices(once); got != "y yes, once · s the same call, this session · p fs.write on project://src/**, this session · a that in any session · n no · l later: " {
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
	c.Code = "rd7p"
	if got := c.choices(once); got != "a yes, once, wants its code: type rd7p · n no · l later: " {
		t.Error(got)
	}
	if got := c.unanswered(); got != "not answered: the code is wrong; for a yes type rd7p" {
		t.Error(got)
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
