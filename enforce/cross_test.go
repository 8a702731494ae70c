// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// mutation is one of the gate's mutations on the same small tree.
type mutation struct {
	action string // that decides it
	name   string // on which
	do     func(g *Gate, call Call) (Outcome, error)
}

var tree = map[string]string{
	"a.txt": "A", "d/b.txt": "B", "d/deep/c.txt": "C", "free/": "", "ln": "-> a.txt", "empty/": "",
}

func mutations(ctx context.Context) map[string]mutation {
	return map[string]mutation{
		"write":      {"fs.write", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Write(ctx, "a.txt", []byte("new"), c) }},
		"write link": {"fs.write", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Write(ctx, "ln", []byte("new"), c) }},
		"create":     {"fs.create", "n.txt", func(g *Gate, c Call) (Outcome, error) { return g.Write(ctx, "n.txt", []byte("new"), c) }},
		"append":     {"fs.write", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Append(ctx, "a.txt", []byte("new"), c) }},
		"edit": {"fs.write", "a.txt", func(g *Gate, c Call) (Outcome, error) {
			return g.Edit(ctx, "a.txt", func(b []byte) ([]byte, error) { return append(b, '!'), nil }, c)
		}},
		"edit shows": {"fs.read", "a.txt", func(g *Gate, c Call) (Outcome, error) {
			return g.Edit(ctx, "a.txt", func(b []byte) ([]byte, error) { return append(b, '!'), nil }, c)
		}},
		"mkdir":            {"fs.create", "x/y", func(g *Gate, c Call) (Outcome, error) { return g.MakeDir(ctx, "x/y", c) }},
		"mkdir above":      {"fs.create", "x", func(g *Gate, c Call) (Outcome, error) { return g.MakeDir(ctx, "x/y/z", c) }},
		"move":             {"fs.rename", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "a.txt", "m.txt", c) }},
		"move to":          {"fs.rename", "m.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "a.txt", "m.txt", c) }},
		"move writes":      {"fs.write", "m.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "a.txt", "m.txt", c) }},
		"move directory":   {"fs.rename", "d/deep/c.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "d", "e", c) }},
		"move dir to":      {"fs.rename", "e/deep/c.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "d", "e", c) }},
		"move unreadable":  {"fs.read", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "a.txt", "m.txt", c) }},
		"launder by move":  {"fs.read", "d/deep", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "d", "e", c) }},
		"launder a delete": {"fs.delete", "d/b.txt", func(g *Gate, c Call) (Outcome, error) { return g.Move(ctx, "d", "e", c) }},
		"copy":             {"fs.read", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Copy(ctx, "a.txt", "k.txt", c) }},
		"copy to":          {"fs.create", "k.txt", func(g *Gate, c Call) (Outcome, error) { return g.Copy(ctx, "a.txt", "k.txt", c) }},
		"launder by copy":  {"fs.read", "d/deep/c.txt", func(g *Gate, c Call) (Outcome, error) { return g.Copy(ctx, "d", "k", c) }},
		"copy dir to":      {"fs.create", "k/b.txt", func(g *Gate, c Call) (Outcome, error) { return g.Copy(ctx, "d", "k", c) }},
		"delete":           {"fs.delete", "a.txt", func(g *Gate, c Call) (Outcome, error) { return g.Delete(ctx, "a.txt", false, c) }},
		"delete empty":     {"fs.delete", "empty", func(g *Gate, c Call) (Outcome, error) { return g.Delete(ctx, "empty", false, c) }},
		"delete tree":      {"fs.delete", "d/deep/c.txt", func(g *Gate, c Call) (Outcome, error) { return g.Delete(ctx, "d", true, c) }},
	}
}

// TestDeniedMutation: a denied call changes nothing, is recorded, and names
// the rule; the same call without the rule succeeds.
func TestDeniedMutation(t *testing.T) {
	for name, m := range mutations(t.Context()) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules{deny: map[string]core.Decision{m.action + " project://" + m.name: core.Deny}}, tree)
			before := w.tree()
			_, err := m.do(w.gate, Call{Confirm: true})
			if fault.CodeOf(err) != fault.PolicyDenied || !errors.Is(err, fs.ErrPermission) {
				t.Fatalf("error %v", err)
			}
			if lines := fault.As(err).Lines(); !strings.Contains(lines, "deny project://"+m.name) {
				t.Errorf("the refusal does not name its rule:\n%s", lines)
			}
			w.unchanged(before)
			if len(w.log.events) == 0 || w.log.events[0].Verdict.Decision != core.Deny || w.log.events[0].Code != "policy.denied" {
				t.Errorf("recorded %+v", w.log.events)
			}

			control := newWorld(t, rules{}, tree)
			before = control.tree()
			if out, err := m.do(control.gate, Call{Confirm: true}); err != nil || !out.Changed {
				t.Errorf("without the rule: %+v, %v", out, err)
			}
			if fmt.Sprint(before) == fmt.Sprint(control.tree()) {
				t.Error("without the rule nothing changed: the case proves nothing")
			}
		})
	}
}

// TestAskNobody: "ask" with nobody to ask is a refusal with the next step.
func TestAskNobody(t *testing.T) {
	for name, m := range mutations(t.Context()) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules{deny: map[string]core.Decision{m.action + " project://" + m.name: core.Ask}}, tree)
			before := w.tree()
			_, err := m.do(w.gate, Call{Confirm: true})
			if fault.CodeOf(err) != fault.PolicyAsk || !errors.Is(err, fault.ErrApprovalNeeded) {
				t.Fatalf("error %v", err)
			}
			if next := fault.As(err).Next(); !strings.Contains(next, "allow it in policy.yaml under rules: fs.") {
				t.Errorf("next: %s", next)
			}
			w.unchanged(before)
		})
	}
}

// TestDryRun: the verdict of the real run, and no effect.
func TestDryRun(t *testing.T) {
	for _, d := range []core.Decision{core.Deny, core.Ask, core.Allow} {
		for name, m := range mutations(t.Context()) {
			t.Run(d.String()+" "+name, func(t *testing.T) {
				w := newWorld(t, rules{deny: map[string]core.Decision{m.action + " project://" + m.name: d}}, tree)
				before := w.tree()
				out, dry := m.do(w.gate, Call{Confirm: true, DryRun: true})
				w.unchanged(before)
				if dry == nil && (!out.DryRun || out.Changed) {
					t.Errorf("outcome %+v", out)
				}
				if _, real := m.do(w.gate, Call{Confirm: true}); fault.CodeOf(real) != fault.CodeOf(dry) {
					t.Errorf("dry run %v, real run %v", dry, real)
				}
			})
		}
	}
}

// TestApproval: a yes lets exactly what was shown happen.
func TestApproval(t *testing.T) {
	ask := rules{deny: map[string]core.Decision{"fs.write project://a.txt": core.Ask}}
	tests := map[string]struct {
		approver approver
		code     fault.Code
		content  string
	}{
		"yes":     {approver{}, fault.OK, "new"},
		"no":      {approver{answer: &fault.Error{Code: fault.PolicyDenied}}, fault.PolicyDenied, "A"},
		"timeout": {approver{answer: context.DeadlineExceeded}, fault.Cancelled, "A"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ask, tree, func(o *Options) { o.Approver = &tc.approver })
			_, err := w.gate.Write(t.Context(), "a.txt", []byte("new"), Call{})
			if fault.CodeOf(err) != tc.code {
				t.Errorf("error %v", err)
			}
			if got := w.read("a.txt"); got != tc.content {
				t.Errorf("content %q", got)
			}
			if len(tc.approver.asked) != 1 || tc.approver.asked[0].Request.Resource != core.File("project", "a.txt") {
				t.Errorf("asked %+v", tc.approver.asked)
			}
		})
	}
	t.Run("changed meanwhile", func(t *testing.T) {
		a := &approver{}
		w := newWorld(t, ask, tree, func(o *Options) { o.Approver = a })
		a.during = func() { w.put("a.txt", "a person's change") }
		_, err := w.gate.Write(t.Context(), "a.txt", []byte("new"), Call{})
		if fault.CodeOf(err) != fault.GrantStale || w.read("a.txt") != "a person's change" {
			t.Errorf("error %v, content %q", err, w.read("a.txt"))
		}
	})
	t.Run("a link took its place", func(t *testing.T) {
		a := &approver{}
		w := newWorld(t, ask, tree, func(o *Options) { o.Approver = a })
		a.during = func() {
			w.must(os.Remove(w.path("a.txt")))
			w.put("a.txt", "-> d/b.txt")
		}
		_, err := w.gate.Write(t.Context(), "a.txt", []byte("new"), Call{})
		if err == nil || w.read("d/b.txt") != "B" {
			t.Errorf("error %v, content %q", err, w.read("d/b.txt"))
		}
	})
}

// TestRecordBeforeEffect: the intent is synced while the file still has its
// old content, the outcome follows, and a log that fails denies the mutation.
func TestRecordBeforeEffect(t *testing.T) {
	for name, m := range mutations(t.Context()) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules{}, tree)
			before := w.tree()
			w.log.seen = func(e core.Event) {
				if e.Phase == core.PhaseIntent {
					w.unchanged(before)
				}
			}
			if _, err := m.do(w.gate, Call{}); err != nil {
				t.Fatal(err)
			}
			var intents, outcomes int
			for i, e := range w.log.events {
				if e.Phase == core.PhaseIntent {
					intents++
				}
				if e.Phase == core.PhaseOutcome {
					outcomes++
				}
				if e.Corr != w.log.events[0].Corr || e.Policy != "v1" {
					t.Errorf("event %+v", e)
				}
				if e.Phase == core.PhaseIntent && i+1 < len(w.log.events) && w.log.events[i+1].Phase == core.PhaseOutcome && !w.log.synced[i] {
					t.Error("the intent was not synced")
				}
			}
			if intents == 0 || intents != outcomes {
				t.Errorf("%d intents, %d outcomes", intents, outcomes)
			}

			w = newWorld(t, rules{}, tree)
			before = w.tree()
			w.log.fail = &fault.Error{Code: fault.AuditUnwritable}
			if _, err := m.do(w.gate, Call{}); fault.CodeOf(err) != fault.AuditUnwritable {
				t.Errorf("with a failing log: %v", err)
			}
			w.log.fail = nil
			w.unchanged(before)
		})
	}
}

func TestReadsFollowTheirRule(t *testing.T) {
	for _, needed := range []bool{false, true} {
		w := newWorld(t, rules{}, tree, func(o *Options) { o.ReadsNeedAudit = needed })
		w.log.fail = &fault.Error{Code: fault.AuditUnwritable}
		f, err := w.gate.Open(t.Context(), "a.txt")
		if needed != (fault.CodeOf(err) == fault.AuditUnwritable) {
			t.Errorf("needed %v: error %v", needed, err)
		}
		if err == nil {
			w.must(f.Close())
		}
	}
}

func TestPreconditions(t *testing.T) {
	need := rules{confirm: map[core.Action]bool{core.FSDelete: true}, ifMate: map[core.Action]bool{core.FSWrite: true}}
	w := newWorld(t, need, tree)
	before := w.tree()
	ctx := t.Context()
	_, err := w.gate.Delete(ctx, "a.txt", false, Call{})
	if fault.CodeOf(err) != fault.ConfirmMissing ||
		!strings.Contains(fault.As(err).Lines(), "PRECONDITION_FAILED: This call deletes a.txt. Set confirm=True to proceed. [required=confirm]") {
		t.Errorf("delete without confirm: %v", fault.As(err).Lines())
	}
	if _, err := w.gate.Write(ctx, "a.txt", nil, Call{}); fault.CodeOf(err) != fault.PreconditionFailed {
		t.Errorf("write without ifMatch: %v", err)
	}
	_, info, err := w.gate.Stat(ctx, "a.txt")
	w.must(err)
	w.unchanged(before)
	w.put("a.txt", "a person's change")
	if _, err := w.gate.Write(ctx, "a.txt", nil, Call{IfMatch: info.Fingerprint.String()}); fault.CodeOf(err) != fault.PreconditionFailed {
		t.Errorf("write with a stale etag: %v", err)
	}
	if got := w.read("a.txt"); got != "a person's change" {
		t.Errorf("content %q", got)
	}
	_, info, err = w.gate.Stat(ctx, "a.txt")
	w.must(err)
	out, err := w.gate.Write(ctx, "a.txt", []byte("x"), Call{IfMatch: info.Fingerprint.String()})
	w.must(err)
	if _, info, _ = w.gate.Stat(ctx, "a.txt"); out.Etag != info.Fingerprint.String() {
		t.Errorf("the result's etag %s is not the file's %s", out.Etag, info.Fingerprint)
	}
}

// TestParallelEdits: edits through two gates over one lock file all land.
func TestParallelEdits(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"list": ""})
	gates := []*Gate{w.gate, w.open(rules{})}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, err := gates[i%2].Edit(t.Context(), "list", func(b []byte) ([]byte, error) {
				return fmt.Appendf(b, "line %d\n", i), nil
			}, Call{})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	got := w.read("list")
	for i := range 40 {
		if !strings.Contains(got, fmt.Sprintf("line %d\n", i)) {
			t.Errorf("edit %d is lost", i)
		}
	}
}

// TestKeeper: what a write displaces is kept before it is gone, and the result
// says how to undo it.
func TestKeeper(t *testing.T) {
	state := openState(t, StateOptions{})
	w := newWorld(t, rules{}, tree, func(o *Options) { o.Keeper = state })
	out, err := w.gate.Write(t.Context(), "a.txt", []byte("new"), Call{})
	w.must(err)
	images, err := filepath.Glob(filepath.Join(state.Path(), "undo", "images", "*"))
	w.must(err)
	if !out.Undoable || out.UndoID == "" || len(images) != 1 {
		t.Fatalf("outcome %+v, images %q", out, images)
	}
	if kept, err := os.ReadFile(images[0]); err != nil || string(kept) != "A" {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func openState(t *testing.T, o StateOptions) *State {
	t.Helper()
	state, err := OpenState(filepath.Join(t.TempDir(), "state"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	return state
}

func TestMissingParts(t *testing.T) {
	w := newWorld(t, rules{}, nil)
	whole := w.gate.o
	for name, drop := range map[string]func(*Options){
		"workspace": func(o *Options) { o.Workspace = nil },
		"decider":   func(o *Options) { o.Decider = nil },
		"recorder":  func(o *Options) { o.Recorder = nil },
		"locker":    func(o *Options) { o.Locker = nil },
	} {
		o := whole
		drop(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestFailureHasNoRule: a call that fails is recorded with what failed, also
// where a rule would have asked: no rule decided it.
func TestFailureHasNoRule(t *testing.T) {
	w := newWorld(t, rules{deny: map[string]core.Decision{"fs.rename project://no.txt": core.Ask, "fs.create project://no/x.txt": core.Ask}}, tree)
	for name, do := range map[string]func() (Outcome, error){
		"move of nothing": func() (Outcome, error) { return w.gate.Move(t.Context(), "no.txt", "k", Call{Confirm: true}) },
		"no such folder": func() (Outcome, error) {
			return w.gate.Write(t.Context(), "no/x.txt", []byte("x"), Call{})
		},
	} {
		w.log.events = nil
		if _, err := do(); fault.CodeOf(err) != fault.PathMissing {
			t.Errorf("%s: %v", name, err)
		}
		if len(w.log.events) == 0 {
			t.Errorf("%s: nothing was recorded", name)
		}
		for _, e := range w.log.events {
			if got := e.Verdict.Reason.String(); got != "there is no such file or directory" {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
}
