// SPDX-License-Identifier: Apache-2.0

package grant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postern-gate/postern/core/fault"
)

// TestOnce: a yes for once serves the call that it is for, once.
func TestOnce(t *testing.T) {
	w := newWorld(t)
	b := write1()
	if f := w.store.Find(&b); f != (Found{}) {
		t.Errorf("before anything: %+v", f)
	}
	if got := files(t, w.dir); len(got) != 0 {
		t.Errorf("a look made %v", got)
	}
	q := w.ask(b)
	if again := w.ask(b); again.ID != q.ID {
		t.Errorf("a retry asked again: %s, %s", q.ID, again.ID)
	}
	wantCode(t, w.spend(q.ID, b), fault.GrantRevoked)
	g := w.decide(q, Once)
	if f := w.store.Find(&b); f.Grant == nil || f.Grant.ID != g.ID {
		t.Fatalf("found %+v", f)
	}
	w.must(w.spend(q.ID, b))
	wantCode(t, w.spend(q.ID, b), fault.GrantRevoked)
	if f := w.store.Find(&b); f.Grant != nil {
		t.Errorf("found again: %+v", f)
	}
	if next := w.ask(b); next.ID == q.ID {
		t.Error("the spent question was asked again under its id")
	}
	if w.events(Asked) != 2 || w.events(Approved) != 1 || w.events(Spent) != 1 {
		t.Errorf("notes %+v", w.notes)
	}
	if n := w.notes[2]; n.Corr != "corr-1" || n.ID != q.ID {
		t.Errorf("spent note %+v", n)
	}
}

// TestEveryBindingCounts: a yes for once is for nothing that differs in any
// field, and stays for what it is for.
func TestEveryBindingCounts(t *testing.T) {
	b := write1()
	b.Tree, b.Process = "tree", "proc"
	b.Roots = []Root{{"project", "/a/p", "1:2"}}
	changes := map[string]func(*Binding){
		"agent": func(b *Binding) { b.Agent = "x" }, "session": func(b *Binding) { b.Session = "x" },
		"host": func(b *Binding) { b.Host = false }, "process": func(b *Binding) { b.Process = "x" },
		"source": func(b *Binding) { b.Source = "x" }, "server": func(b *Binding) { b.Server = "x" },
		"tool": func(b *Binding) { b.Tool = "x" }, "class": func(b *Binding) { b.Class = "read_only" },
		"arguments": func(b *Binding) { b.Arguments = "x" }, "policy": func(b *Binding) { b.Policy = "x" },
		"more": func(b *Binding) { b.More = 1 }, "private": func(b *Binding) { b.Private = true },
		"action":   func(b *Binding) { b.Operations[0].Action = "fs.create" },
		"resource": func(b *Binding) { b.Operations[0].Resource = "project://src/b.go" },
		"list":     func(b *Binding) { b.Operations[0].List = "dotenv" },
		"object":   func(b *Binding) { b.Objects[0].Name = "project://src/b.go" },
		"state":    func(b *Binding) { b.Objects[0].State = "2" }, "hash": func(b *Binding) { b.Objects[0].Hash = "x" },
		"tree": func(b *Binding) { b.Tree = "x" },
		"root": func(b *Binding) { b.Roots[0].Name = "x" }, "folder": func(b *Binding) { b.Roots[0].Path = "/b/p" },
		"directory": func(b *Binding) { b.Roots[0].ID = "1:3" },
		"mounts":    func(b *Binding) { b.Mounts = map[string][]string{"project": {"m"}} },
	}
	leaves := 0 // a new field needs a case
	var count func(reflect.Type)
	count = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i).Type
			if f.Kind() == reflect.Slice {
				f = f.Elem()
			}
			if f.Kind() == reflect.Struct {
				count(f)
			} else {
				leaves++
			}
		}
	}
	const door = 1 // which is no part of what a yes is for
	if count(reflect.TypeFor[Binding]()); leaves-door != len(changes) {
		t.Errorf("%d fields, %d cases", leaves-door, len(changes))
	}
	stale := map[string]bool{"state": true, "hash": true, "tree": true}
	w := newWorld(t)
	presence, err := w.store.Appear(t.Context())
	w.must(err)
	b.Process = presence.Name
	q := w.ask(b)
	w.decide(q, Once)
	for name, change := range changes {
		c := b
		c.Operations, c.Objects = append([]Operation{}, b.Operations...), append([]Object{}, b.Objects...)
		c.Roots = append([]Root{}, b.Roots...)
		change(&c)
		want := fault.GrantMismatch
		if stale[name] {
			want = fault.GrantStale
		}
		if err := w.spend(q.ID, c); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if f := w.store.Find(&c); f.Grant != nil || f.Stale != stale[name] {
			t.Errorf("%s: found %+v", name, f)
		}
	}
	b.Door = "x"
	w.must(w.spend(q.ID, b)) // nothing was used up
}

// TestKinds: how far each kind reaches.
func TestKinds(t *testing.T) {
	later := func(b Binding) Binding { b.Objects = []Object{{Name: b.Objects[0].Name, State: "later"}}; return b }
	other := func(b Binding) Binding { b.Arguments = "args-2"; return b }
	session := func(b Binding) Binding { b.Session = "t"; return b }
	sibling := func(b Binding) Binding {
		b.Arguments, b.Tool = "args-3", "edit_file"
		b.Operations, b.Objects = []Operation{{Action: "fs.write", Resource: "project://src/x/b.go"}}, []Object{{Name: "project://src/x/b.go"}}
		return b
	}
	outside := func(b Binding) Binding {
		b.Operations, b.Objects = []Operation{{Action: "fs.write", Resource: "project://docs/b"}}, []Object{{Name: "project://docs/b"}}
		return b
	}
	root := func(b Binding) Binding {
		b.Operations, b.Objects = []Operation{{Action: "fs.write", Resource: "other://src/a"}}, []Object{{Name: "other://src/a"}}
		return b
	}
	both := func(b Binding) Binding {
		b.Objects = append([]Object{{Name: "project://docs/b"}}, b.Objects...)
		return b
	}
	create := func(b Binding) Binding {
		b.Operations = []Operation{{Action: "fs.create", Resource: "project://src/a.go"}}
		return b
	}
	policy := func(b Binding) Binding { b.Policy = "p2"; return b }
	secret := func(b Binding) Binding { b.Private = true; return b }
	deletes := func(b Binding) Binding { b.Class = "destructive"; return b }
	all := map[string]func(Binding) Binding{
		"later": later, "other": other, "session": session, "sibling": sibling, "outside": outside, "root": root,
		"both": both, "create": create, "policy": policy, "secret": secret, "deletes": deletes,
	}
	for kind, serves := range map[Kind]string{
		Session: "later", Until: "later session", Pattern: "later other sibling", Always: "later other sibling session", Once: "",
	} {
		w := newWorld(t)
		q := w.ask(write1())
		w.decide(q, kind)
		for name, change := range all {
			b := change(write1())
			want := strings.Contains(" "+serves+" ", " "+name+" ")
			if f := w.store.Find(&b); (f.Grant != nil) != want {
				t.Errorf("%s finds %s: %+v", kind, name, f)
			}
			if err := w.spend(q.ID, b); (err == nil) != want {
				t.Errorf("%s serves %s: %v", kind, name, err)
			}
		}
		w.must(w.spend(q.ID, write1()))
		if err := w.spend(q.ID, write1()); (err == nil) != (kind != Once) {
			t.Errorf("%s a second time: %v", kind, err)
		}
	}
}

// TestRefusedKinds: what can't be taken back is approved once, and no pattern
// reaches what it must not.
func TestRefusedKinds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Binding)
		a      Answer
	}{
		"session, destructive": {func(b *Binding) { b.Class = "destructive" }, Answer{Kind: Session}},
		"until, runtime":       {func(b *Binding) { b.Class = "runtime" }, Answer{Kind: Until, Life: time.Hour}},
		"pattern, unknown":     {func(b *Binding) { b.Class = "unknown" }, Answer{Kind: Pattern, Pattern: "project://**"}},
		"pattern, no class":    {func(b *Binding) { b.Class = "" }, Answer{Kind: Pattern, Pattern: "project://**"}},
		"pattern, a secret":    {func(b *Binding) { b.Private = true }, Answer{Kind: Pattern, Pattern: "project://**"}},
		"pattern, no root":     {func(*Binding) {}, Answer{Kind: Pattern, Pattern: "**"}},
		"pattern, elsewhere":   {func(*Binding) {}, Answer{Kind: Pattern, Pattern: "project://docs/**"}},
		"pattern, not valid":   {func(*Binding) {}, Answer{Kind: Pattern, Pattern: "project://{a,b}"}},
		"pattern, empty":       {func(*Binding) {}, Answer{Kind: Pattern}},
		"until, nobody":        {func(b *Binding) { b.Agent = "" }, Answer{Kind: Until, Life: time.Hour}},
		"always, runtime":      {func(b *Binding) { b.Class = "runtime" }, Answer{Kind: Always, Pattern: "project://**"}},
		"always, a secret":     {func(b *Binding) { b.Private = true }, Answer{Kind: Always, Pattern: "project://**"}},
		"always, elsewhere":    {func(*Binding) {}, Answer{Kind: Always, Pattern: "project://docs/**"}},
		"always, no pattern":   {func(*Binding) {}, Answer{Kind: Always}},
		"always, nobody":       {func(b *Binding) { b.Agent = "" }, Answer{Kind: Always, Pattern: "project://**"}},
		"until, no time":       {func(*Binding) {}, Answer{Kind: Until}},
		"until, too long":      {func(*Binding) {}, Answer{Kind: Until, Life: MaxUntil + 1}},
		"no kind":              {func(*Binding) {}, Answer{}},
		"another kind":         {func(*Binding) {}, Answer{Kind: "forever"}},
	} {
		w := newWorld(t)
		b := write1()
		tc.change(&b)
		q := w.ask(b)
		if _, err := w.store.Decide(t.Context(), q.ID, tc.a); fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if len(files(t, w.path("grants"))) != 0 || w.events(Approved) != 0 {
			t.Errorf("%s: something was approved", name)
		}
		w.decide(q, Once) // it still is a question
	}
}

// TestCovers: two yeses for the same names are told apart, and arguments are kept
// by their digest only.
func TestCovers(t *testing.T) {
	w := newWorld(t)
	b := write1()
	b.Arguments = strings.Repeat("ab", 32)
	q, err := w.store.Ask(t.Context(), b, Card{Details: []Field{{"content", "5 bytes, sha256 " + strings.Repeat("cd", 32)}, {"arguments", "SECRET"}}}, "c", testLife)
	w.must(err)
	w.decide(q, Once)
	if g := w.store.Grants()[0]; g.Covers != "write_file content 5 bytes, sha256 cdcdcdcdcdcd… arguments abababababab…" {
		t.Errorf("%q", g.Covers)
	}
	q.Card.Details = []Field{{"x", strings.Repeat("word ", 1000)}}
	if got := q.covers(); len(got) != maxCovers {
		t.Errorf("%d bytes", len(got))
	}
}

// TestUnshownOnce: a yes to what wasn't shown whole is for once.
func TestUnshownOnce(t *testing.T) {
	more := write1()
	more.More = 1
	for _, tc := range []struct {
		b    Binding
		card Card
	}{{write1(), Card{Unshown: "the rest"}}, {more, Card{}}} {
		w := newWorld(t)
		q, err := w.store.Ask(t.Context(), tc.b, tc.card, "c", testLife)
		w.must(err)
		if !q.WantsCode() {
			t.Error("no code")
		}
		for _, a := range []Answer{{Kind: Session}, {Kind: Until, Life: time.Hour}, {Kind: Pattern, Pattern: "project://**"}, {Kind: Always, Pattern: "project://**"}} {
			_, err := w.store.Decide(t.Context(), q.ID, a)
			wantCode(t, err, fault.RequestInvalid)
		}
		w.decide(q, Once)
		w.must(w.spend(q.ID, tc.b))
	}
}

// TestFirstAnswerHolds: of two people who answer at once one is told that the
// other was first.
func TestFirstAnswerHolds(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		b := write1()
		b.Arguments = newID()
		q := w.ask(b)
		var won, told atomic.Int32
		var wg sync.WaitGroup
		for i := range 4 {
			s := w.open(nil)
			wg.Go(func() {
				kind := []Kind{Once, No}[i%2]
				_, err := s.Decide(t.Context(), q.ID, Answer{Kind: kind, Approver: fmt.Sprint(i)})
				switch fault.CodeOf(err) {
				case fault.OK:
					won.Add(1)
				case fault.PreconditionFailed:
					told.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || told.Load() != 3 {
			t.Fatalf("%d won, %d were told", won.Load(), told.Load())
		}
		w.must(w.store.Resume(t.Context(), "a", "test"))
	}
	if n := w.events(Approved) + w.events(Denied); n != 20 {
		t.Errorf("%d answers in the log", n)
	}
}

// TestSpentOnceAtOnce: of many calls at once one spends the yes.
func TestSpentOnceAtOnce(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		b := write1()
		b.Arguments = newID()
		q := w.ask(b)
		w.decide(q, Once)
		var spent atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			s := w.open(nil)
			wg.Go(func() {
				if _, err := s.Spend(t.Context(), q.ID, &b, "c"); err == nil {
					spent.Add(1)
				}
			})
		}
		wg.Wait()
		if spent.Load() != 1 {
			t.Fatalf("spent %d times", spent.Load())
		}
	}
}

// TestNo: a no answers the identical question for a minute, and three in a row
// pause the agent.
func TestNo(t *testing.T) {
	w := newWorld(t)
	b := write1()
	q := w.ask(b)
	w.decide(q, No)
	if f := w.store.Find(&b); f.No == nil || f.No.Deadline() != f.No.Given.Wall.Add(NoLife) || f.Grant != nil {
		t.Errorf("found %+v", f)
	}
	wantCode(t, w.spend(q.ID, b), fault.GrantMismatch)
	c := b
	c.Arguments = "other"
	if f := w.store.Find(&c); f.No != nil {
		t.Error("another question was denied")
	}
	w.clock.pass(NoLife)
	if f := w.store.Find(&b); f.No != nil {
		t.Error("still denied after a minute")
	}
	w.decide(w.ask(b), No)
	c.Arguments = "third"
	w.decide(w.ask(c), Once)
	for i := range 3 { // a yes in between begins the row anew
		c.Arguments = fmt.Sprint("row", i)
		if f := w.store.Find(&c); f.Paused {
			t.Fatalf("paused after %d", i)
		}
		w.decide(w.ask(c), No)
	}
	if f := w.store.Find(&c); !f.Paused || w.events(Paused) != 1 {
		t.Errorf("found %+v", f)
	}
	c.Arguments = "third"
	if err := w.spend(w.store.Grants()[0].ID, c); fault.CodeOf(err) != fault.GrantRevoked {
		t.Errorf("a paused agent spent: %v", err)
	}
	d := b
	d.Agent = "b"
	if f := w.store.Find(&d); f.Paused {
		t.Error("another agent is paused")
	}
	w.must(w.store.Resume(t.Context(), "a", "test"))
	w.must(w.spend(w.store.Grants()[0].ID, c))
}

func TestRevoke(t *testing.T) {
	w := newWorld(t)
	for _, kind := range []Kind{Once, Session, Pattern, Until, Always} {
		b := write1()
		b.Arguments = string(kind)
		q := w.ask(b)
		w.decide(q, kind)
		kept, err := os.ReadFile(w.path("grants", q.ID))
		w.must(err)
		if _, err := w.store.Revoke(t.Context(), q.ID, "test"); err != nil {
			t.Fatal(err)
		}
		wantCode(t, w.spend(q.ID, b), fault.GrantRevoked)
		w.must(os.WriteFile(w.path("grants", q.ID), kept, 0o600)) // put back
		if f := w.store.Find(&b); f.Grant != nil {
			wantCode(t, w.spend(q.ID, b), fault.GrantRevoked)
		}
		if len(w.store.Grants()) != 0 {
			t.Errorf("%s: in force after it was revoked", kind)
		}
		if _, err := w.store.Decide(t.Context(), q.ID, Answer{Kind: Once}); fault.CodeOf(err) != fault.PreconditionFailed {
			t.Errorf("answered again: %v", err)
		}
		w.must(os.Remove(w.path("grants", q.ID)))
	}
	if _, err := w.store.Revoke(t.Context(), "00000000", "test"); fault.CodeOf(err) != fault.RequestInvalid {
		t.Errorf("one that isn't there: %v", err)
	}
	for _, id := range []string{"", "../keys/x", "0000000/", "0000000000"} {
		if _, err := w.store.Revoke(t.Context(), id, "test"); fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestClocks: whatever is done to a clock, nothing holds for longer.
func TestClocks(t *testing.T) {
	kinds := []Kind{Once, Session, Until, Always}
	life := map[Kind]time.Duration{Once: testLife, Session: SessionLife, Until: time.Hour, Always: AlwaysLife}
	for name, tc := range map[string]struct {
		do func(*testClock, time.Duration)
		ok map[Kind]bool
	}{
		"just before":          {func(c *testClock, d time.Duration) { c.pass(d - time.Second) }, map[Kind]bool{Once: true, Session: true, Until: true, Always: true}},
		"over":                 {func(c *testClock, d time.Duration) { c.pass(d) }, nil},
		"over and set back":    {func(c *testClock, d time.Duration) { c.pass(d); c.set(c.wall.Add(-d)) }, nil},
		"set back before it":   {func(c *testClock, d time.Duration) { c.pass(d); c.set(c.wall.Add(-3 * d)) }, nil},
		"set forward":          {func(c *testClock, d time.Duration) { c.set(c.wall.Add(d)) }, nil},
		"set back at once":     {func(c *testClock, _ time.Duration) { c.set(c.wall.Add(-time.Hour)) }, map[Kind]bool{Once: true, Session: true, Until: true, Always: true}},
		"another boot":         {func(c *testClock, _ time.Duration) { c.pass(time.Second); c.reboot() }, map[Kind]bool{Session: true, Until: true, Always: true}},
		"another boot, over":   {func(c *testClock, d time.Duration) { c.pass(d); c.reboot() }, nil},
		"another boot, before": {func(c *testClock, _ time.Duration) { c.set(c.wall.Add(-time.Hour)); c.reboot() }, nil},
		"the same boot, no id": {func(c *testClock, _ time.Duration) { c.up = time.Second }, map[Kind]bool{Session: true, Until: true, Always: true}},
		"another boot, a bit":  {func(c *testClock, _ time.Duration) { c.set(c.wall.Add(-3 * time.Second)); c.reboot() }, nil},
		"another boot, set back": {func(c *testClock, d time.Duration) {
			c.pass(d / 2)
			c.set(c.wall.Add(-d/2 - 5*time.Second))
			c.reboot()
		}, nil},
	} {
		for _, kind := range kinds {
			w := newWorld(t)
			q := w.ask(write1())
			w.decide(q, kind)
			tc.do(w.clock, life[kind])
			err := w.spend(q.ID, write1())
			if (err == nil) != tc.ok[kind] {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
			if err != nil && fault.CodeOf(err) != fault.GrantExpired {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
		}
	}
}

// TestDeadline: a question that is over can't be answered, by anybody's clock,
// and the log has why.
func TestDeadline(t *testing.T) {
	for name, pass := range map[string]func(*testClock){
		"nine days": func(c *testClock) { c.pass(9 * 24 * time.Hour) },
		"set back":  func(c *testClock) { c.pass(testLife); c.set(c.wall.Add(-testLife)) },
		"boot":      func(c *testClock) { c.reboot() },
	} {
		w := newWorld(t)
		q := w.ask(write1())
		pass(w.clock)
		if len(w.store.Pending()) != 0 {
			t.Errorf("%s: still shown", name)
		}
		for range 2 {
			_, err := w.store.Decide(t.Context(), q.ID, Answer{Kind: Once})
			wantCode(t, err, fault.GrantExpired)
		}
		if len(files(t, w.path("grants"))) != 0 || w.events(Expired) != 1 || w.notes[1].Reason != "timeout" {
			t.Errorf("%s: %+v", name, w.notes)
		}
		if next := w.ask(write1()); next.ID == q.ID {
			t.Errorf("%s: the old id", name)
		}
	}
}

// TestLogFirst: nothing is answered or resumed that can't be recorded; to take
// something back holds all the same.
func TestLogFirst(t *testing.T) {
	w := newWorld(t)
	b := write1()
	q := w.ask(b)
	full := errors.New("full")
	w.fail = full
	for _, kind := range []Kind{Once, No, Session} {
		if _, err := w.store.Decide(t.Context(), q.ID, Answer{Kind: kind}); !errors.Is(err, full) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	c := b
	c.Arguments = "x"
	if _, err := w.store.Ask(t.Context(), c, Card{}, "c", testLife); !errors.Is(err, full) {
		t.Errorf("asked: %v", err)
	}
	w.fail = nil
	w.decide(q, Session)
	w.fail = full
	if err := w.spend(q.ID, b); !errors.Is(err, full) {
		t.Errorf("spent: %v", err)
	}
	if _, err := w.store.Revoke(t.Context(), q.ID, "x"); !errors.Is(err, full) {
		t.Errorf("revoked: %v", err)
	}
	if err := w.store.Pause(t.Context(), "a", "x"); !errors.Is(err, full) {
		t.Errorf("paused: %v", err)
	}
	if err := w.store.Resume(t.Context(), "a", "x"); !errors.Is(err, full) {
		t.Errorf("resumed: %v", err)
	}
	w.fail = nil
	wantCode(t, w.spend(q.ID, b), fault.GrantRevoked)
	if f := w.store.Find(&b); !f.Paused {
		t.Error("it isn't paused")
	}
}

func TestBounds(t *testing.T) {
	w := newWorld(t)
	b := write1()
	for i := range MaxPending {
		b.Arguments = fmt.Sprint(i)
		w.ask(b)
	}
	w.ask(b) // one that waits already
	b.Arguments = "one more"
	_, err := w.store.Ask(t.Context(), b, Card{}, "c", testLife)
	wantCode(t, err, fault.PolicyAsk)
	b.Agent = "b"
	w.ask(b)
	b.Arguments = "large"
	_, err = w.store.Ask(t.Context(), b, Card{Change: strings.Repeat("x", MaxRecord)}, "c", testLife)
	wantCode(t, err, fault.LimitExceeded)
	w.clock.pass(testLife)
	b.Agent = "a"
	w.ask(b)
}

// TestWait: who waits gets the answer; one that ends, or is spent by another
// call, gives nothing.
func TestWait(t *testing.T) {
	w := newWorld(t)
	b := write1()
	q := w.ask(b)
	got := make(chan *Grant, 1)
	ticks := make(chan struct{}, 100)
	go func() { got <- w.store.Wait(t.Context(), q, func() { ticks <- struct{}{} }) }()
	<-ticks
	w.decide(q, Once)
	if g := <-got; g == nil || g.ID != q.ID {
		t.Errorf("waited for %+v", g)
	}
	w.must(w.spend(q.ID, b))
	if g := w.store.Wait(t.Context(), q, nil); g != nil {
		t.Errorf("a spent one: %+v", g)
	}
	q = w.ask(b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if g := w.store.Wait(ctx, q, nil); g != nil {
		t.Errorf("cancelled: %+v", g)
	}
	if len(w.store.Pending()) != 1 {
		t.Error("the end of a wait took the question away")
	}
	w.clock.pass(testLife)
	if g := w.store.Wait(t.Context(), q, nil); g != nil {
		t.Errorf("over: %+v", g)
	}
}

// TestPresence: somebody is there as long as its process holds its file.
func TestPresence(t *testing.T) {
	w := newWorld(t)
	if w.store.Attended(t.Context()) {
		t.Error("attended by nobody")
	}
	p, err := w.store.Attend(t.Context())
	w.must(err)
	if !w.open(nil).Attended(t.Context()) {
		t.Error("not attended")
	}
	w.must(p.Leave())
	if w.store.Attended(t.Context()) {
		t.Error("attended by one who left")
	}
	w.must(os.WriteFile(w.path("approvers", "0123"), nil, 0o600)) // of one that was killed
	if w.store.Attended(t.Context()) || len(files(t, w.path("approvers"))) != 0 {
		t.Error("attended by a dead one")
	}
}

// TestSessionEnds: with a process its questions and yeses end.
func TestSessionEnds(t *testing.T) {
	w := newWorld(t)
	p, err := w.store.Appear(t.Context())
	w.must(err)
	b := write1()
	b.Host, b.Process = false, p.Name
	c := b
	c.Arguments = "asked"
	q := w.ask(b)
	w.decide(q, Session)
	w.ask(c)
	w.must(w.spend(q.ID, b))
	w.must(p.Leave())
	w.must(w.store.Sweep(t.Context()))
	if len(w.store.Grants())+len(w.store.Pending()) != 0 || w.events(Expired) != 2 {
		t.Errorf("%v, %v", w.store.Grants(), w.store.Pending())
	}
	wantCode(t, w.spend(q.ID, b), fault.GrantRevoked)
}

// TestSweep: litter and what is over goes; what holds stays.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	q := w.ask(write1())
	w.decide(q, Session)
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"pending/.tmp-1", "grants/.tmp-2", "spent/00000000"} {
		w.must(os.MkdirAll(w.path("spent"), 0o700))
		w.must(os.WriteFile(w.path(name), nil, 0o600))
		w.must(os.Chtimes(w.path(name), old, old))
	}
	w.must(os.WriteFile(w.path("grants/.tmp-3"), nil, 0o600)) // somebody is writing it
	w.must(w.store.Sweep(t.Context()))
	if got := append(files(t, w.path("grants")), files(t, w.path("pending"))...); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got := files(t, w.path("spent")); len(got) != 1 {
		t.Errorf("%v", got)
	}
	info, err := os.Stat(w.path("spent", q.ID+asked))
	if err != nil || info.Size() != 0 {
		t.Errorf("what was shown is kept: %v, %v", info, err)
	}
	w.must(w.spend(q.ID, write1()))
}
