// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/textsafe"
	"github.com/postern-gate/postern/internal/state/grant"
)

// desk is a gate whose questions go to a state directory, and the person who
// answers there.
type desk struct {
	*world
	state     *State
	approvals *Approvals
	person    *grant.Store
	clock     *handClock
	wait      time.Duration
	deadline  time.Duration
	asking    Asking
	rules     rules
}

// handClock is what a test moves by hand, on top of the time that passes.
type handClock struct {
	add  time.Duration
	from time.Time
}

func (c *handClock) clock() grant.Clock {
	return grant.Clock{
		Wall: func() time.Time { return time.Now().Add(c.add) },
		Up:   func() time.Duration { return time.Hour + time.Since(c.from) + c.add },
		Boot: func() string { return "boot" },
	}
}

func newDesk(t testing.TB, ask []string, spec map[string]string) *desk {
	t.Helper()
	d := &desk{
		clock: &handClock{from: time.Now()}, deadline: 15 * time.Minute,
		asking: Asking{Server: "postern", Tool: "write_file", Class: core.Mutating, HostSession: "S"}, rules: rules{deny: map[string]core.Decision{}},
	}
	for _, a := range ask {
		d.rules.deny[a] = core.Ask
	}
	var err error
	dir := filepath.Join(t.TempDir(), "state")
	if d.state, err = OpenState(dir, StateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.approvals = d.state.Approvals(ApprovalOptions{Times: func() (time.Duration, time.Duration) { return d.wait, d.deadline }, Clock: d.clock.clock()})
	d.person = grant.Open(dir, grant.Options{Clock: d.clock.clock(), Record: d.state.noteAs("terminal")})
	t.Cleanup(func() {
		if err := errors.Join(d.approvals.Close(), d.state.Close()); err != nil {
			t.Error(err)
		}
	})
	d.world = newWorld(t, d.rules, spec, d.parts)
	return d
}

func (d *desk) parts(o *Options) {
	o.Recorder, o.Locker, o.Approver = d.state, d.state, d.approvals
	o.Asking = func() Asking { return d.asking }
	o.Subject = core.Subject{Agent: "a1", Session: "connection", Source: "serve", Level: core.LevelSDK, Proven: true}
}

// call is a gate for one call, as a door makes it.
func (d *desk) call(change ...func(*Options)) *Gate {
	o := d.gate.o
	for _, f := range change {
		f(&o)
	}
	g, err := New(o)
	d.must(err)
	return g
}

// says changes what the door knows of one call.
func says(change func(*Asking)) func(*Options) {
	return func(o *Options) {
		before := o.Asking
		o.Asking = func() Asking {
			a := before()
			change(&a)
			return a
		}
	}
}

func session(name string) func(*Options) { return says(func(a *Asking) { a.HostSession = name }) }

var approveHint = regexp.MustCompile(`postern approve ([0-9a-z]{8})\b`)

// asked is the id of the question that a refusal names.
func asked(t testing.TB, err error, want fault.Code) string {
	t.Helper()
	if fault.CodeOf(err) != want {
		t.Fatalf("error %v, want %s", err, want)
	}
	m := approveHint.FindStringSubmatch(fault.As(err).Next())
	if m == nil {
		t.Fatalf("next: %s", fault.As(err).Next())
	}
	return m[1]
}

func (d *desk) yes(id string, a grant.Answer) {
	d.t.Helper()
	a.Approver = "test"
	if a.Kind == "" {
		a.Kind = grant.Once
	}
	if _, err := d.person.Decide(context.Background(), id, a); err != nil {
		d.t.Fatal(err)
	}
}

// told counts the records of each event.
func (d *desk) told() map[string]int {
	d.t.Helper()
	n := map[string]int{}
	d.must(d.state.Problem())
	for _, r := range records(d.t, d.state.Path()) {
		n[fmt.Sprint(r["event"])]++
	}
	return n
}

// made is what is beneath the root.
func (d *desk) made() map[string]string {
	got := d.tree()
	delete(got, d.dir)
	return got
}

func (d *desk) inForce(n int) {
	d.t.Helper()
	if got := d.person.Grants(); len(got) != n {
		d.t.Errorf("%d in force, want %d", len(got), n)
	}
}

// approvalCases are the tests of vectors/approvals, by id.
var approvalCases = map[string]func(*testing.T){
	"approval-replay":        approvalReplay,
	"approval-rebind":        approvalRebind,
	"approval-canonical":     approvalCanonical,
	"approval-toctou":        approvalTOCTOU,
	"approval-wrong-preview": approvalWrongPreview,
	"approval-expiry":        approvalExpiry,
	"approval-timeout":       approvalTimeout,
	"approval-long-wait":     approvalLongWait,
	"approval-fatigue":       approvalFatigue,
}

func TestApprovalVectors(t *testing.T) {
	f, err := os.Open("../vectors/approvals/cases.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var seen []string
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var v struct{ ID string }
		if err := json.Unmarshal(sc.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, v.ID)
		if approvalCases[v.ID] == nil {
			t.Errorf("%s has no test", v.ID)
			continue
		}
		t.Run(v.ID, approvalCases[v.ID])
	}
	if want := slices.Sorted(maps.Keys(approvalCases)); !slices.Equal(want, slices.Sorted(slices.Values(seen))) {
		t.Errorf("vectors %v, tests %v", seen, want)
	}
}

var writes = []string{"fs.write project://", "fs.create project://"}

func approvalReplay(t *testing.T) {
	d := newDesk(t, writes, nil)
	write := func(name, content string) error {
		_, err := d.call().Write(t.Context(), name, []byte(content), Call{})
		return err
	}
	id := asked(t, write("notes.md", "x"), fault.PolicyAsk)
	if again := asked(t, write("notes.md", "x"), fault.PolicyAsk); again != id {
		t.Errorf("a retry got %s, not %s", again, id)
	}
	d.yes(id, grant.Answer{})
	d.must(write("notes.md", "x"))
	second := asked(t, write("notes.md", "x"), fault.PolicyAsk)
	other := asked(t, write("other.md", "x"), fault.PolicyAsk)
	quoted := asked(t, write("quoted.md", id), fault.PolicyAsk)
	if all := []string{id, second, other, quoted}; len(slices.Compact(slices.Sorted(slices.Values(all)))) != 4 {
		t.Errorf("ids %v", all)
	}
	if got := d.made(); len(got) != 1 || d.read("notes.md") != "x" {
		t.Errorf("files %v", got)
	}
	if told := d.told(); told["spent"] != 1 || told["refusal"] != 5 || told["approved"] != 1 || told["asked"] != 4 {
		t.Errorf("log %v", told)
	}
	corr := map[any][]any{}
	for _, r := range records(t, d.state.Path()) {
		corr[r["corr"]] = append(corr[r["corr"]], r["event"])
	}
	if len(corr) != 5 || !slices.ContainsFunc(slices.Collect(maps.Values(corr)), func(events []any) bool {
		return fmt.Sprint(events) == "[asked refusal approved spent intent outcome]"
	}) {
		t.Errorf("corr %v", corr)
	}
}

// handler is a guarded handler that counts its runs.
func (d *desk) handler(server, name string, class core.Class) (run func(args map[string]any) error, ran *int) {
	ran = new(int)
	h := d.call().Guard(Tool{Server: server, Name: name, Class: class}, func(context.Context, ToolCall) (any, error) { *ran++; return nil, nil })
	return func(args map[string]any) error {
		_, err := h(context.Background(), ToolCall{Args: args})
		return err
	}, ran
}

func approvalRebind(t *testing.T) {
	d := newDesk(t, []string{"tool.call db://query"}, nil)
	run, ran := d.handler("db", "query", core.Destructive)
	harmless, other := map[string]any{"sql": "select 1", "id": 7}, map[string]any{"sql": "drop table x", "id": 7}
	id := asked(t, run(harmless), fault.PolicyAsk)
	d.yes(id, grant.Answer{})
	if next := asked(t, run(other), fault.PolicyAsk); next == id || *ran != 0 {
		t.Errorf("id %s, ran %d", next, *ran)
	}
	d.inForce(1)
	d.must(run(harmless))
	if *ran != 1 {
		t.Errorf("ran %d", *ran)
	}
	asked(t, run(harmless), fault.PolicyAsk)
}

func approvalCanonical(t *testing.T) {
	d := newDesk(t, []string{"tool.call claude-code://Bash", "tool.call github://create_issue"}, nil)
	bash, ran := d.handler("claude-code", "Bash", core.Destructive)
	issue, made := d.handler("github", "create_issue", core.Mutating)
	id := asked(t, bash(map[string]any{"command": "make", "description": "build it"}), fault.PolicyAsk)
	q, err := d.person.Question(t.Context(), id)
	d.must(err)
	if says := q.Card.Says; len(says) != 1 || says[0] != (grant.Field{Name: "description", Text: "build it"}) {
		t.Errorf("says %v", says)
	}
	d.yes(id, grant.Answer{})
	d.must(bash(map[string]any{"command": "make", "description": "something else"}))
	id = asked(t, issue(map[string]any{"title": "x", "description": "a"}), fault.PolicyAsk)
	d.yes(id, grant.Answer{})
	if next := asked(t, issue(map[string]any{"title": "x", "description": "b"}), fault.PolicyAsk); next == id {
		t.Error("the same question")
	}
	d.inForce(1)
	d.must(issue(map[string]any{"description": "a", "title": "x"}))
	if *ran != 1 || *made != 1 {
		t.Errorf("ran %d, %d", *ran, *made)
	}
}

func approvalTOCTOU(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for name, tc := range map[string]struct {
		swap  func(d *desk)
		codes []fault.Code
	}{
		"file": {func(d *desk) {
			d.must(os.Remove(d.path("d/a.txt")))
			d.must(os.Symlink(filepath.Join(outside, "a.txt"), d.path("d/a.txt")))
		}, []fault.Code{fault.PathEscape, fault.PathSymlink}},
		"folder": {func(d *desk) {
			d.must(os.Rename(d.path("d"), d.path("old")))
			d.must(os.Symlink(outside, d.path("d")))
		}, []fault.Code{fault.PathEscape, fault.PathSymlink}},
		"another": {func(d *desk) {
			d.put("new", "A")
			d.must(os.Rename(d.path("new"), d.path("d/a.txt")))
		}, []fault.Code{fault.GrantStale}},
		"rewritten": {func(d *desk) {
			info, err := os.Stat(d.path("d/a.txt"))
			d.must(err)
			d.must(os.WriteFile(d.path("d/a.txt"), []byte("B"), 0o644))
			d.must(os.Chtimes(d.path("d/a.txt"), info.ModTime(), info.ModTime()))
		}, []fault.Code{fault.GrantStale}},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.RemoveAll(outside)
			if err := errors.Join(os.Mkdir(outside, 0o755), os.WriteFile(filepath.Join(outside, "a.txt"), []byte("O"), 0o644)); err != nil {
				t.Fatal(err)
			}
			d := newDesk(t, writes, map[string]string{"d/": "", "d/a.txt": "A"})
			write := func() error { _, err := d.call().Write(t.Context(), "d/a.txt", []byte("new"), Call{}); return err }
			id := asked(t, write(), fault.PolicyAsk)
			d.yes(id, grant.Answer{})
			tc.swap(d)
			before := d.tree()
			err := write()
			if !slices.Contains(tc.codes, fault.CodeOf(err)) {
				t.Fatalf("error %v", err)
			}
			if fault.CodeOf(err) == fault.GrantStale {
				if next := asked(t, err, fault.GrantStale); next == id {
					t.Error("no new question")
				}
			}
			d.unchanged(before)
			if b, err := os.ReadFile(filepath.Join(outside, "a.txt")); err != nil || string(b) != "O" {
				t.Errorf("outside: %q, %v", b, err)
			}
			d.inForce(1)
			if told := d.told(); told["spent"] != 0 || told["refusal"] != 2 {
				t.Errorf("log %v", told)
			}
		})
	}
}

func approvalWrongPreview(t *testing.T) {
	d := newDesk(t, []string{"fs.create project://"}, nil)
	door := func(sent, rewritten string) error { // a door that rewrites
		_, err := d.call(says(func(a *Asking) {
			a.Digest = func() string { return rewritten }
			a.Says = []Detail{{"client", "it sent something"}}
		})).MakeDir(t.Context(), rewritten, Call{})
		if sent == rewritten {
			t.Error("nothing was rewritten")
		}
		return err
	}
	id := asked(t, door("build", "sub"), fault.PolicyAsk)
	q, err := d.person.Question(t.Context(), id)
	d.must(err)
	if shown := fmt.Sprintf("%+v", q); !strings.Contains(shown, "project://sub") || strings.Contains(shown, "build") {
		t.Errorf("the card: %s", shown)
	}
	d.yes(id, grant.Answer{Shown: strings.Repeat("ab", 32)})
	if g := d.person.Grants(); len(g) != 1 || g[0].Shown != strings.Repeat("ab", 32) {
		t.Errorf("in force: %+v", g)
	}
	if next := asked(t, door("build", "elsewhere"), fault.PolicyAsk); next == id {
		t.Error("the same question")
	}
	d.inForce(1)
	if got := d.made(); len(got) != 0 {
		t.Errorf("files %v", got)
	}
	d.must(door("build", "sub")) // the control
}

func approvalExpiry(t *testing.T) {
	d := newDesk(t, writes, nil)
	write := func() error { _, err := d.call().Write(t.Context(), "a", []byte("x"), Call{}); return err }
	id := asked(t, write(), fault.PolicyAsk)
	d.clock.add = 9 * 24 * time.Hour
	if _, err := d.person.Decide(t.Context(), id, grant.Answer{Kind: grant.Once}); fault.CodeOf(err) != fault.GrantExpired {
		t.Errorf("answered: %v", err)
	}
	d.inForce(0)
	id = asked(t, write(), fault.PolicyAsk)
	d.clock.add += time.Minute
	d.yes(id, grant.Answer{})
	d.clock.add += 15 * time.Minute
	if next := asked(t, write(), fault.PolicyAsk); next == id {
		t.Error("the same question")
	}
	if len(d.made()) != 0 || d.told()["spent"] != 0 {
		t.Errorf("files %v, log %v", d.tree(), d.told())
	}
}

func approvalTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, append([]string{"tool.call s://t"}, writes...), nil)
		d.wait, d.deadline = 45*time.Second, 10*time.Minute
		here, err := d.person.Attend(t.Context())
		d.must(err)
		handler, ran := d.handler("s", "t", core.Mutating)
		var ids []string
		for name, door := range map[string]func() error{
			"sdk":     func() error { return d.call(session("")).FS("project").WriteFile("a", nil) },
			"handler": func() error { return handler(map[string]any{"x": 1}) },
			"serve":   func() error { _, err := d.call().Write(t.Context(), "b", nil, Call{}); return err },
		} {
			began := time.Now()
			var f *fault.Error
			err := door()
			if !errors.As(err, &f) {
				t.Fatal(err)
			}
			ids = append(ids, asked(t, f, fault.PolicyAsk))
			if waited := time.Since(began); waited != d.wait {
				t.Errorf("%s waited %v", name, waited)
			}
		}
		for _, q := range d.person.Pending() {
			if q.Life != d.deadline || !slices.Contains(ids, q.ID) {
				t.Errorf("%+v", q)
			}
		}
		time.Sleep(d.deadline)
		for _, id := range ids {
			if _, err := d.person.Decide(t.Context(), id, grant.Answer{Kind: grant.Once}); fault.CodeOf(err) != fault.GrantExpired {
				t.Errorf("answered: %v", err)
			}
		}
		d.must(here.Leave())
		timeouts := 0
		d.must(d.state.Problem())
		for _, r := range records(t, d.state.Path()) {
			if r["event"] == "expired" && r["reason"] == "timeout" && r["decision"] == "deny" {
				timeouts++
			}
		}
		if timeouts != 3 || *ran != 0 || len(d.made()) != 0 {
			t.Errorf("%d timeouts, %d runs, files %v", timeouts, *ran, d.tree())
		}
	})
}

func approvalLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, writes, nil)
		d.wait = 45 * time.Second
		here, err := d.person.Attend(t.Context())
		d.must(err)
		write := func(ctx context.Context) error {
			_, err := d.call().Write(ctx, "a", []byte("x"), Call{})
			return err
		}
		id := asked(t, write(t.Context()), fault.PolicyAsk)
		time.Sleep(54 * time.Minute)
		if _, err := d.person.Decide(t.Context(), id, grant.Answer{Kind: grant.Once}); fault.CodeOf(err) != fault.GrantExpired {
			t.Errorf("after 54 minutes: %v", err)
		}
		id = asked(t, write(t.Context()), fault.PolicyAsk)
		time.Sleep(10 * time.Minute)
		d.yes(id, grant.Answer{})
		time.Sleep(time.Minute)
		if len(d.made()) != 0 {
			t.Error("something ran by itself")
		}
		d.must(write(t.Context()))
		d.inForce(0)
		d.must(os.Remove(d.path("a")))

		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, leave)
		if err := write(ctx); fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("gone: %v", err)
		}
		if told := d.told(); told["withdrawn"] != 1 || told["spent"] != 1 || told["failure"] != 1 || len(d.made()) != 0 {
			t.Errorf("log %v, files %v", told, d.tree())
		}
		if len(d.person.Pending()) != 1 {
			t.Error("a cancel took the question away")
		}
		d.must(here.Leave())
	})
}

func approvalFatigue(t *testing.T) {
	spec := map[string]string{"src/": "", "docs/": "", "docs/a": "A"}
	for i := range 60 {
		spec[fmt.Sprintf("src/%d.go", i)] = "A"
	}
	d := newDesk(t, []string{"fs.write project://", "fs.delete project://"}, spec)
	write := func(g *Gate, name string) error {
		_, err := g.Write(t.Context(), name, []byte("new"), Call{})
		return err
	}
	id := asked(t, write(d.call(), "src/0.go"), fault.PolicyAsk)
	d.yes(id, grant.Answer{Kind: grant.Pattern, Pattern: "project://src/**"})
	for i := range 30 {
		d.must(write(d.call(), fmt.Sprintf("src/%d.go", i)))
	}
	d.must(d.approvals.Close())
	d.approvals = d.state.Approvals(ApprovalOptions{Times: func() (time.Duration, time.Duration) { return 0, d.deadline }, Clock: d.clock.clock()})
	d.gate = d.open(d.rules, d.parts)
	for i := range 30 {
		d.must(write(d.call(), fmt.Sprintf("src/%d.go", 30+i)))
	}
	if n := len(d.person.Pending()); n != 0 {
		t.Errorf("%d questions", n)
	}
	asked(t, write(d.call(), "docs/a"), fault.PolicyAsk)
	_, err := d.call(says(func(a *Asking) { a.Tool, a.Class = "delete_file", core.Destructive })).Delete(t.Context(), "src/1.go", false, Call{Confirm: true})
	asked(t, err, fault.PolicyAsk)
	asked(t, write(d.call(session("T")), "src/1.go"), fault.PolicyAsk)
	if n := len(d.person.Pending()); n != 3 {
		t.Errorf("%d questions", n)
	}
	d.clock.add = grant.SessionLife
	asked(t, write(d.call(), "src/1.go"), fault.PolicyAsk)
}

// TestWaited: while a person is there the call waits, and their answer is its
// own; its client is told meanwhile.
func TestWaited(t *testing.T) {
	for name, tc := range map[string]struct {
		kind grant.Kind
		want fault.Code
	}{"yes": {grant.Once, fault.OK}, "session": {grant.Session, fault.OK}, "no": {grant.No, fault.PolicyDenied}} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, writes, nil)
			d.wait = time.Hour
			here, err := d.person.Attend(t.Context())
			d.must(err)
			var progress, aside, back atomic.Int32
			answered := make(chan error, 1)
			g := d.call(says(func(a *Asking) {
				a.Progress = func(time.Duration, time.Duration, textsafe.Line) { progress.Add(1) }
				a.Aside = func() func() error { aside.Add(1); return func() error { back.Add(1); return nil } }
			}))
			go func() {
				_, err := g.Write(t.Context(), "a", []byte("x"), Call{})
				answered <- err
			}()
			for progress.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			d.yes(d.person.Pending()[0].ID, grant.Answer{Kind: tc.kind})
			if err := <-answered; fault.CodeOf(err) != tc.want {
				t.Errorf("%v", err)
			}
			if aside.Load() != 1 || back.Load() != 1 {
				t.Errorf("aside %d, back %d", aside.Load(), back.Load())
			}
			if (len(d.made()) == 1) != (tc.want == fault.OK) {
				t.Errorf("files %v", d.tree())
			}
			d.wait = 0
			_, err = d.call().Write(t.Context(), "a", []byte("x"), Call{})
			if tc.kind == grant.No {
				d.saidNo(err)
			}
			d.must(here.Leave())
		})
	}
}

// TestTold: a client hears at once what a person is asked, and then each second.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, writes, nil)
		d.wait = 45 * time.Second
		here, err := d.person.Attend(t.Context())
		d.must(err)
		var heard []time.Duration
		var said textsafe.Line
		began := time.Now()
		_, err = d.call(says(func(a *Asking) {
			a.Progress = func(waited, most time.Duration, what textsafe.Line) {
				if waited != time.Since(began) || most != d.wait {
					t.Errorf("%v of %v", waited, most)
				}
				heard, said = append(heard, waited), what
			}
		})).Write(t.Context(), "a\u202eb", []byte("x"), Call{})
		id := asked(t, err, fault.PolicyAsk)
		if len(heard) < 30 || len(heard) > 46 || heard[0] != 0 {
			t.Errorf("heard %d times: %v", len(heard), heard)
		}
		if want := "a person is asked, postern approve " + id + `: fs.create "project://a\u202eb"`; said.String() != want {
			t.Errorf("%q, want %q", said, want)
		}
		d.must(here.Leave())
	})
}

// saidNo: after a no the refusal, and its record, say when it was said and when
// the same call is asked about again.
func (d *desk) saidNo(err error) {
	d.t.Helper()
	f := fault.As(err)
	if f.Code != fault.PolicyDenied || !strings.Contains(f.Because(), "a person said no to the same question in this session at ") || !strings.Contains(f.Next(), " on the same call is asked about again") {
		d.t.Errorf("again: %s", f.Lines())
	}
	n := 0
	for _, r := range records(d.t, d.state.Path()) {
		if r["event"] == "refusal" && r["code"] == "policy.denied" && r["reason"] == "a person said no" && r["approval"] != nil {
			n++
		}
	}
	if n != 2 {
		d.t.Errorf("%d refusals of the log name the no", n)
	}
}

// TestNeverAsked: what the policy denies, what lacks its confirm, and what
// can't be done never comes to a person; nor does a dry run.
func TestNeverAsked(t *testing.T) {
	d := newDesk(t, writes, map[string]string{"d/": "", "a": "A"})
	d.rules.deny["fs.write project://no"] = core.Deny
	d.rules.deny["fs.create project://no"] = core.Deny
	for name, do := range map[string]func(g *Gate) error{
		"denied":   func(g *Gate) error { _, err := g.Write(t.Context(), "no", nil, Call{}); return err },
		"escape":   func(g *Gate) error { _, err := g.Write(t.Context(), "../x", nil, Call{}); return err },
		"folder":   func(g *Gate) error { _, err := g.Write(t.Context(), "d", nil, Call{}); return err },
		"if match": func(g *Gate) error { _, err := g.Write(t.Context(), "a", nil, Call{IfMatch: "1x"}); return err },
		"dry run":  func(g *Gate) error { _, err := g.Write(t.Context(), "a", nil, Call{DryRun: true}); return err },
	} {
		if err := do(d.call()); err == nil {
			t.Errorf("%s: it went through", name)
		}
	}
	if q := d.person.Pending(); len(q) != 0 {
		t.Errorf("asked %+v", q[0])
	}
	_, err := d.call().Write(t.Context(), "a", nil, Call{})
	asked(t, err, fault.PolicyAsk) // the control
}

// TestAskedWithoutLocks: where only something beneath a folder asks, the
// person is asked with no lock held, and the yes is for all that is there.
func TestAskedWithoutLocks(t *testing.T) {
	spec := map[string]string{"d/": "", "d/a": "A", "d/keep/": "", "d/keep/b": "B"}
	a := &approver{}
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.delete project://d/keep/b": core.Ask}}, spec, func(o *Options) { o.Approver, o.LockWait = a, time.Second })
	a.during = func() { // another call of the same folder
		_, err := w.gate.Write(t.Context(), "d/a", []byte("x"), Call{})
		w.must(err)
	}
	_, err := w.gate.Delete(t.Context(), "d", true, Call{})
	if fault.CodeOf(err) != fault.GrantStale || w.read("d/keep/b") != "B" {
		t.Errorf("error %v", err)
	}
	a.during = nil
	if _, err := w.gate.Delete(t.Context(), "d", true, Call{}); err != nil {
		t.Error(err)
	}
	if len(a.asked) != 2 || len(a.spent) != 1 || a.asked[0].Tree == a.asked[1].Tree || a.asked[1].Tree != a.spent[0].Tree {
		t.Errorf("asked %d, spent %d", len(a.asked), len(a.spent))
	}
}

// TestSpentBeforeEffect: the yes is used up before the first byte is written,
// and a yes that can't be used keeps the effect from happening.
func TestSpentBeforeEffect(t *testing.T) {
	for name, m := range mutations(t.Context()) {
		t.Run(name, func(t *testing.T) {
			ask := rules{deny: map[string]core.Decision{m.action + " project://" + m.name: core.Ask}}
			r := &reluctant{}
			w := newWorld(t, ask, tree, func(o *Options) {
				o.Approver, o.Asking = r, func() Asking { return Asking{Digest: func() string { return "the call" }} }
			})
			before := w.tree()
			r.spend = func() error { w.unchanged(before); return errors.New("no") }
			if _, err := m.do(w.gate, Call{Confirm: true}); err == nil {
				t.Error("it went through")
			}
			w.unchanged(before)
			for _, e := range w.log.events {
				if e.Phase == core.PhaseIntent {
					t.Error("an intent without a yes")
				}
			}
			r.spend = func() error { w.unchanged(before); return nil }
			if _, err := m.do(w.gate, Call{Confirm: true}); err != nil {
				t.Error(err)
			}
			if r.spent != 2 {
				t.Errorf("spent %d times", r.spent)
			}
		})
	}
}

// reluctant says yes, and then what spend says.
type reluctant struct {
	spend func() error
	spent int
}

func (r *reluctant) Approve(context.Context, *Question) (Permission, error) { return r, nil }
func (r *reluctant) Reaches(core.Resource) bool                             { return true }
func (r *reluctant) Spend(context.Context, *Question) (string, error) {
	r.spent++
	return "corr", r.spend()
}

// TestCard: what a person is shown of a change: the diff from what is there,
// sizes of what is no text, nothing of what is private, and never too much.
func TestCard(t *testing.T) {
	d := newDesk(t, writes, map[string]string{"a": "one\ntwo\n", "bin": "x\x00y", ".env": "SECRET=1"})
	d.asking.Diff = func(_ string, before, after []byte) (string, bool) {
		return fmt.Sprintf("-%s+%s", before, after), true
	}
	d.gate = d.open(private{d.rules}, d.parts)
	for before, tc := range map[string]struct{ after, want string }{
		"a\nb": {"c\n", "-a\n-b\n\\ No newline at end of file\n+c\n"}, "a": {"a", ""}, "": {"x\n", "+x\n"},
	} {
		if text, whole := bothWhole("", []byte(before), []byte(tc.after)); text != tc.want || !whole {
			t.Errorf("%q to %q: %q", before, tc.after, text)
		}
	}
	if text, whole := bothWhole("", nil, make([]byte, grant.MaxQuestion+1)); text != "" || whole {
		t.Errorf("%d bytes, whole: %v", len(text), whole)
	}
	card := func(name, content string) grant.Card {
		t.Helper()
		_, err := d.call().Write(t.Context(), name, []byte(content), Call{})
		q, err := d.person.Question(t.Context(), asked(t, err, fault.PolicyAsk))
		d.must(err)
		return q.Card
	}
	if c := card("a", "three\n"); c.Change != "-one\ntwo\n+three\n" || c.Unshown != "" {
		t.Errorf("change %q, unshown %q", c.Change, c.Unshown)
	}
	if c := card("bin", "z"); !strings.HasPrefix(c.Change, "3 bytes, sha256 ") || strings.ContainsRune(c.Change, 0) || c.Unshown != onlyBinary {
		t.Errorf("change %q, unshown %q", c.Change, c.Unshown)
	}
	if c := card(".env", "SECRET=2"); c.Change != "" || c.Unshown != onlyPrivate {
		t.Errorf("change %q, unshown %q", c.Change, c.Unshown)
	}
	for _, tc := range []struct {
		content, unshown string
		lines            int
	}{
		{strings.Repeat("line\n", 3000), "", 3002},
		{strings.Repeat("x", 100_000), "", 2}, // without a line feed at its end
		{strings.Repeat("line\n", 5000), "the rest of the change: 1002 lines, 5010 bytes", maxChangeLines},
		{strings.Repeat("line 123456789 123456789 123456789 123456789\n", 3500), "the rest of the change: ", 0},
		{strings.Repeat("x", 200_000), "the rest of the change: 1 lines, 200001 bytes", 2},
	} {
		c := card("a", tc.content)
		if strings.Count(c.Change, "\n") != tc.lines && tc.lines > 0 || !strings.HasPrefix(c.Unshown, tc.unshown) || tc.unshown == "" && c.Unshown != "" {
			t.Errorf("%d lines, unshown %q, not %+.30v", strings.Count(c.Change, "\n"), c.Unshown, tc)
		}
		if len(c.Change) > grant.MaxQuestion || strings.HasSuffix(c.Change, "\n") != (tc.unshown != "" || tc.lines > 2) {
			t.Errorf("%d bytes, ends %q", len(c.Change), c.Change[len(c.Change)-20:])
		}
	}
	for _, f := range files(t, filepath.Join(d.state.Path(), "pending")) {
		b, err := os.ReadFile(f)
		d.must(err)
		if strings.Contains(string(b), "SECRET") {
			t.Errorf("%s holds a secret", f)
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	return all
}

// private puts .env on a built-in list.
type private struct{ rules }

func (p private) Evaluate(q core.Request) core.Verdict {
	v := p.rules.Evaluate(q)
	if q.Resource.Name == ".env" {
		v.List, v.Class = "dotenv", "dotenv"
	}
	return v
}

// foreign says yes to what another process asked, which has ended.
type foreign struct{}

func (foreign) Approve(context.Context, *Question) (Permission, error) { return foreign{}, nil }
func (foreign) Spend(context.Context, *Question) (string, error)       { return "0123456789ab-1", nil }
func (foreign) Reaches(core.Resource) bool                             { return true }

// TestUnderAnothersID: a call whose question was asked by a process that has ended
// since is not taken for one of the dead while it goes on.
func TestUnderAnothersID(t *testing.T) {
	d := newDesk(t, []string{"tool.call s://t"}, map[string]string{"a": "A"})
	ran := false
	startAnother := func() { // a start of its own, which isn't the call's
		other, err := OpenState(d.state.Path(), StateOptions{})
		d.must(err)
		d.must(other.Recover(t.Context()))
		d.must(other.Close())
		ran = true
	}
	h := d.call(func(o *Options) { o.Approver = foreign{} }).Guard(Tool{Server: "s", Name: "t", Class: core.Mutating, Params: []Param{Project("path", core.FSWrite)}}, func(context.Context, ToolCall) (any, error) {
		startAnother()
		return nil, nil
	})
	_, err := h(t.Context(), ToolCall{Args: map[string]any{"path": "a"}})
	d.must(err)
	if told := d.told(); !ran || told["outcome_unknown"] != 0 || told["intent"] == 0 || told["intent"] != told["outcome"] {
		t.Errorf("ran %v, log %v", ran, told)
	}
	own, err := OpenState(filepath.Join(t.TempDir(), "state"), StateOptions{})
	d.must(err)
	d.must(own.announce(d.gate.o.Workspace))
	for range 2 {
		d.must(own.standFor("0123456789ab"))
	}
	live := func() int {
		all, err := filepath.Glob(filepath.Join(own.Path(), "live", "*"))
		d.must(err)
		return len(all)
	}
	before := live()
	d.must(own.Close())
	if before != 2 || live() != 0 {
		t.Errorf("%d files, then %d", before, live())
	}
}
