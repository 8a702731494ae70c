// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/config"
	"github.com/postern-gate/postern/internal/links"
)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestLive(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nrules: { fs.write: ask }\n")
	c := &clock{now: time.Unix(1, 0)}
	var reports []error
	live, err := config.OpenLive(p.opts, c.read, func(err error) { reports = append(reports, err) })
	if err != nil {
		t.Fatal(err)
	}
	want := func(d core.Decision, problem fault.Code, seen int) {
		t.Helper()
		if got := live.Evaluate(file(core.FSWrite, "x")); got.Decision != d || live.Explain(file(core.FSWrite, "x"))[0] != got.Reason {
			t.Errorf("%v, want %v", got, d)
		}
		if got := fault.CodeOf(live.Problem()); got != problem || len(reports) != seen {
			t.Errorf("problem %v, %d reports; want %v, %d", got, len(reports), problem, seen)
		}
	}
	want(core.Ask, fault.OK, 0)
	first := live.Version()
	p.user("version: 1\nrules: { fs.write: deny }\nrequire: { ifMatch: [fs.write] }\n")
	want(core.Ask, fault.OK, 0) // not looked at within a second
	c.pass(time.Second)
	want(core.Deny, fault.OK, 0)
	if live.Version() == first || !live.IfMatchRequired(core.FSWrite) || !live.ConfirmRequired(core.FSDelete) {
		t.Error("the new policy is not in force as a whole")
	}
	p.user("version: 1\nrules: { fs.write: maybe }\n")
	c.pass(time.Second)
	want(core.Deny, fault.ConfigInvalid, 1) // the last good one stays
	c.pass(time.Second)
	want(core.Deny, fault.ConfigInvalid, 1) // and is reported once
	path := p.user("version: 1\nrules: { fs.write: allow }\n")
	c.pass(time.Second)
	want(core.Allow, fault.OK, 2)
	if reports[1] != nil {
		t.Errorf("recovery reports %v", reports[1])
	}
	p.project("version: 1\nrules: { fs.write: ask }\n") // a file that was not there
	c.pass(time.Second)
	want(core.Ask, fault.OK, 2)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	want(core.Ask, fault.ConfigInvalid, 3)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	want(core.Ask, fault.OK, 4)
	p.user("nonsense")
	if _, err := config.OpenLive(p.opts, c.read, nil); fault.CodeOf(err) != fault.ConfigInvalid {
		t.Errorf("a live policy starts invalid: %v", err)
	}
}

// TestLiveIsSafeForConcurrentUse is for the race detector.
func TestLiveIsSafeForConcurrentUse(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\n")
	c := &clock{now: time.Unix(1, 0)}
	live, err := config.OpenLive(p.opts, c.read, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 50 {
				if i == 0 {
					c.pass(time.Second)
				}
				if got := live.Evaluate(file(core.FSRead, "x")); got.Decision != core.Allow {
					t.Error(got)
				}
			}
		})
	}
	for i := range 20 {
		p.user("version: 1\n#" + string(rune('a'+i)) + "\n")
	}
	wg.Wait()
}

// TestLiveBurst: of calls that come at once after a quiet time none is decided
// by what held before it.
func TestLiveBurst(t *testing.T) {
	p := newPlace(t)
	p.user("version: 1\nrules: { fs.write: ask }\n")
	c := &clock{now: time.Unix(1, 0)}
	live, err := config.OpenLive(p.opts, c.read, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for round, rule := range []string{"deny", "allow", "ask", "deny", "allow", "ask", "deny", "allow"} {
		p.user("version: 1\nrules: { fs.write: " + rule + " }\n" + "# " + strings.Repeat("x", round) + "\n")
		c.pass(time.Hour)
		start := make(chan struct{})
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				<-start
				if got := live.Evaluate(file(core.FSWrite, "x")).Decision.String(); got != rule {
					t.Errorf("round %d: %s, want %s", round, got, rule)
				}
			})
		}
		close(start)
		calls.Wait()
	}
}

// TestLiveEntrusted: what init attaches while a server runs is out of reach from
// then on, and changes nothing else.
func TestLiveEntrusted(t *testing.T) {
	p := newPlace(t)
	c := &clock{now: time.Unix(1, 0)}
	var now config.Entrusted
	p.opts.Entrusted = func(*links.Look) config.Entrusted { return now }
	live, err := config.OpenLive(p.opts, c.read, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	want := func(a core.Action, name string, d core.Decision) {
		t.Helper()
		if got := live.Evaluate(file(a, name)).Decision; got != d {
			t.Errorf("%v of %s: %v, want %v", a, name, got, d)
		}
	}
	want(core.FSWrite, "ch/config.toml", core.Allow)
	now = config.Entrusted{Places: map[string][]string{"agents": {filepath.Join(p.dir, "ch", "config.toml"), p.dir}, "postern": {filepath.Join(p.dir, "p.yaml")}}}
	c.pass(time.Second)
	want(core.FSWrite, "ch/config.toml", core.Deny)
	want(core.FSRead, "ch/config.toml", core.Allow)
	want(core.FSWrite, "p.yaml", core.Deny)
	want(core.FSWrite, "ch/other", core.Allow) // though the root is named
	now = config.Entrusted{}
	c.pass(time.Second)
	want(core.FSWrite, "ch/config.toml", core.Allow)
}
