// SPDX-License-Identifier: Apache-2.0

//go:build unix

package selftest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/enforce"
	"github.com/postern-gate/postern/internal/fsserver"
	"github.com/postern-gate/postern/internal/listen"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reader is what --read-only puts before a decider.
type reader struct{ enforce.Decider }

func (r reader) Evaluate(q core.Request) core.Verdict {
	if q.Action.Mutates() {
		return core.Verdict{}
	}
	return r.Decider.Evaluate(q)
}

// attacked runs everything against a guard that is broken like this.
func attacked(t *testing.T, h hooks) map[string]Result {
	t.Helper()
	dir := t.TempDir()
	report, err := Run(t.Context(), Options{
		Dir: dir, hooks: h, ReadOnly: func(d enforce.Decider) enforce.Decider { return reader{d} },
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	all := map[string]Result{}
	for _, r := range report.Results {
		all[r.Name] = r
	}
	want := len(mechanisms())
	if h.only != nil {
		want = len(h.only)
	}
	if len(all) != want {
		t.Errorf("%d results of %d mechanisms", len(all), want)
	}
	return all
}

// TestHolds: what this package is built with holds.
func TestHolds(t *testing.T) {
	about := []string{"kernel-open", "kernel-exchange", "file-system"} // what a machine has
	for name, r := range attacked(t, hooks{}) {
		good := r.Status == Held || r.Status == Weaker && slices.Contains(about, name)
		if !good || r.Tried == 0 || r.About == "" {
			t.Errorf("%s: %v after %d: %s", name, r.Status, r.Tried, r.About)
		}
	}
}

// yes allows everything.
type yes struct{ enforce.Decider }

func (y yes) Evaluate(core.Request) core.Verdict { return allowed{}.Evaluate(core.Request{}) }
func (y yes) ConfirmRequired(core.Action) bool   { return false }

// silent records nothing and says that it did.
type silent struct{ *enforce.State }

func (silent) Record(core.Event, bool) error { return nil }

// open listens without any rule.
func open(ctx context.Context, h http.Handler, _ listen.Rules) (string, func(), error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: h} //nolint:gosec // a test's own
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l)
	}()
	return l.Addr().String(), func() {
		_ = s.Close()
		<-ended
	}, nil
}

// wide serves the folder around the one that is guarded.
func wide(o fsserver.Options) fsserver.Options {
	root, err := pathguard.OpenRoot(filepath.Dir(o.Gate.Workspace.Roots()[0].Resolved()), pathguard.Options{Name: "project"})
	if err == nil {
		var w *pathguard.Workspace
		if w, err = pathguard.NewWorkspace(root); err == nil {
			o.Gate.Workspace = w
		}
	}
	if err != nil {
		panic(err)
	}
	return o
}

// TestBroken: of a guard that lacks something exactly that is found missing.
func TestBroken(t *testing.T) {
	tests := map[string]struct {
		hooks   hooks
		missing []string
	}{
		"a decider that allows": {
			hooks{decider: func(d enforce.Decider) enforce.Decider { return yes{d} }},
			[]string{"secrets", "runs-by-itself", "project-policy", "no-decision", "read-only", "own-litter"},
		},
		"a recorder that says yes": {
			hooks{recorder: func(s *enforce.State) enforce.Recorder { return silent{s} }},
			[]string{"recorded-first", "unrecorded-refused"},
		},
		"a root that is too wide":  {hooks{server: wide}, []string{"outside-read", "outside-write"}},
		"a listener without rules": {hooks{listener: open}, []string{"http"}},
		"text without envelopes": {
			hooks{server: func(o fsserver.Options) fsserver.Options { o.Bare = true; return o }}, []string{"envelope"},
		},
		"a check that finds nothing": {
			hooks{verify: func(context.Context, verify.Options) (verify.Report, error) { return verify.Report{}, nil }},
			[]string{"changed-log", "cut-log"},
		},
		"a server that offers writing": {
			hooks{server: func(o fsserver.Options) fsserver.Options {
				if o.ReadOnly {
					o.ReadOnly = false
					o.Gate.Decider = yes{o.Gate.Decider}
				}
				return o
			}}, []string{"read-only"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.hooks.only = tc.missing
			all := attacked(t, tc.hooks)
			for _, want := range tc.missing {
				if r := all[want]; r.Status == Held || r.Status == Weaker {
					t.Errorf("%s: %v: %s", want, r.Status, r.About)
				}
			}
			if !slices.ContainsFunc(tc.missing, func(n string) bool { return all[n].Status == Missing }) {
				t.Errorf("nothing is MISSING: %v", all)
			}
		})
	}
}

// TestUntested: an attack whose control fails shows nothing, and that is as bad
// as an attack that gets through.
func TestUntested(t *testing.T) {
	tests := map[string]struct {
		attack func(*trial)
		want   Status
	}{
		"held":             {func(t *trial) { t.against("a", ok, ok) }, Held},
		"nothing tried":    {func(*trial) {}, Untested},
		"control fails":    {func(t *trial) { t.against("a", ok, ok); t.against("b", fails, ok) }, Untested},
		"attack succeeds":  {func(t *trial) { t.against("a", ok, fails); t.against("b", fails, ok) }, Missing},
		"weaker":           {func(t *trial) { t.against("a", ok, ok); t.weaker = append(t.weaker, "w") }, Weaker},
		"weaker, untested": {func(t *trial) { t.against("a", fails, ok); t.weaker = append(t.weaker, "w") }, Untested},
	}
	for name, tc := range tests {
		var one trial
		tc.attack(&one)
		r := one.result(name)
		if r.Status != tc.want {
			t.Errorf("%s: %v, want %v", name, r.Status, tc.want)
		}
		err := Report{[]Result{r}}.Err()
		if bad := tc.want == Missing || tc.want == Untested; bad != (err != nil) {
			t.Errorf("%s: error %v", name, err)
		} else if bad && fault.CodeOf(err).Exit() != fault.ExitEnforcement {
			t.Errorf("%s: exit %d", name, fault.CodeOf(err).Exit())
		}
	}
	if (Report{}).Err() == nil {
		t.Error("a report of nothing is fine")
	}
}

func ok() error    { return nil }
func fails() error { return errors.New("failed") }

// TestTold: a line names some failures and counts the rest.
func TestTold(t *testing.T) {
	var one trial
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		one.against(name, ok, fails)
	}
	one.about = "five"
	r := one.result("x")
	if r.About != "five. a: failed; b: failed; c: failed; and 2 more" || r.Tried != 5 {
		t.Errorf("%+v", r)
	}
	b, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(b), `"status":"missing"`) {
		t.Errorf("%s %v", b, err)
	}
}

// TestInterrupted: nothing is left behind by a run that is ended, at any moment.
func TestInterrupted(t *testing.T) {
	for after := range 3 {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := Run(ctx, Options{Dir: dir, hooks: hooks{decider: func(d enforce.Decider) enforce.Decider {
			if n++; n > after {
				cancel()
			}
			return d
		}}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after %d: %v", after, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("after %d left behind: %v", after, left)
		}
		cancel()
	}
}

// TestNowhere: a folder that can't be used is a failure, not a missing mechanism.
func TestNowhere(t *testing.T) {
	_, err := Run(t.Context(), Options{Dir: t.TempDir() + "/absent"})
	if fault.CodeOf(err) != fault.IOFailed {
		t.Errorf("%v", err)
	}
}
