// SPDX-License-Identifier: Apache-2.0

package enforce

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/core/pathguard"
	"github.com/postern-gate/postern/core/policy"
)

// everyOperation makes every operation of a gate succeed, be refused, fail and
// be looked at only.
func everyOperation(ctx context.Context, g *Gate) {
	for _, name := range []string{"f", "new", "none/x", ".env", "/etc/passwd", "asked", "d", "bad\x00", "é\u202e", "project://l"} {
		for _, call := range []Call{{DryRun: true}, {IfMatch: "other"}, {}, {Confirm: true}} {
			if f, err := g.Open(ctx, name); err == nil {
				_ = f.Close()
			}
			_, _, _ = g.Stat(ctx, name)
			_ = g.Walk(ctx, name, 100, func(*Walk, pathguard.Name) error { return nil })
			_, _ = g.Write(ctx, name, []byte("x"), call)
			_, _ = g.Edit(ctx, name, func(b []byte) ([]byte, error) { return append(b, '!'), nil }, call)
			_, _ = g.Edit(ctx, name, func([]byte) ([]byte, error) { return nil, errors.New("no") }, call)
			_, _ = g.Append(ctx, name, []byte("y"), call)
			_, _ = g.MakeDir(ctx, name, call)
			_, _ = g.Copy(ctx, name, "copied", call)
			_, _ = g.Move(ctx, "copied", "moved", call)
			_, _ = g.Delete(ctx, "moved", true, call)
			_, _ = g.Resolve(ctx, Project("p", core.FSWrite), name)
		}
		for _, class := range []core.Class{core.ClassUnknown, core.ReadOnly, core.Mutating} {
			for _, err := range []error{nil, errors.New("no")} {
				_, _ = g.Guard(Tool{Server: "s", Name: "t", Class: class, Params: []Param{Project("p", core.FSRead)}},
					func(context.Context, ToolCall) (any, error) { return nil, err })(ctx, ToolCall{Args: map[string]any{"p": name}})
			}
		}
		_ = g.Refuse(core.FSWrite, core.Resource{Name: name}, &fault.Error{Code: fault.RequestInvalid, Rule: name})
	}
}

// TestRecordsAreAsTheSchemaSays validates every line that a run of all
// operations writes.
func TestRecordsAreAsTheSchemaSays(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "schema", "event.schema.json"))
	must(err)
	var s jsonschema.Schema
	must(json.Unmarshal(src, &s))
	schema, err := s.Resolve(nil)
	must(err)

	shipped := policy.Default()
	allow := policy.Rules{Else: &policy.Outcome{Decision: core.Allow}}
	shipped.Rules[core.FSDelete], shipped.Rules[core.ToolCall] = allow, allow
	shipped.Rules[core.FSWrite] = policy.Rules{
		Matches: []policy.Match{{Pattern: policy.Pattern{Text: "asked"}, Decision: core.Ask}}, Else: allow.Else,
	}
	p, err := policy.Compile(policy.Config{Roots: []policy.Root{{Name: "project"}}, Fallback: &shipped})
	must(err)
	seen := map[any]int{}
	for _, o := range []StateOptions{{}, {HashedPaths: true}} {
		w := newWorld(t, p, map[string]string{"f": "x", ".env": "S=1", "asked": "", "d/e": "", "l": "-> f"})
		dir := filepath.Join(t.TempDir(), "state")
		state, err := OpenState(dir, o)
		must(err)
		g := w.open(p, func(o *Options) { o.Recorder, o.Locker = state, state })
		everyOperation(t.Context(), g)
		must(state.Close())
		for _, m := range records(t, dir) {
			seen[m["event"]]++
			if err := schema.Validate(m); err != nil {
				t.Errorf("%v: %v", m, err)
			}
			name, _ := m["resource"].(string)
			if hidden := o.HashedPaths && strings.HasPrefix(name, "project://"); hidden || strings.Contains(name, ".env") || strings.Contains(name, "passwd") {
				t.Errorf("%v tells %q", m["event"], name)
			}
			for _, field := range s.Required { // control: each of the eleven is missed
				v := m[field]
				delete(m, field)
				if schema.Validate(m) == nil {
					t.Errorf("%v without %s is valid", m, field)
				}
				m[field] = v
			}
		}
	}
	for _, e := range []string{"decision", "refusal", "failure", "preview", "intent", "outcome"} {
		if seen[e] < 10 {
			t.Errorf("%d records of %s: this run shows too little", seen[e], e)
		}
	}
	if len(s.Required) != 11 {
		t.Errorf("%d fields are required", len(s.Required))
	}
}
