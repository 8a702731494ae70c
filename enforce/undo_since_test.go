// SPDX-License-Identifier: Apache-2.0

//go:build unix

package enforce

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/state/undo"
)

// later waits until a file system that counts in coarse steps has another time.
func later() { time.Sleep(30 * time.Millisecond) }

func denyOf(names ...string) policy.Layer {
	var l policy.Layer
	for _, n := range names {
		l.Deny = append(l.Deny, policy.Pattern{Text: n})
	}
	return l
}

// TestReturnedUnderStricter: what came into a folder since it was moved, or changed in
// it, gets no name under which the policy protects it less, for no agent; what was
// there all the time does.
func TestReturnedUnderStricter(t *testing.T) {
	hidden := "something that came or changed since would get a name under which the policy protects it less; next: take project://priv/"
	put := func(name string) func(w *undoWorld) { return func(w *undoWorld) { w.put(name, "SECRET") } }
	for name, c := range map[string]struct {
		then policy.Layer
		harm func(w *undoWorld)
		want string
	}{
		"nothing came":               {denyOf("priv/**"), func(*undoWorld) {}, ""},
		"came, and isn't protected":  {denyOf("else/**"), put("priv/secret"), ""},
		"protected under both names": {denyOf("**/secret"), put("priv/secret"), ""},
		"came":                       {denyOf("priv/**"), put("priv/secret"), hidden + "secret out of"},
		"came into a folder of it":   {denyOf("priv/**"), put("priv/sub/secret"), hidden},
		"changed":                    {denyOf("priv/**"), put("priv/x"), hidden + "x out of"},
		"moved there with its folder": {denyOf("priv/**/secret"), func(w *undoWorld) {
			w.must(os.Rename(filepath.Join(w.dir, "old"), w.path("priv/old")))
		}, hidden + "old/secret out of"},
		"moved there with its folder, and changed in": {denyOf("priv/**/secret"), func(w *undoWorld) {
			w.must(os.Rename(filepath.Join(w.dir, "old"), w.path("priv/old")))
			w.put("priv/old/went", "")
			w.must(os.Remove(w.path("priv/old/went")))
		}, hidden + "old/secret out of"},
		"moved there in the place of a folder of it": {denyOf("priv/**/secret"), func(w *undoWorld) {
			w.must(os.Rename(w.path("priv/sub"), w.path("sub")))
			w.must(os.Rename(w.path("old"), w.path("priv/sub")))
		}, hidden + "sub/secret out of"},
		"renamed in it": {denyOf("priv/secret/**"), func(w *undoWorld) {
			w.must(os.Rename(w.path("priv/sub"), w.path("priv/secret")))
		}, hidden + "secret"},
		"moved into a folder of it": {denyOf("priv/**/secret"), func(w *undoWorld) {
			w.must(os.Rename(w.path("old/secret"), w.path("priv/sub/secret")))
		}, hidden + "sub/secret out of"},
		"linked into a folder of it": {denyOf("priv/**/secret"), func(w *undoWorld) {
			w.must(os.Link(w.path("old/secret"), w.path("priv/sub/secret")))
		}, hidden + "sub/secret out of"},
		"changed in a folder of it": {denyOf("priv/**"), put("priv/sub/y"), hidden + "sub/y out of"},
		"a folder of another mode":  {denyOf("priv/**"), func(w *undoWorld) { w.must(os.Chmod(w.path("priv/sub"), 0o700)) }, hidden + "sub out of"},
		"came and went in a folder of it": {denyOf("priv/**"), func(w *undoWorld) {
			w.put("priv/sub/secret", "SECRET")
			w.must(os.Remove(w.path("priv/sub/secret")))
		}, ""},
		"came and went": {denyOf("priv/**"), func(w *undoWorld) {
			w.put("priv/secret", "SECRET")
			w.must(os.Remove(w.path("priv/secret")))
		}, ""},
		"for an agent": {policy.Layer{Agents: map[string]map[core.Action]policy.Rules{"a": {core.FSRead: {Matches: []policy.Match{{
			Pattern: policy.Pattern{Text: "priv/**"}, Decision: core.Deny,
		}}}}}}, put("priv/secret"), hidden + "secret out of"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"pub/x": "X", "pub/sub/y": "Y", "old/secret": "S"})
			later()
			out, err := w.gate.Move(t.Context(), "pub", "priv", Call{})
			w.must(err)
			later()
			c.harm(w)
			step := w.asShown(out.UndoID, Person{Decider: shippedWith(t, policy.Config{Layers: []policy.Layer{c.then}})})
			_, err = os.Lstat(w.path("pub"))
			if back := c.want == ""; step.Done != back || (err == nil) != back || !strings.HasPrefix(step.Why, c.want) {
				t.Errorf("%v: %+v", err, step)
			}
		})
	}
}

// TestReturnedUnderStricterOfSession: what the undo itself brings back as it was has
// not come since, and what somebody put there has, though the undo brings it back.
func TestReturnedUnderStricterOfSession(t *testing.T) {
	by := Person{Decider: shippedWith(t, policy.Config{Layers: []policy.Layer{denyOf("priv/**")}})}
	for _, theirs := range []bool{false, true} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"pub/x": "X"})
		later()
		out, err := w.gate.Move(t.Context(), "pub", "priv", Call{})
		w.must(err)
		later()
		if theirs {
			w.must(os.Remove(w.path("priv/x")))
			w.put("priv/x", "SECRET")
		}
		_, err = w.gate.Write(t.Context(), "priv/x", []byte("1"), Call{})
		w.must(err)
		w.delete("priv/x")
		if _, p := w.undoBy(UndoSelect{Session: prefixOf(out.UndoID)}, by); (p.Problems() > 0) != theirs {
			t.Errorf("theirs %t: %s", theirs, problems(p))
		}
	}
}

// unnamed is a decider that doesn't say which agents it has rules for.
type unnamed struct{ Decider }

// TestReturnedForAgents: the rules of every agent that a policy names hold for what it
// may have put in a folder, whose ever the move was, and for what a link leads to; not
// for what was there all the time.
func TestReturnedForAgents(t *testing.T) {
	ruled := func(tighten bool, pattern string) policy.Layer {
		rules := policy.Rules{Matches: []policy.Match{{Pattern: policy.Pattern{Text: pattern}, Decision: core.Deny}}}
		return policy.Layer{Tighten: tighten, Agents: map[string]map[core.Action]policy.Rules{
			"evil": {core.FSCreate: rules, core.FSWrite: rules}, "other": {core.FSRead: rules},
		}}
	}
	came := func(w *undoWorld) { w.put("d2/run.sh", "evil") }
	for name, c := range map[string]struct {
		by   policy.Layer
		come func(*undoWorld)
		want string
	}{
		"nothing came":   {ruled(false, "deploy/**"), func(*undoWorld) {}, ""},
		"for no agent":   {policy.Layer{}, came, ""},
		"denied":         {ruled(false, "deploy/run.sh"), came, "something would get a name that the policy protects; next: look at what would be project://deploy/run.sh first"},
		"by a project":   {ruled(true, "deploy/run.sh"), came, "something would get a name that the policy protects; next: "},
		"elsewhere":      {ruled(false, "deploy/x"), came, ""},
		"beneath a link": {ruled(false, "deploy/l/x"), func(*undoWorld) {}, "what a link leads to would get a name that the policy protects; next: "},
	} {
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"deploy/README": "R", "deploy/l": "-> ../store", "store/x": "X"})
		later()
		out, err := w.gate.Move(t.Context(), "deploy", "d2", Call{})
		w.must(err)
		later()
		c.come(w)
		d := shippedWith(t, policy.Config{Layers: []policy.Layer{c.by}})
		step := w.asShown(out.UndoID, Person{Decider: unnamed{d}})
		if why := "can't be told: it doesn't say which agents it has rules for; next: "; step.Done || !strings.Contains(step.Why, why) {
			t.Errorf("%s, by one that names none: %+v", name, step)
		}
		step = w.asShown(out.UndoID, Person{Decider: d})
		if step.Done != (c.want == "") || !strings.HasPrefix(step.Why, c.want) {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// TestCameAfterUntold: where a file system gives a move no time of change, everything
// counts as come since.
func TestCameAfterUntold(t *testing.T) {
	old := pathguard.Facts{Ino: 1, CTime: 1}
	for now, want := range map[int64]bool{5: true, 6: false} {
		e := &undo.Entered{Step: undo.Step{Was: pathguard.Facts{CTime: 5}}, Now: pathguard.Facts{CTime: now}}
		if got := cameAfter(&undo.Index{}, e).since("x", old); got != want {
			t.Errorf("moved at %d: %t", now, got)
		}
	}
}

// tallied counts what it is asked, and doesn't say for which actions an agent has rules.
type tallied struct {
	Decider

	named agentNaming
	asked *int
}

func (d tallied) Agents() []string { return d.named.Agents() }

func (d tallied) Evaluate(q core.Request) core.Verdict { *d.asked++; return d.Decider.Evaluate(q) }

// talliedRuled says it.
type talliedRuled struct {
	tallied
	ruling
}

// TestReturnedAsksTheRuled: an agent is asked about only for the actions that it has
// rules for, and what comes of it is the same.
func TestReturnedAsksTheRuled(t *testing.T) {
	for _, denied := range []string{"else", "pub/x", "pub/sub/y"} {
		agents := map[string]map[core.Action]policy.Rules{}
		for i := range 20 {
			agents[fmt.Sprint("a", i)] = outcomeOf(core.FSWrite, core.Ask, "x", core.Allow)
		}
		agents["a7"] = outcomeOf(core.FSCreate, core.Deny, denied, core.Allow)
		d := shippedWith(t, policy.Config{Layers: []policy.Layer{{Agents: agents}}})
		w := newUndoWorld(t, stateBeside(t), UndoOptions{}, map[string]string{"pub/x": "X", "pub/sub/y": "Y"})
		out, err := w.gate.Move(t.Context(), "pub", "priv", Call{})
		w.must(err)
		later()
		w.put("priv/x", "X")
		w.put("priv/sub/y", "Y")
		all, ruled := 0, 0
		plan := func(d Decider) UndoStep {
			p, err := w.state.PlanUndo(t.Context(), UndoSelect{ID: out.UndoID}, Person{Decider: d})
			w.must(err)
			return w.only(p)
		}
		want, got := plan(tallied{d, d, &all}), plan(talliedRuled{tallied{d, d, &ruled}, d})
		if got.Problem != want.Problem || got.Why != want.Why || (want.Problem == "") != (denied == "else") || denied == "else" && ruled > all/3 {
			t.Errorf("%s: %d and %d asked, %+v, want %+v", denied, all, ruled, got, want)
		}
	}
}
