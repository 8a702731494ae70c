// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/internal/state/lock"
)

// twoRoots has the roots project and user, each with a file f, and o in one.
func twoRoots(t *testing.T, d Decider) (*Gate, *log, string) {
	t.Helper()
	box := t.TempDir()
	var roots []*pathguard.Root
	for _, name := range []string{"project", "user"} {
		dir := filepath.Join(box, name)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "f"), []byte(name), 0o644)); err != nil {
			t.Fatal(err)
		}
		root, err := pathguard.OpenRoot(dir, pathguard.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		roots = append(roots, root)
	}
	if err := os.WriteFile(filepath.Join(box, "user", "o"), []byte("O"), 0o644); err != nil {
		t.Fatal(err)
	}
	ws, err := pathguard.NewWorkspace(roots...)
	if err != nil {
		t.Fatal(err)
	}
	rec := &log{}
	g, err := New(Options{Workspace: ws, Decider: d, Recorder: rec, Locker: lock.Open(filepath.Join(box, "locks"))})
	if err != nil {
		t.Fatal(err)
	}
	return g, rec, box
}

func TestGuard(t *testing.T) {
	secret := rules{deny: map[string]core.Decision{
		"fs.read project://secret": core.Deny, "tool.call srv://banned": core.Deny, "tool.call srv://asked": core.Ask,
		"fs.rename user://kept": core.Deny,
	}}
	read := Tool{Server: "srv", Name: "read", Class: core.ReadOnly, Params: []Param{
		Project("path", core.FSRead), User("conf", core.FSRead), AnyRoot("any", core.FSRead),
	}}
	rename := Tool{Server: "srv", Name: "rename", Class: core.Mutating, Params: []Param{
		AnyRoot("from", core.FSRename), AnyRoot("to", core.FSRename),
	}}
	tests := map[string]struct {
		tool Tool
		args map[string]any
		code fault.Code
	}{
		"project":            {read, map[string]any{"path": "project://f"}, fault.OK},
		"user":               {read, map[string]any{"conf": "user://f"}, fault.OK},
		"list":               {read, map[string]any{"any": []any{"project://f", "user://o"}}, fault.OK},
		"strings":            {read, map[string]any{"any": []string{"project://f"}}, fault.OK},
		"absent":             {read, map[string]any{"other": "/etc/passwd"}, fault.OK},
		"wrong root":         {read, map[string]any{"path": "user://f"}, fault.PathEscape},
		"wrong root too":     {read, map[string]any{"conf": "project://f"}, fault.PathEscape},
		"outside":            {read, map[string]any{"path": "/etc/passwd"}, fault.PathEscape},
		"dots":               {read, map[string]any{"path": "project://../user/f"}, fault.PathEscape},
		"denied":             {read, map[string]any{"path": "project://secret"}, fault.PolicyDenied},
		"one of a list":      {read, map[string]any{"any": []any{"project://f", "project://secret"}}, fault.PolicyDenied},
		"number":             {read, map[string]any{"path": 7}, fault.RequestInvalid},
		"list of numbers":    {read, map[string]any{"path": []any{"project://f", 7}}, fault.RequestInvalid},
		"missing":            {read, map[string]any{"path": "project://none"}, fault.PathMissing},
		"rename":             {rename, map[string]any{"from": "project://f", "to": "user://new"}, fault.OK},
		"rename source":      {rename, map[string]any{"from": "user://kept", "to": "user://new"}, fault.PolicyDenied},
		"rename destination": {rename, map[string]any{"from": "user://o", "to": "user://kept"}, fault.PolicyDenied},
		"rename out":         {rename, map[string]any{"from": "user://o", "to": "/tmp/x"}, fault.PathEscape},
		"tool denied":        {Tool{Server: "srv", Name: "banned"}, nil, fault.PolicyDenied},
		"tool asked":         {Tool{Server: "srv", Name: "asked"}, nil, fault.PolicyAsk},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g, rec, _ := twoRoots(t, secret)
			ran := false
			h := g.Guard(tc.tool, func(_ context.Context, call ToolCall) (any, error) {
				ran = true
				for param, names := range call.Paths {
					if len(names) == 0 || names[0].Resource().String() == "" {
						t.Errorf("%s: %v", param, names)
					}
				}
				return "ran", nil
			})
			_, err := h(t.Context(), ToolCall{Args: tc.args})
			if fault.CodeOf(err) != tc.code {
				t.Errorf("error %v, want %v", err, tc.code)
			}
			if ran != (tc.code == fault.OK) {
				t.Errorf("the handler ran: %v", ran)
			}
			if tc.code != fault.RequestInvalid && len(rec.events) == 0 {
				t.Error("nothing was recorded")
			}
		})
	}
}

// TestGuardKeepsHandlerError: the handler's own error comes back as it is.
func TestGuardKeepsHandlerError(t *testing.T) {
	g, _, _ := twoRoots(t, rules{})
	own := errors.New("own")
	h := g.Guard(Tool{Server: "s", Name: "t"}, func(context.Context, ToolCall) (any, error) { return 1, own })
	if got, err := h(t.Context(), ToolCall{}); got != 1 || !errors.Is(err, own) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestGuardHandlerMayUseGate: a handler that crosses the same gate does not
// wait for itself.
func TestGuardHandlerMayUseGate(t *testing.T) {
	g, _, box := twoRoots(t, rules{})
	h := g.Guard(Tool{Server: "s", Name: "t", Params: []Param{Project("path", core.FSWrite)}},
		func(ctx context.Context, call ToolCall) (any, error) {
			return g.Write(ctx, call.Paths["path"][0].Resource().String(), []byte("by the handler"), Call{})
		})
	if _, err := h(t.Context(), ToolCall{Args: map[string]any{"path": "project://f"}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(box, "project", "f")); string(got) != "by the handler" {
		t.Errorf("content %q", got)
	}
}

func TestResolve(t *testing.T) {
	g, _, _ := twoRoots(t, rules{deny: map[string]core.Decision{"fs.read user://f": core.Deny}})
	ctx := t.Context()
	if n, err := g.Resolve(ctx, AnyRoot("p", core.FSRead), "o"); err != nil || n.Resource() != core.File("user", "o") {
		t.Errorf("a name that one root has: %v, %v", n, err)
	}
	if _, err := g.Resolve(ctx, AnyRoot("p", core.FSList), "f"); fault.CodeOf(err) != fault.PathDenied {
		t.Errorf("a name that two roots have: %v", err)
	}
	if _, err := g.Resolve(ctx, AnyRoot("p", core.FSRead), "f"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a name that is denied in one root: %v", err)
	}
	if _, err := g.Resolve(ctx, AnyRoot("p", core.FSRead), "none"); err == nil {
		t.Error("a name that no root has")
	}
}
