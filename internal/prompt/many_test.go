// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/grant"
)

// TestNumbered: what answers several questions says how many.
func TestNumbered(t *testing.T) {
	for line, want := range map[string]string{
		"all": "once[0 1 2]", "1 3": "once[0 2]", "3, 1": "once[2 0]", "1 1": "once[0]", "n": "no[0 1 2]", "no all": "no[0 1 2]", "n 2": "no[1]",
		"l": "[]", "LATER": "[]", "": "-", "y": "-", "yes": "-", "0": "-", "4": "-", "01": "-", "+1": "-", "1 x": "-", "all 1": "-", "n n": "-", "l 1": "-", "s": "-",
	} {
		kind, chosen, ok := numbered(line, 3)
		got := fmt.Sprint(kind, chosen)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

// put asks about these names.
func put(t *testing.T, store *grant.Store, change func(*grant.Binding), names ...string) (all []*grant.Question) {
	t.Helper()
	for _, name := range names {
		b, card := question().For, question().Card
		b.Host, b.Operations, b.Objects = true, slices.Clone(b.Operations), slices.Clone(b.Objects)
		b.Operations[0].Resource, b.Objects[0].Name, b.Arguments = "project://"+name, "project://"+name, name
		card.Change = "+" + name + "\n"
		change(&b)
		q, err := store.Ask(t.Context(), b, card, "c", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

// TestRun: what stands on one card is alike, doesn't want a code, and fits.
func TestRun(t *testing.T) {
	for name, change := range map[string]func(*grant.Binding){
		"another agent":   func(b *grant.Binding) { b.Agent = "x" },
		"another session": func(b *grant.Binding) { b.Session = "x" },
		"another folder":  func(b *grant.Binding) { b.Roots = []grant.Root{{Name: "project", Path: "/x"}} },
		"another tool":    func(b *grant.Binding) { b.Tool = "x" },
		"another action":  func(b *grant.Binding) { b.Operations[0].Action = "fs.create" },
		"another policy":  func(b *grant.Binding) { b.Policy = "x" },
		"destructive":     func(b *grant.Binding) { b.Class = "destructive" },
		"private":         func(b *grant.Binding) { b.Private = true },
	} {
		store := grant.Open(t.TempDir(), grant.Options{})
		d := deskOf(store)
		all := put(t, store, func(*grant.Binding) {}, "a", "b")
		other := put(t, store, change, "c", "d")
		if got := d.run(append(slices.Clone(all), other...)); !slices.Equal(got, all) {
			t.Errorf("%s: %d on one card", name, len(got))
		}
		if both := d.Together(other); both == (name == "destructive" || name == "private") {
			t.Errorf("%s: two of it together: %v", name, both)
		}
		d.Since = func(b *grant.Binding) []string {
			if b.Arguments == "a" {
				return []string{"project://a"}
			}
			return nil
		}
		if got := d.run(all); len(got) != 1 {
			t.Errorf("%d with one that changed", len(got))
		}
		if got := d.run([]*grant.Question{all[1], all[0]}); len(got) != 1 {
			t.Errorf("%d with one that changed", len(got))
		}
	}
	store := grant.Open(t.TempDir(), grant.Options{})
	many := put(t, store, func(*grant.Binding) {}, strings.Split("a b c d e f g h i j k l", " ")...)
	if got := deskOf(store).run(many); len(got) != maxRows {
		t.Errorf("%d rows", len(got))
	}
	for _, q := range many[:3] {
		q.Card.Change = strings.Repeat("+x\n", 20_000)
	}
	if got := deskOf(store).run(many[:3]); len(got) != 1 {
		t.Errorf("%d long ones on one card", len(got))
	}
}

// TestDrawMany: a card of several has all that is on their own cards.
func TestDrawMany(t *testing.T) {
	store := grant.Open(t.TempDir(), grant.Options{})
	all := put(t, store, func(*grant.Binding) {}, "a", "b\x1b[2J")
	cards, text := drawMany(all)
	for i, c := range cards {
		if c.Digest != Draw(all[i]).Digest {
			t.Error("it is bound to another card")
		}
		for line := range strings.Lines(c.Text) {
			if !strings.Contains(text, line) {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
	}
	if strings.Contains(text, "\x1b") || strings.Count(text, "agent       claude-code\n") != 1 || !strings.Contains(text, "\n2           question "+all[1].ID+"\n") {
		t.Errorf("%q", text)
	}
}

// TestChangedMeanwhile: a card of what is something else now takes no yes, and
// one by one the rest of several can be answered.
func TestChangedMeanwhile(t *testing.T) {
	store := grant.Open(t.TempDir(), grant.Options{})
	d := deskOf(store)
	all := put(t, store, func(*grant.Binding) {}, "a", "b", "c")
	in, keys := io.Pipe()
	defer keys.Close()
	term := newTerminal(in, io.Discard)
	d.Since = func(b *grant.Binding) []string { return []string{"project://" + b.Arguments} }
	if _, err := d.Ask(t.Context(), term, all[0], grant.Answer{Kind: grant.Once}); fault.CodeOf(err) != fault.GrantStale {
		t.Errorf("a card: %v", err)
	}
	if _, err := d.AskMany(t.Context(), term, all); fault.CodeOf(err) != fault.GrantStale {
		t.Errorf("a card of several: %v", err)
	}
	if _, err := d.Decide(t.Context(), all[0], grant.Answer{Kind: grant.Session}); fault.CodeOf(err) != fault.GrantStale || len(store.Grants()) != 0 {
		t.Errorf("a yes: %v", err)
	}
	if _, err := d.Decide(t.Context(), all[0], grant.Answer{Kind: grant.No}); err != nil {
		t.Errorf("a no: %v", err)
	}
	d.Since = func(b *grant.Binding) []string {
		if b.Arguments == "b" {
			return []string{"project://b"}
		}
		return nil
	}
	cards, _ := drawMany(all[1:])
	given, err := d.decideMany(t.Context(), term, all[1:], cards, grant.Once, []int{0, 1})
	if len(given) != 1 || given[0].ID != all[2].ID || given[0].Shown != cards[1].Digest || err != ErrSome { //nolint:errorlint // it is the very one
		t.Errorf("%+v, %v", given, err)
	}
}
