// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/internal/spell"
	"github.com/postern-gate/postern/internal/state/grant"
)

func spelled(s string) string { text, _ := spell.Out(s, false); return text }

// TestHidden: what nobody would see of a change, an argument or a word is
// spelled and counted; a card without any says nothing of it.
func TestHidden(t *testing.T) {
	q := question()
	if c := Draw(q); strings.Contains(c.Text, "hidden") {
		t.Error(c.Text)
	}
	q.Card.Change = "+if a \u202e\u200b== b \U000e0061\n+\xff\n"
	q.Card.Details = []grant.Field{{Name: "arguments", Text: "rm\u2060 x"}}
	q.Card.Says = []grant.Field{{Name: "client", Text: "sure\u200d"}}
	c := Draw(q)
	for _, want := range []string{
		"  | +if a \\u{202e}\\u{200b}== b \\u{e0061}\n  | +\\xff\n", "arguments   rm\\u{2060} x\n", "\"sure\\u{200d}\"",
		"\nhidden      6 invisible characters, spelled as \\u{…} or \\x…\n",
	} {
		if !strings.Contains(c.Text, want) {
			t.Errorf("no %q in\n%s", want, c.Text)
		}
	}
	q.Card.Hidden = 2 // spelled before it was kept
	if c := Draw(q); !strings.Contains(c.Text, "hidden      8 inv") {
		t.Error(c.Text)
	}
}

// TestNamesOnCard: no two names are drawn alike because nobody would see the rest,
// wherever they stand; what is spelled counts.
func TestNamesOnCard(t *testing.T) {
	for _, c := range []struct {
		name, drawn string
		hidden      int
	}{
		{"out", "project://out", 0},
		{"out\u200d", `"project://out\u{200d}"`, 1},
		{"out\u2800", `"project://out\u{2800}"`, 1},
		{"o\u00a0ut\ufe0f", `"project://o\u{a0}ut\u{fe0f}"`, 2},
		{"out ", `"project://out "`, 0},
		{`out\u{200d}`, `project://out\u{200d}`, 0},
	} {
		q := question()
		q.For.Operations[0].Resource, q.For.Objects[0].Name = "project://"+c.name, "project://"+c.name
		q.For.Objects = append(q.For.Objects, grant.Object{Name: "project://with " + c.name})
		d := Draw(q)
		if !strings.HasSuffix(d.Text, "\nfs.write "+c.drawn+"\n") || !strings.Contains(d.Text, "with        "+strings.Replace(c.drawn, "://", "://with ", 1)+"\n") {
			t.Errorf("%q:\n%s", c.name, d.Text)
		}
		want := ""
		if c.hidden > 0 {
			want = fmt.Sprintf("\nhidden      %d invisible characters, ", 2*c.hidden)
		}
		if strings.Contains(d.Text, "\nhidden") != (want != "") || !strings.Contains(d.Text, want) {
			t.Errorf("%q, not %q:\n%s", c.name, want, d.Text)
		}
	}
	q := question()
	plain := Draw(q).Text
	q.For.Agent, q.For.Session, q.For.Tool, q.Card.Rule = "a\u200d", "s\u2800", "t\u034f", "r\u200b"
	q.For.Roots = []grant.Root{{Name: "project", Path: "/p\u17b4"}}
	if d := Draw(q); !strings.Contains(d.Text, "hidden      5 inv") || strings.ContainsAny(d.Text, "\u200d\u2800\u034f\u200b\u17b4") || strings.Contains(plain, "hidden") {
		t.Error(d.Text)
	}
	card := Card{Pattern: "project://a\u200d/**"}
	if got := card.choices(grant.Answer{Kind: grant.Once}); !strings.Contains(got, `"project://a\u{200d}/**"`) {
		t.Error(got)
	}
}

// TestFolderOnCard: the folder is on the card, so that cards of two differ.
func TestFolderOnCard(t *testing.T) {
	q, r := question(), question()
	q.For.Roots, r.For.Roots = []grant.Root{{Name: "project", Path: "/a/p", ID: "1:2"}}, []grant.Root{{Name: "project", Path: "/b/p", ID: "1:2"}}
	c := Draw(q)
	if !strings.Contains(c.Text, "folder      project:// is /a/p\n") || c.Digest == Draw(r).Digest {
		t.Error(c.Text)
	}
}

func wide(columns, rows int) *Terminal {
	return &Terminal{size: func() (int, int) { return columns, rows }}
}

// TestWrap: no row is as wide as the terminal, each that continues a line is
// marked, and nothing is lost.
func TestWrap(t *testing.T) {
	forged := "  | +x" + strings.Repeat(" ", 73) + "fs.write project://other"
	if got := wide(80, 24).wrap(forged + "\n"); strings.Contains(got, "\nfs.write") || !strings.Contains(got, "\n"+goesOn+"fs.write project://other\n") {
		t.Errorf("%q", got)
	}
	if got := wide(80, 24).wrap("a\tb\nc\n"); got != "a       b\nc\n" {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"one two three four five":       "one two three four \n" + goesOn + "five",
		"one two three fourscore five":  "one two three \n" + goesOn + "fourscore five",
		"one two-three-four-five-six":   "one two-three-four-\n" + goesOn + "five-six",
		"one two three fou\nr five six": "one two three fou\nr five six",
	} {
		if got := wide(20, 24).wrap(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab |世é\n"))).Draw(rt, "text")
		columns := rapid.IntRange(20, 90).Draw(rt, "columns")
		got := wide(columns, 24).wrap(text)
		for row := range strings.Lines(got) {
			n := 0
			for _, r := range strings.TrimSuffix(strings.TrimPrefix(row, goesOn), "\n") {
				n += width(r, 0)
			}
			if n >= columns {
				rt.Fatalf("%d columns of %d: %q", n, columns, row)
			}
		}
		if back := strings.ReplaceAll(got, "\n"+goesOn, ""); back != text {
			rt.Fatalf("%q of %q", back, text)
		}
	})
}

// TestLongLinePages: one long line comes a page at a time like many short ones.
func TestLongLinePages(t *testing.T) {
	for text, paged := range map[string]bool{strings.Repeat("x", 80*30): true, strings.Repeat("x", 80): false} {
		in, keys := io.Pipe()
		out := &screen{}
		term := newTerminal(in, out)
		ended := make(chan error, 1)
		go func() { ended <- term.page(t.Context(), text+"\n", func() error { return nil }) }()
		if paged {
			for !strings.Contains(out.String(), "-- more: enter --") {
				time.Sleep(time.Millisecond)
			}
			if n := strings.Count(out.String(), "\r\n"); n != 21 {
				t.Errorf("%d rows on a page", n)
			}
			_ = keys.Close()
			if err := <-ended; err == nil {
				t.Error("it went on by itself")
			}
			continue
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = keys.Close()
	}
}

// TestPutOff: a passing fault puts a question off for a moment, a person for
// good.
func TestPutOff(t *testing.T) {
	store := grant.Open(t.TempDir(), grant.Options{})
	b := question().For
	b.Host = true
	q, err := store.Ask(t.Context(), b, question().Card, "c", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	later, now := map[string]time.Time{}, time.Now()
	shown := func(after time.Duration) bool { return deskOf(store).next(later, now.Add(after)) != nil }
	if !shown(0) {
		t.Fatal("it is not shown")
	}
	if err := putOff(later, []*grant.Question{q}, errAgain, now); err != nil || shown(0) || !shown(pauseAgain) {
		t.Errorf("a passing fault: %v, %v", err, later)
	}
	if err := putOff(later, []*grant.Question{q}, ErrLater, now); err != nil || shown(24*time.Hour) {
		t.Errorf("a person: %v, %v", err, later)
	}
	if err := putOff(later, []*grant.Question{q}, io.EOF, now); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
