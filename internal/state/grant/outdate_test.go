// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// under picks what was put under a policy, in a folder.
func under(policy, folder string) func(*Binding) bool {
	return func(b *Binding) bool { return b.Policy == policy && b.Within([]string{folder}) }
}

// outdating is a binding under a policy, in a folder.
func outdating(policy, folder, arguments string) Binding {
	b := write1()
	b.Policy, b.Arguments, b.Roots = policy, arguments, []Root{{"project", folder, "1:2"}}
	return b
}

// TestOutdate: with its policy a question ends, and a yes of every kind; what is
// under another one, or about another folder, stays, and so does a no.
func TestOutdate(t *testing.T) {
	w := newWorld(t)
	kinds := []Kind{Once, Session, Pattern, Until, Always}
	over := map[string]Binding{}
	var stays []string
	for _, kind := range append(kinds, No) {
		b := outdating("p1", "/a", string(kind))
		q := w.ask(b)
		w.decide(q, kind)
		if kind != No {
			over[q.ID] = b
		}
	}
	waits := w.ask(outdating("p1", "/a", "waits"))
	for _, b := range []Binding{outdating("p2", "/a", "later"), outdating("p1", "/b", "elsewhere")} {
		stays = append(stays, w.ask(b).ID)
		b.Arguments += ", yes"
		q := w.ask(b)
		w.decide(q, Always)
		stays = append(stays, q.ID)
	}
	both := outdating("p1", "/a", "both")
	both.Roots = append(both.Roots, Root{"other", "/b", "1:4"})
	stays = append(stays, w.ask(both).ID)

	for range 2 { // another server of the folder finds nothing more
		w.must(w.open(nil).Outdate(t.Context(), under("p1", "/a")))
	}
	var left []string
	for _, q := range w.store.Pending() {
		left = append(left, q.ID)
	}
	for _, g := range w.store.Grants() {
		left = append(left, g.ID)
	}
	slices.Sort(left)
	slices.Sort(stays)
	if !slices.Equal(left, stays) {
		t.Errorf("left %v, want %v", left, stays)
	}
	if n := w.events(Expired); n != len(kinds)+1 || w.notes[len(w.notes)-1].Reason != PolicyChanged {
		t.Errorf("%d records, the last %+v", n, w.notes[len(w.notes)-1])
	}
	for id, b := range over { // the edit may be taken back
		wantCode(t, w.spend(id, b), fault.GrantRevoked)
	}
	no := outdating("p1", "/a", string(No))
	if w.store.Find(&no).No == nil {
		t.Error("the no is gone")
	}
	_, err := w.store.Decide(t.Context(), waits.ID, Answer{Kind: Once})
	wantCode(t, err, fault.GrantExpired)
	if got := fault.As(err).Because(); got != "the question is over: the policy changed" || w.store.Why(waits.ID) != PolicyChanged {
		t.Errorf("told %q", got)
	}
	if again := w.ask(outdating("p1", "/a", "waits")); again.ID == waits.ID {
		t.Error("the old id")
	}
}

// TestLapsedTold: who answers what was answered already hears that the yes has ended
// and why; of one that was used, or holds, only what it was.
func TestLapsedTold(t *testing.T) {
	w := newWorld(t)
	ask := func(arguments string, kind Kind) *Question {
		q := w.ask(outdating("p1", "/a", arguments))
		w.decide(q, kind)
		return q
	}
	edited := ask("edited", Once)
	w.must(w.store.Outdate(t.Context(), under("p1", "/a")))
	timed := ask("timed", Once)
	w.clock.pass(testLife + time.Second)
	w.must(w.store.Sweep(t.Context()))
	used, holds := ask("used", Once), ask("holds", Session)
	w.must(w.spend(used.ID, outdating("p1", "/a", "used")))
	for _, tc := range []struct {
		q          *Question
		rule, next string
	}{
		{edited, "it was answered before, and ended: the policy changed", "let the agent call again, which asks anew"},
		{timed, "it was answered before, and ended: its time is over", "let the agent call again, which asks anew"},
		{used, "it was answered before: approved by test", "postern grants shows what is in force"},
		{holds, "it was answered before: approved by test", "postern grants shows what is in force"},
	} {
		_, err := w.open(nil).Question(t.Context(), tc.q.ID)
		wantCode(t, err, fault.PreconditionFailed)
		if f := fault.As(err); f.Because() != tc.rule || f.Next() != tc.next {
			t.Errorf("told %q, next %q; want %q", f.Because(), f.Next(), tc.rule)
		}
	}
}

// TestMayNot: what Decide refuses is known before anybody is asked, and nothing else.
func TestMayNot(t *testing.T) {
	w := newWorld(t)
	for i, a := range []Answer{
		{Kind: Once},
		{Kind: No},
		{Kind: Session},
		{Kind: Until, Life: time.Hour},
		{Kind: Until, Life: 8 * 24 * time.Hour},
		{Kind: Until},
		{Kind: Pattern, Pattern: "src/**"},
		{Kind: Pattern, Pattern: "project://src/**"},
		{Kind: Always, Pattern: "project://src/**"},
		{Kind: Always, Pattern: "project://other/**"},
		{Kind: Pattern, Pattern: "project://{a,b}"},
		{Kind: "forever"},
	} {
		for j, change := range []func(*Binding){func(*Binding) {}, func(b *Binding) { b.Class = "destructive" }, func(b *Binding) { b.Agent = "" }, func(b *Binding) { b.Private = true }} {
			b := outdating("p1", "/a", string(rune('a'+i))+string(rune('a'+j)))
			change(&b)
			q := w.ask(b)
			rule := q.MayNot(a)
			_, err := w.store.Decide(t.Context(), q.ID, a)
			if (err != nil) != (rule != "") || err != nil && fault.As(err).Because() != rule {
				t.Errorf("%+v of %d: %q, and then %v", a, j, rule, err)
			}
			w.must(w.store.Resume(t.Context(), b.Agent, "test"))
		}
	}
}

// TestAnywhere: what names a folder first is not for all of a root.
func TestAnywhere(t *testing.T) {
	for pattern, want := range map[string]bool{
		"project://**": true, "project://**/*": true, "project://*.go": true, "project://?**": true, "project://[a-z]*/**": true, "project:///**": true,
		"project://src/**": false, "project://a": false, `project://\[x]/**`: false, "project://": false, "": false,
	} {
		if Anywhere(pattern) != want {
			t.Errorf("%q: %v", pattern, !want)
		}
	}
}

// TestOutdateNothing: where nothing was asked, nothing is made; what a question
// showed is not kept with its reason.
func TestOutdateNothing(t *testing.T) {
	w := newWorld(t)
	w.must(w.store.Outdate(t.Context(), under("p1", "/a")))
	if got := files(t, w.dir); len(got) != 0 {
		t.Errorf("made %v", got)
	}
	q, err := w.store.Ask(t.Context(), outdating("p1", "/a", "x"), Card{Change: "what it showed"}, "c", testLife)
	w.must(err)
	w.must(w.store.Outdate(t.Context(), under("p1", "/a")))
	kept, err := os.ReadFile(w.path(spentDir, q.ID+asked))
	if w.must(err); len(kept) > 200 {
		t.Errorf("kept: %s", kept)
	}
	w.must(os.WriteFile(w.path(spentDir, q.ID+asked), []byte("an excuse"), 0o600))
	if why := w.store.Why(q.ID); why != "" {
		t.Errorf("somebody's reason: %q", why)
	}
}

// TestOutdateFails: what can't be ended now is said, and ended another time; a log
// that is full keeps nothing in force.
func TestOutdateFails(t *testing.T) {
	w := newWorld(t)
	w.decide(w.ask(outdating("p1", "/a", "yes")), Always)
	w.ask(outdating("p1", "/a", "waits"))
	held, err := w.store.enter(t.Context())
	w.must(err)
	if w.open(nil).Outdate(ended(t.Context()), under("p1", "/a")) == nil {
		t.Error("it ended what somebody else holds")
	}
	held()
	w.fail = errors.New("full")
	w.must(w.store.Outdate(t.Context(), under("p1", "/a")))
	if asked, given := w.store.Any(under("p1", "/a")); asked || given {
		t.Error("something is left")
	}
}

// TestOutdateWhileWaiting: who waits for an answer hears that there won't be one.
func TestOutdateWhileWaiting(t *testing.T) {
	w := newWorld(t)
	q := w.ask(outdating("p1", "/a", "waits"))
	ended := make(chan *Grant, 1)
	go func() { ended <- w.open(nil).Wait(t.Context(), q, nil) }()
	w.must(w.store.Outdate(t.Context(), under("p1", "/a")))
	select {
	case g := <-ended:
		if g != nil {
			t.Errorf("answered: %+v", g)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits on")
	}
}
