// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
)

// killed ends an operation between two steps, as a kill would: the lock is let
// go and nothing after the step happens.
type killed struct{}

// model is what must be true whatever happens.
type model struct {
	w        *world
	t        *rapid.T
	store    *Store
	killAt   int // at which step from now, 0 for never
	bindings []Binding
	ids      []string
	kind     map[string]Kind // of those that may have been approved
	denied   map[string]bool
	spent    map[string]int
	over     map[string]bool // revoked, or killed in a spend or a revocation
	maybe    map[string]bool // killed before anybody knew how it ended
}

// try runs do, perhaps killed at a step.
func (m *model) try(do func() error) (err error, dead bool) { //nolint:revive // the kill is what matters
	m.killAt = 0
	if rapid.IntRange(0, 3).Draw(m.t, "killed") == 0 {
		m.killAt = rapid.IntRange(1, 5).Draw(m.t, "step")
	}
	defer func() {
		m.killAt = 0
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			dead = true
			m.store = m.w.open(m.step) // another process
		}
	}()
	return do(), false
}

func (m *model) step(string) {
	if m.killAt == 0 {
		return
	}
	if m.killAt--; m.killAt == 0 {
		panic(killed{})
	}
}

func (m *model) id() (string, bool) {
	if len(m.ids) == 0 {
		return "", false
	}
	if rapid.Bool().Draw(m.t, "newest") {
		return m.ids[len(m.ids)-1], true
	}
	return rapid.SampledFrom(m.ids).Draw(m.t, "id"), true
}

func (m *model) binding() Binding { return rapid.SampledFrom(m.bindings).Draw(m.t, "binding") }

func (m *model) ask() {
	b := m.binding()
	_, _ = m.try(func() error {
		q, err := m.store.Ask(context.Background(), b, Card{}, "c", testLife)
		if err == nil && !contains(m.ids, q.ID) {
			m.ids = append(m.ids, q.ID)
		}
		return err
	})
}

func (m *model) decide() {
	id, ok := m.id()
	if !ok {
		return
	}
	kind := rapid.SampledFrom([]Kind{Once, Once, Once, Session, Until, Always, No}).Draw(m.t, "kind")
	err, dead := m.try(func() error {
		_, err := m.store.Decide(context.Background(), id, Answer{Kind: kind, Life: time.Minute, Approver: "x", Pattern: "project://src/**"})
		return err
	})
	_, answered := m.kind[id]
	switch {
	case dead:
		if !answered && !m.denied[id] {
			m.maybe[id] = true
		}
	case err != nil:
	case answered || m.denied[id]:
		m.t.Fatalf("%s was answered twice", id)
	case kind == No:
		m.denied[id] = true
	default:
		m.kind[id] = kind
	}
}

func (m *model) spend() {
	id, ok := m.id()
	if !ok {
		return
	}
	b := m.binding()
	err, dead := m.try(func() error { return m.spendOnce(id, b) })
	if dead {
		m.over[id] = m.over[id] || m.kind[id] == Once // it may be used up, and must never count twice
		return
	}
	if err != nil {
		return
	}
	if m.over[id] && m.kind[id] != Once && !m.maybe[id] || m.denied[id] && !m.maybe[id] {
		m.t.Fatalf("%s was spent after it was taken back or denied", id)
	}
}

// spendOnce counts what got through.
func (m *model) spendOnce(id string, b Binding) error {
	g, readErr := m.store.answer(grantsDir, id)
	_, err := m.store.Spend(context.Background(), id, &b, "c")
	if err != nil {
		return err
	}
	if readErr != nil {
		m.t.Fatalf("%s was spent and is none: %v", id, readErr)
	}
	if m.spent[id]++; g.Kind == Once && m.spent[id] > 1 {
		m.t.Fatalf("%s was spent %d times", id, m.spent[id])
	}
	if !g.covers(&b, b.prints()) || g.Kind == No {
		m.t.Fatalf("%s was spent for something else", id)
	}
	return nil
}

func (m *model) revoke() {
	id, ok := m.id()
	if !ok {
		return
	}
	err, dead := m.try(func() error {
		_, err := m.store.Revoke(context.Background(), id, "x")
		return err
	})
	if !dead && err == nil {
		m.over[id], m.maybe[id] = true, false
		if b := m.binding(); m.spendQuietly(id, b) == nil {
			m.t.Fatalf("%s was spent after it was revoked", id)
		}
	}
}

func (m *model) spendQuietly(id string, b Binding) error {
	_, err := m.store.Spend(context.Background(), id, &b, "c")
	return err
}

// TestInterleavings: however asking, answering, spending, revoking, sweeping,
// pausing, kills and clocks come together, nothing is answered twice, no yes
// for once is spent twice, and none after it was taken back.
func TestInterleavings(t *testing.T) {
	spends := 0
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		m := &model{
			w: w, t: rt, kind: map[string]Kind{}, denied: map[string]bool{}, spent: map[string]int{}, over: map[string]bool{}, maybe: map[string]bool{},
		}
		m.store = w.open(m.step)
		for i := range 2 {
			b := write1()
			b.Arguments = fmt.Sprint(i)
			m.bindings = append(m.bindings, b)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"ask":    func(*rapid.T) { m.ask() },
			"decide": func(*rapid.T) { m.decide() },
			"spend":  func(*rapid.T) { m.spend() },
			"again":  func(*rapid.T) { m.spend() },
			"yes":    func(*rapid.T) { m.decide() },
			"use":    func(*rapid.T) { m.spend() },
			"revoke": func(*rapid.T) { m.revoke() },
			"sweep":  func(*rapid.T) { _, _ = m.try(func() error { return m.store.Sweep(context.Background()) }) },
			"resume": func(*rapid.T) {
				_, _ = m.try(func() error { return m.store.Resume(context.Background(), "a", "x") })
			},
			"time": func(rt *rapid.T) { w.clock.pass(time.Duration(rapid.IntRange(0, 200).Draw(rt, "s")) * time.Second) },
			"clock": func(rt *rapid.T) {
				w.clock.set(w.clock.clock().Wall().Add(time.Duration(rapid.IntRange(-600, 20).Draw(rt, "s")) * time.Second))
			},
		})
		for _, n := range m.spent {
			spends += n
		}
	})
	if spends == 0 {
		t.Error("nothing was ever spent: this run proves nothing")
	}
	t.Logf("%d spends", spends)
}

func contains(all []string, s string) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

// TestTheModelSees: the property fails for a store that doesn't put away what
// was spent.
func TestTheModelSees(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	w.decide(q, Once)
	s := w.store
	for range 2 { // what Spend does without its move
		if _, err := s.spendable(q.ID, &w.store.Grants()[0].For); err != nil {
			t.Errorf("%v", err)
		}
	}
	w.must(w.spend(q.ID, write1()))
	_, err := s.spendable(q.ID, &q.For)
	wantCode(t, err, fault.GrantRevoked)
}
