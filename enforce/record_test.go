// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
	"github.com/postern-gate/postern/internal/safety"
	"github.com/postern-gate/postern/internal/state/grant"
)

// TestIntentSaysWhatWas: an intent has the etag of each name that exists and
// says absent of one that doesn't; nothing else has one.
func TestIntentSaysWhatWas(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"a": "A", "b": "B", "d/": "", "l": "-> a"})
	etag := func(name string) string {
		t.Helper()
		_, info, err := w.gate.Stat(t.Context(), name)
		w.must(err)
		return info.Fingerprint.String()
	}
	dir, a, b := etag("d"), etag("a"), etag("b")
	ctx := t.Context()
	tests := []struct {
		what string
		call func() error
		want []string // resource and was
	}{
		{"overwrite", func() error { _, err := w.gate.Write(ctx, "a", []byte("x"), Call{}); return err }, []string{"a " + a}},
		{"create", func() error { _, err := w.gate.Write(ctx, "new", []byte("x"), Call{}); return err }, []string{"new absent"}},
		{"mkdir there", func() error { _, err := w.gate.MakeDir(ctx, "d", Call{}); return err }, []string{"d " + dir}},
		{"mkdir deep", func() error { _, err := w.gate.MakeDir(ctx, "e/f", Call{}); return err }, []string{"e/f absent"}},
		{"move", func() error { _, err := w.gate.Move(ctx, "b", "c", Call{}); return err }, []string{"b " + b, "c absent"}},
		{"read", func() error { f, err := w.gate.Open(ctx, "a"); w.must(f.Close()); return err }, nil},
		{"refused", func() error { _, err := w.gate.Move(ctx, "a", "d", Call{}); return errorIsNot(err) }, nil},
	}
	for _, tc := range tests {
		w.log.events = nil
		w.must(tc.call())
		var got []string
		for _, e := range w.log.events {
			if e.Was != "" {
				got = append(got, e.Resource.Name+" "+e.Was)
			}
			if (e.Was != "") != (e.Phase == core.PhaseIntent) {
				t.Errorf("%s: phase %v has was %q", tc.what, e.Phase, e.Was)
			}
		}
		if strings.Join(got, ", ") != strings.Join(tc.want, ", ") {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
}

// errorIsNot turns the refusal that is wanted into no error.
func errorIsNot(err error) error {
	if err == nil {
		return errors.New("it was not refused")
	}
	return nil
}

// TestRefusedChangesAreSynced: the refusal of a call that would change
// something is on disk before the answer; one of a read or a dry run is not
// waited for.
func TestRefusedChangesAreSynced(t *testing.T) {
	d := rules{
		deny:    map[string]core.Decision{"fs.write project://no": core.Deny, "fs.read project://no": core.Deny, "fs.delete project://ask": core.Ask, "tool.call s://no": core.Deny},
		confirm: map[core.Action]bool{core.FSDelete: true},
	}
	w := newWorld(t, d, map[string]string{"no": "", "ask": "", "f": ""})
	ctx := t.Context()
	guarded := func(c core.Class, name string, args map[string]any) func() error {
		h := w.gate.Guard(Tool{Server: "s", Name: name, Class: c, Params: []Param{Project("p", core.FSRead)}},
			func(context.Context, ToolCall) (any, error) { return nil, nil })
		return func() error { _, err := h(ctx, ToolCall{Args: args}); return err }
	}
	tests := map[string]struct {
		call func() error
		sync bool
	}{
		"denied write":     {func() error { _, err := w.gate.Write(ctx, "no", nil, Call{}); return err }, true},
		"dry run of it":    {func() error { _, err := w.gate.Write(ctx, "no", nil, Call{DryRun: true}); return err }, false},
		"outside":          {func() error { _, err := w.gate.Write(ctx, "/etc/x", nil, Call{}); return err }, true},
		"without confirm":  {func() error { _, err := w.gate.Delete(ctx, "f", false, Call{}); return err }, true},
		"asked":            {func() error { _, err := w.gate.Delete(ctx, "ask", false, Call{Confirm: true}); return err }, true},
		"missing":          {func() error { _, err := w.gate.Move(ctx, "none", "x", Call{}); return err }, true},
		"denied read":      {func() error { _, err := w.gate.Open(ctx, "no"); return err }, false},
		"tool":             {guarded(core.Destructive, "no", nil), true},
		"tool's argument":  {guarded(core.Mutating, "yes", map[string]any{"p": 7}), true},
		"tool that reads":  {guarded(core.ReadOnly, "no", nil), false},
		"argument of that": {guarded(core.ReadOnly, "yes", map[string]any{"p": 7}), false},
	}
	for name, tc := range tests {
		w.log.events, w.log.synced = nil, nil
		if err := tc.call(); err == nil {
			t.Errorf("%s was not refused", name)
		}
		n := len(w.log.events)
		if n == 0 || w.log.synced[n-1] != tc.sync {
			t.Errorf("%s: %d records, synced %v, want %v", name, n, w.log.synced, tc.sync)
			continue
		}
		if e := w.log.events[n-1]; e.Phase != core.PhaseDecision || e.Code == "" || e.Corr == "" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestReasonsAreOurs: whatever words a caller, a file or a handler has, no
// reason repeats them.
func TestReasonsAreOurs(t *testing.T) {
	const secret = "zz-secret"
	w := newWorld(t, rules{confirm: map[core.Action]bool{core.FSDelete: true}}, map[string]string{secret: secret, "f": "x"})
	ctx := t.Context()
	own := &fault.Error{Code: fault.TextUnsafe, Op: secret, Resource: secret, Rule: secret, Hint: secret, Err: errors.New(secret)}
	h := w.gate.Guard(Tool{Server: "s", Name: "t", Class: core.Mutating, Params: []Param{Project("p", core.FSRead)}},
		func(context.Context, ToolCall) (any, error) { return nil, own })
	calls := map[string]func() error{
		"confirm": func() error { _, err := w.gate.Delete(ctx, secret, false, Call{}); return err },
		"edit": func() error {
			_, err := w.gate.Edit(ctx, "f", func([]byte) ([]byte, error) { return nil, own }, Call{})
			return err
		},
		"handler": func() error { _, err := h(ctx, ToolCall{Args: map[string]any{"p": "f"}}); return err },
		"undecoded": func() error {
			_, err := h(ctx, ToolCall{Args: map[string]any{"p": map[string]any{secret: 1}}})
			return err
		},
		"refuse": func() error {
			f := *own
			w.must(w.gate.Refuse(core.FSWrite, core.File("project", "f"), &f))
			if f.ID == "" {
				t.Error("the refusal has no id")
			}
			return &f
		},
		"form": func() error { _, err := w.gate.Write(ctx, secret+"\x00", nil, Call{}); return err },
	}
	for name, call := range calls {
		w.log.events = nil
		if err := call(); err == nil {
			t.Errorf("%s was not refused", name)
		}
		if len(w.log.events) == 0 {
			t.Errorf("%s: nothing was recorded", name)
		}
		for _, e := range w.log.events {
			if e.Code != "" && (strings.Contains(e.Verdict.Reason.String(), secret) || strings.Contains(e.Code, secret)) {
				t.Errorf("%s: %v", name, e.Verdict)
			}
		}
	}
	own.Err = safety.Recorded("our own words")
	w.log.events = nil
	if err := calls["edit"](); err == nil || len(w.log.events) == 0 || w.log.events[len(w.log.events)-1].Verdict.Reason.Why != "our own words" {
		t.Errorf("%v, %+v: a cause that may be told is not", err, w.log.events)
	}
	if !strings.Contains(own.Because(), secret) {
		t.Error("the fault has no secret: this test shows nothing")
	}
}

// TestSecretsHaveAClass: a name of the built-in secrets carries its class into
// every record, allowed or not, as does a name that was never judged none.
func TestSecretsHaveAClass(t *testing.T) {
	shipped := policy.Default()
	open := func(c policy.Config) *world {
		c.Roots, c.Fallback = []policy.Root{{Name: "project", ReadOnly: len(c.Layers) > 0}}, &shipped
		p, err := policy.Compile(c)
		if err != nil {
			t.Fatal(err)
		}
		return newWorld(t, p, map[string]string{".env": "S=1", "f": "x", "d/": ""})
	}
	lifted := open(policy.Config{Lift: []string{"dotenv"}})
	held := open(policy.Config{})
	readOnly := open(policy.Config{Lift: []string{"dotenv"}, Layers: []policy.Layer{{}}})
	ctx := t.Context()
	tests := map[string]struct {
		w       *world
		call    func(g *Gate) error
		refused bool
		want    map[string]string
	}{
		"lifted read":  {lifted, func(g *Gate) error { _, err := g.Open(ctx, ".env"); return err }, false, map[string]string{".env": "dotenv"}},
		"lifted write": {lifted, func(g *Gate) error { _, err := g.Write(ctx, ".env", nil, Call{}); return err }, false, map[string]string{".env": "dotenv"}},
		"lifted copy": {
			lifted, func(g *Gate) error { _, err := g.Copy(ctx, "f", "d/.env", Call{}); return err }, false,
			map[string]string{"d/.env": "dotenv", "f": ""},
		},
		"lifted, and the call fails": {
			lifted, func(g *Gate) error { _, err := g.Write(ctx, ".env", nil, Call{IfMatch: "other"}); return err }, true, map[string]string{".env": "dotenv"},
		},
		"held":      {held, func(g *Gate) error { _, err := g.Open(ctx, ".env"); return err }, true, map[string]string{".env": "dotenv"}},
		"read only": {readOnly, func(g *Gate) error { _, err := g.Write(ctx, ".env", nil, Call{}); return err }, true, map[string]string{".env": "dotenv"}},
		"plain":     {held, func(g *Gate) error { _, err := g.Open(ctx, "f"); return err }, false, map[string]string{"f": ""}},
		"wrong root": {
			held, func(g *Gate) error { _, err := g.Resolve(ctx, User("p", core.FSRead), "project://.env"); return err }, true,
			map[string]string{"project://.env": ""}, // unresolved: recorded as outside
		},
	}
	for name, tc := range tests {
		tc.w.log.events = nil
		if err := tc.call(tc.w.gate); (err != nil) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
		if len(tc.w.log.events) == 0 {
			t.Errorf("%s: nothing was recorded", name)
		}
		for _, e := range tc.w.log.events {
			want, known := tc.want[e.Resource.Name]
			if !known || e.Class != want || (e.Resource.Resolved == strings.Contains(e.Resource.Name, "://")) {
				t.Errorf("%s: %+v has class %q, want %q", name, e.Resource, e.Class, want)
			}
		}
	}
}

// TestNoChangeUnannounced: a change is refused when nobody could tell later
// what became of it; a read is not.
func TestNoChangeUnannounced(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"f": "x"})
	dir := filepath.Join(t.TempDir(), "state")
	s, err := OpenState(dir, StateOptions{})
	w.must(err)
	defer s.Close()
	w.must(os.WriteFile(filepath.Join(dir, "live"), nil, 0o600))
	g := w.open(rules{}, func(o *Options) { o.Recorder = s })
	before := w.tree()
	if _, err := g.Write(t.Context(), "f", []byte("y"), Call{}); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Errorf("%v", err)
	}
	w.unchanged(before)
	f, err := g.Open(t.Context(), "f")
	w.must(err)
	w.must(f.Close())
	w.must(os.Remove(filepath.Join(dir, "live"))) // control
	if _, err := g.Write(t.Context(), "f", []byte("y"), Call{}); err != nil {
		t.Error(err)
	}
}

// TestRecordsSayTheFolder: a record says where the root of its name is, and of
// what is beneath no root where the first one is.
func TestRecordsSayTheFolder(t *testing.T) {
	box, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: filepath.Join(box, "a"), log: &log{}}
	var roots []*pathguard.Root
	for _, name := range []string{"a", "b"} {
		w.must(os.Mkdir(filepath.Join(box, name), 0o755))
		w.must(os.WriteFile(filepath.Join(box, name, name+".txt"), []byte("x"), 0o600))
		w.must(os.Symlink(name, filepath.Join(box, "to-"+name)))
		root, err := pathguard.OpenRoot(filepath.Join(box, "to-"+name), pathguard.Options{Name: name})
		w.must(err)
		defer root.Close()
		roots = append(roots, root)
	}
	ws, err := pathguard.NewWorkspace(roots...)
	w.must(err)
	w.gate = w.open(rules{}, func(o *Options) { o.Workspace = ws })
	ctx := t.Context()
	tool := w.gate.Guard(Tool{Server: "s", Name: "t", Class: core.ReadOnly}, func(context.Context, ToolCall) (any, error) { return nil, nil })
	for name, tt := range map[string]struct {
		call func() error
		want string
	}{
		"read":    {func() error { f, err := w.gate.Open(ctx, "b.txt"); w.must(f.Close()); return err }, "b"},
		"move":    {func() error { _, err := w.gate.Move(ctx, "a://a.txt", "b://c.txt", Call{}); return err }, "a b a b"},
		"missing": {func() error { _, err := w.gate.Open(ctx, "b://none"); return errorIsNot(err) }, "b"},
		"outside": {func() error { _, err := w.gate.Open(ctx, "/none"); return errorIsNot(err) }, "a"},
		"tool":    {func() error { _, err := tool(ctx, ToolCall{}); return err }, "a"},
		"refused": {func() error { return w.gate.Refuse(core.ToolCall, core.Resource{Name: "x"}, &fault.Error{}) }, "a"},
		"other subject": {func() error {
			return w.gate.WithSubject(core.Subject{}).Refuse(core.ToolCall, core.Resource{Name: "x"}, &fault.Error{})
		}, "a"},
	} {
		w.log.events = nil
		w.must(tt.call())
		var got []string
		for _, e := range w.log.events {
			rel, err := filepath.Rel(box, e.Folder)
			w.must(err)
			got = append(got, rel)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %s", name, got, tt.want)
		}
	}
}

// TestQuestionsSayTheFolder: what is asked and answered is told with the folder
// that it is about, also by a person elsewhere.
func TestQuestionsSayTheFolder(t *testing.T) {
	d := newDesk(t, writes, nil)
	_, err := d.call().Write(t.Context(), "new", []byte("x"), Call{})
	if fault.CodeOf(err) != fault.PolicyAsk {
		t.Fatal(err)
	}
	d.yes(d.person.Pending()[0].ID, grant.Answer{Kind: grant.Once})
	_, err = d.call().Write(t.Context(), "new", []byte("x"), Call{})
	d.must(err)
	d.must(d.state.Problem()) // writes what is buffered
	var events []string
	for _, r := range records(t, d.state.Path()) {
		events = append(events, fmt.Sprint(r["event"]))
		if r["folder"] != d.gate.Workspace().Roots()[0].Resolved() {
			t.Errorf("%v", r)
		}
	}
	if got := strings.Join(events, " "); got != "asked refusal approved spent intent outcome" {
		t.Error(got)
	}
}

// TestInTheWayIsRecorded: what is in the way is told by the log as by the answer.
func TestInTheWayIsRecorded(t *testing.T) {
	w := newWorld(t, rules{}, map[string]string{"f": "x", "g": "y", "d/e": "z"})
	ctx := t.Context()
	for want, call := range map[string]func() (Outcome, error){
		NotVacant: func() (Outcome, error) { return w.gate.Move(ctx, "f", "g", Call{}) },
		NoFolder:  func() (Outcome, error) { return w.gate.MakeDir(ctx, "f", Call{}) },
		NotEmpty:  func() (Outcome, error) { return w.gate.Delete(ctx, "d", false, Call{Confirm: true}) },
	} {
		w.log.events = nil
		_, err := call()
		if f := fault.As(err); err == nil || f.Because() != want || len(w.log.events) == 0 || w.log.events[0].Verdict.Reason.Why != want {
			t.Errorf("%v, %+v", err, w.log.events)
		}
	}
}
