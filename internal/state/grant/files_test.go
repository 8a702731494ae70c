// SPDX-License-Identifier: Apache-2.0

//go:build unix

package grant

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
)

// harmed does one thing to a record that leaves it no record under its name.
func harmed(t *rapid.T, path string, foreign []byte) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name, mode := path, os.FileMode(0o600)
	at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
	switch rapid.SampledFrom([]string{"edited", "cut", "twice", "foreign", "open", "grown", "moved"}).Draw(t, "harm") {
	case "edited":
		b[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "bits"))
	case "cut":
		b = b[:at]
	case "twice":
		b = append(bytes.Clone(b), b...)
	case "foreign":
		b = foreign
	case "open":
		mode = os.FileMode(rapid.SampledFrom([]uint32{0o604, 0o640, 0o620, 0o602, 0o777}).Draw(t, "mode"))
	case "grown":
		b = append(b, byte(rapid.IntRange(0, 255).Draw(t, "byte")))
	case "moved":
		name = filepath.Join(filepath.Dir(path), "0000000z")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// TestHarmedFiles: whatever happens to the file of a question or of a yes, it is
// one no more: it isn't shown, answered, found or spent, and asking goes on.
func TestHarmedFiles(t *testing.T) {
	elsewhere := newWorld(t)
	elsewhere.ask(write1())
	theirs, err := os.ReadFile(elsewhere.path("pending", files(t, elsewhere.path("pending"))[0]))
	elsewhere.must(err)
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		q, b := w.ask(write1()), write1()
		path := w.path("pending", files(t, w.path("pending"))[0])
		yes := rapid.Bool().Draw(rt, "a yes")
		if yes {
			w.decide(q, rapid.SampledFrom([]Kind{Once, Session, Until, Always}).Draw(rt, "kind"))
			path = w.path("grants", q.ID)
		}
		harmed(rt, path, theirs)
		s := w.open(nil)
		if len(s.Pending())+len(s.Grants()) != 0 || s.Find(&b).Grant != nil {
			rt.Fatal("it is shown or found")
		}
		for _, id := range []string{q.ID, "0000000z"} {
			if _, err := s.Decide(t.Context(), id, Answer{Kind: Once, Approver: "test"}); err == nil {
				rt.Fatal("it was answered")
			}
			if _, err := s.Spend(t.Context(), id, &b, "c"); err == nil {
				rt.Fatal("it was spent")
			}
		}
		next, err := s.Ask(t.Context(), b, Card{}, "c", testLife)
		if err != nil || next.ID == q.ID {
			rt.Fatalf("asked again: %+v, %v", next, err)
		}
		if _, err := s.Decide(t.Context(), next.ID, Answer{Kind: Once, Approver: "test"}); err != nil {
			rt.Fatal(err)
		}
		if _, err := s.Spend(t.Context(), next.ID, &b, "c"); err != nil {
			rt.Fatal(err)
		}
	})
}

// TestQuestionPutBack: a copy of a question that was answered is none, whatever
// became of the answer.
func TestQuestionPutBack(t *testing.T) {
	for name, then := range map[string]func(w *world, q *Question){
		"yes":   func(w *world, q *Question) { w.decide(q, Once) },
		"no":    func(w *world, q *Question) { w.decide(q, No) },
		"spent": func(w *world, q *Question) { w.decide(q, Once); w.must(w.spend(q.ID, write1())) },
		"taken back": func(w *world, q *Question) {
			w.decide(q, Session)
			_, err := w.store.Revoke(w.t.Context(), q.ID, "x")
			w.must(err)
		},
		"timeout": func(w *world, _ *Question) {
			w.clock.pass(testLife)
			w.must(w.store.Sweep(w.t.Context()))
			w.clock.pass(-testLife)
		},
		"swept": func(w *world, q *Question) {
			w.decide(q, No)
			w.clock.pass(2 * NoLife)
			w.must(w.store.Sweep(w.t.Context()))
		},
	} {
		w := newWorld(t)
		q := w.ask(write1())
		path := w.path("pending", files(t, w.path("pending"))[0])
		b, err := os.ReadFile(path)
		w.must(err)
		then(w, q)
		w.must(os.WriteFile(path, b, 0o600))
		if _, err := w.open(nil).Decide(t.Context(), q.ID, Answer{Kind: Once, Approver: "test"}); fault.CodeOf(err) != fault.PreconditionFailed && fault.CodeOf(err) != fault.GrantExpired {
			t.Errorf("%s: answered: %v", name, err)
		}
		if all := w.open(nil).Pending(); len(all) != 0 {
			t.Errorf("%s: it is shown", name)
		}
	}
}
