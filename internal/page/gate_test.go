// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/state/grant"
)

// aPolicy asks about every change, or allows it.
type aPolicy struct{ core.Decision }

func (a aPolicy) Evaluate(core.Request) core.Verdict {
	return core.Verdict{Decision: a.Decision, Reason: core.Reason{Decision: a.Decision, Step: core.StepRule, Rule: "fs.write: " + a.String()}}
}
func (aPolicy) ConfirmRequired(core.Action) bool { return false }
func (aPolicy) IfMatchRequired(core.Action) bool { return false }
func (aPolicy) Version() string                  { return "v1" }

// guarded is a gate over a folder of its own, by the state of the desk.
type guarded struct {
	d   *desk
	dir string
	o   enforce.Options
}

func (d *desk) guarded(policy core.Decision, wait time.Duration) *guarded {
	d.Helper()
	g := &guarded{d: d, dir: d.TempDir()}
	must := func(err error) {
		d.Helper()
		if err != nil {
			d.Fatal(err)
		}
	}
	root, err := pathguard.OpenRoot(g.dir, pathguard.Options{Name: "project"})
	must(err)
	ws, err := pathguard.NewWorkspace(root)
	must(err)
	approvals := d.state.Approvals(enforce.ApprovalOptions{Times: func() (time.Duration, time.Duration) { return wait, time.Hour }})
	g.o = enforce.Options{
		Workspace: ws, Decider: aPolicy{policy}, Recorder: d.state, Locker: d.state, Keeper: d.state, Approver: approvals,
		Subject: core.Subject{Agent: "claude-code", Session: "s", Source: "serve", Level: core.LevelSDK, Proven: true},
		Asking: func() enforce.Asking {
			return enforce.Asking{Server: "postern", Tool: "write_file", Class: core.Mutating, HostSession: "s", Diff: func(_ string, before, after []byte) (string, bool) {
				return "-" + string(before) + "\n+" + string(after) + "\n", true
			}}
		},
	}
	d.Cleanup(func() {
		if err := errors.Join(approvals.Close(), root.Close()); err != nil {
			d.Error(err)
		}
	})
	return g
}

func (g *guarded) put(name, content string) {
	g.d.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(content), 0o600); err != nil {
		g.d.Fatal(err)
	}
}

// write is one call of the agent.
func (g *guarded) write(name, content string) error {
	gate, err := enforce.New(g.o)
	if err != nil {
		return err
	}
	_, err = gate.Write(g.d.Context(), name, []byte(content), enforce.Call{})
	return err
}

// asks calls for a write that nobody answers, and returns its question.
func (g *guarded) asks(name, content string) *grant.Question {
	g.d.Helper()
	before := map[string]bool{}
	for _, q := range g.d.store.Pending() {
		before[q.ID] = true
	}
	if err := g.write(name, content); fault.CodeOf(err) != fault.PolicyAsk && fault.CodeOf(err) != fault.GrantStale {
		g.d.Fatal(err)
	}
	for _, q := range g.d.store.Pending() {
		if !before[q.ID] {
			return q
		}
	}
	g.d.Fatal("nothing is asked")
	return nil
}
