// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// seen collects events by name.
type seen struct {
	mu   sync.Mutex
	kind map[string]WatchKind // "" for events without a name
	over bool
}

func (s *seen) tell(e WatchEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kind == nil {
		s.kind = map[string]WatchKind{}
	}
	s.kind[e.Name.Rel()] = e.Kind
	s.over = s.over || e.Kind == WatchOver
}

func (s *seen) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kind[name] != 0
}

func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind = nil
}

func (s *seen) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func watching(o *Options) { o.Watcher = &Watcher{} }

// changing is a decider that a test changes while it is asked.
type changing struct {
	mu sync.Mutex
	rules
}

func (c *changing) Evaluate(q core.Request) core.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules.Evaluate(q)
}

func (c *changing) deny(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules.deny = map[string]core.Decision{what: core.Deny}
}

// TestWatch: a directory tells of its entries but those that the policy hides,
// with one record in all.
func TestWatch(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.list project://d/hidden": core.Deny}},
		map[string]string{"d/a": "1", "d/hidden": "1"}, watching)
	var s seen
	watch, err := w.gate.Watch(t.Context(), "d", s.tell)
	w.must(err)
	defer watch.Close()
	w.put("d/hidden", "2")
	w.put("d/a", "2")
	w.put("d/new", "2")
	eventually(t, "d/new", func() bool { return s.has("d/new") && s.has("d/a") })
	if s.has("d/hidden") {
		t.Error("a hidden name was told")
	}
	if len(w.log.events) != 1 || w.log.events[0].Action != core.FSWatch || w.log.events[0].Resource.String() != "project://d" {
		t.Errorf("%+v", w.log.events)
	}
	open, err := w.open(rules{}, watching).Watch(t.Context(), "d", s.tell) // the same without the rule
	w.must(err)
	defer open.Close()
	w.put("d/hidden", "3")
	eventually(t, "d/hidden", func() bool { return s.has("d/hidden") })
}

// TestWatchFile: a file is watched by its name, over being replaced, and its
// neighbours aren't. A link is watched where it leads.
func TestWatchFile(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"d/a": "1", "d/b": "1", "link": "-> d/a"}, watching)
	var s seen
	watch, err := w.gate.Watch(t.Context(), "link", s.tell)
	w.must(err)
	defer watch.Close()
	if watch.Name().Rel() != "d/a" {
		t.Error(watch.Name())
	}
	w.put("d/b", "2")
	for _, text := range []string{"2", "3"} {
		w.put("d/next", text)
		w.must(os.Rename(w.path("d/next"), w.path("d/a")))
		eventually(t, "d/a", func() bool { return s.has("d/a") })
		if s.has("d/b") || s.has("d/next") {
			t.Error("a neighbour was told of")
		}
		s.forget()
	}
}

// TestWatchRefused: what may not be watched or listed isn't, and what is neither
// file nor directory can't be.
func TestWatchRefused(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{
		"fs.watch project://unwatched": core.Deny, "fs.list project://hidden": core.Deny, "fs.watch project://asked": core.Ask,
	}}, map[string]string{"unwatched/a": "", "hidden/a": "", "asked/a": "", "plain/a": ""}, watching)
	for name, want := range map[string]fault.Code{
		"unwatched": fault.PolicyDenied, "hidden": fault.PolicyDenied, "asked": fault.PolicyAsk,
		"missing": fault.PathMissing, "../x": fault.PathEscape,
	} {
		if _, err := w.gate.Watch(t.Context(), name, nil); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := w.open(rules{}).Watch(t.Context(), "plain", nil); fault.CodeOf(err) != fault.LimitExceeded {
		t.Errorf("without a watcher: %v", err)
	}
	ok, err := w.gate.Watch(t.Context(), "plain", func(WatchEvent) {})
	w.must(err)
	ok.Close()
	ok.Close()
}

// TestWatchEnds: a watch is over when its directory goes away and when the
// policy doesn't let it be watched any more.
func TestWatchEnds(t *testing.T) {
	d := &changing{}
	w := newWorld(t, d, map[string]string{"gone/": "", "denied/": "", "kept/": ""}, watching)
	var gone, denied, kept seen
	for name, s := range map[string]*seen{"gone": &gone, "denied": &denied, "kept": &kept} {
		watch, err := w.gate.Watch(context.Background(), name, s.tell)
		w.must(err)
		defer watch.Close()
	}
	w.must(os.Remove(w.path("gone")))
	eventually(t, "the end of gone", gone.ended)
	d.deny("fs.watch project://denied")
	w.put("denied/a", "1")
	w.put("kept/a", "1")
	eventually(t, "the end of denied", denied.ended)
	eventually(t, "kept/a", func() bool { return kept.has("kept/a") })
	if denied.has("denied/a") || kept.ended() {
		t.Errorf("%+v %+v", denied.kind, kept.kind)
	}
}
