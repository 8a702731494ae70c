// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/enforce"
)

func resultSchema(t *testing.T) (*jsonschema.Schema, *jsonschema.Resolved) {
	t.Helper()
	src, err := os.ReadFile("../../schema/result.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(src, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &s, r
}

func decoded(t *testing.T, src []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(src, &v); err != nil {
		t.Fatalf("%v: %s", err, src)
	}
	return v
}

func marshalled(t *testing.T, o enforce.Outcome) map[string]any {
	t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, b)
}

// outcomes are what each field of the schema comes from, and as what.
var outcomes = map[string]struct {
	outcome enforce.Outcome
	want    map[string]any
}{
	"nothing to say": {enforce.Outcome{}, map[string]any{}},
	"a change":       {enforce.Outcome{Changed: true}, map[string]any{"persisted": true, "undoable": false}},
	"with undo":      {enforce.Outcome{Changed: true, Undoable: true, UndoID: "u1"}, map[string]any{"persisted": true, "undoable": true, "undo_id": "u1"}},
	"not persisted": {
		enforce.Outcome{Changed: true, NotPersisted: &enforce.NotPersisted{Reason: "no sync", Hint: "sync"}},
		map[string]any{"persisted": false, "undoable": false, "reason": "no sync", "hint": "sync"},
	},
	"half failed": {
		enforce.Outcome{MayHaveApplied: true, AbortedAt: "project://x", SkippedCount: 2},
		map[string]any{"may_have_applied": true, "aborted_at": "project://x", "skipped_count": 2.0},
	},
	"a walk":  {enforce.Outcome{RescanPending: true, Partial: true}, map[string]any{"rescan_pending": true, "partial": true}},
	"dry run": {enforce.Outcome{DryRun: true}, map[string]any{"dry_run": true}},
	"beyond undo": {
		enforce.Outcome{Changed: true, Class: core.Destructive, UndoReason: "too large"},
		map[string]any{"persisted": true, "undoable": false, "undo_reason": "too large", "class": "destructive"},
	},
	"dry run with undo": {
		enforce.Outcome{DryRun: true, Class: core.Mutating, Undoable: true},
		map[string]any{"dry_run": true, "undoable": true, "class": "mutating"},
	},
	"no exchange": {
		enforce.Outcome{Changed: true, NoCAS: true, Etag: "1bkOaPc6rugmCpyIhv6WS"},
		map[string]any{"persisted": true, "undoable": false, "cas": false, "etag": "1bkOaPc6rugmCpyIhv6WS"},
	},
}

// TestResultContract pins every field: each is produced as the schema has it,
// and the schema has none that is not produced.
func TestResultContract(t *testing.T) {
	s, r := resultSchema(t)
	produced := map[string]bool{}
	for name, c := range outcomes {
		got := marshalled(t, c.outcome)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := r.Validate(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for field := range got {
			produced[field] = true
		}
		got["surprise"] = true
		if r.Validate(got) == nil {
			t.Errorf("%s: an unknown field passes", name)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.Properties)), slices.Sorted(maps.Keys(produced))); diff != "" {
		t.Errorf("fields of the schema and of results: %s", diff)
	}
}

// TestResultSchemaRefuses what would read as something that it isn't.
func TestResultSchemaRefuses(t *testing.T) {
	_, r := resultSchema(t)
	for name, src := range map[string]string{
		"not persisted without a reason": `{"persisted":false,"undoable":false}`,
		"a reason and persisted":         `{"persisted":true,"undoable":false,"reason":"r","hint":"h"}`,
		"undoable by nothing":            `{"persisted":true,"undoable":true}`,
		"half a change":                  `{"persisted":true}`,
		"a dry run that changed":         `{"dry_run":true,"persisted":true,"undoable":false}`,
		"a dry run that may have":        `{"dry_run":true,"may_have_applied":true}`,
		"said to be false":               `{"may_have_applied":false}`,
		"cas said to be true":            `{"cas":true}`,
		"nothing skipped":                `{"skipped_count":0}`,
		"text for a flag":                `{"partial":"true"}`,
		"no etag":                        `{"etag":""}`,
		"an inode in the etag":           `{"etag":"2049:131"}`,
	} {
		if r.Validate(decoded(t, []byte(src))) == nil {
			t.Errorf("%s passes: %s", name, src)
		}
	}
}

// changes is one call of each tool that changes something.
var changes = map[string]map[string]any{
	"write_file":       {"path": "a", "content": "x"},
	"edit_file":        {"path": "a", "edits": []any{map[string]any{"oldText": "one", "newText": "two"}}},
	"create_directory": {"path": "dir/new"},
	"move_file":        {"source": "b", "destination": "moved"},
	"append_file":      {"path": "a", "content": "x"},
	"copy_file":        {"source": "b", "destination": "copied"},
	"delete_file":      {"path": "b", "confirm": true},
}

// TestEveryChangeHasAResult: each tool of tools/list that changes something
// says whether that is on disk and can be undone; its dry run says that
// nothing was changed. A new tool fails here until it has its call.
func TestEveryChangeHasAResult(t *testing.T) {
	_, r := resultSchema(t)
	p := newPlace(t, nil)
	policy := filepath.Join(p.home, "policy.yaml")
	p.put(policy, "version: 1\nrules: { fs.delete: allow }\n")
	s := p.serve("--policy", policy, p.dir)
	seen := 0
	for _, tool := range s.tools() {
		if tool.Meta.Class == core.ReadOnly.String() {
			continue
		}
		args := changes[tool.Name]
		if args == nil {
			t.Errorf("%s changes something and has no call here", tool.Name)
			continue
		}
		seen++
		p.must(os.RemoveAll(filepath.Join(p.dir, "moved")))
		p.put(filepath.Join(p.dir, "a"), "one")
		p.put(filepath.Join(p.dir, "b"), "b")
		p.must(os.MkdirAll(filepath.Join(p.dir, "dir"), 0o755))
		for _, dry := range []bool{true, false} {
			args["dry_run"] = dry
			res := s.ask("tools/call", map[string]any{"name": tool.Name, "arguments": args})
			if res.IsError {
				t.Fatalf("%s: %v", tool.Name, res.Content)
			}
			got := decoded(t, res.Meta.Result)
			if err := r.Validate(got); err != nil {
				t.Errorf("%s: %v: %s", tool.Name, err, res.Meta.Result)
			}
			if dry && got["dry_run"] != true || !dry && (got["persisted"] != true || got["undo_id"] == nil) || got["undoable"] != true {
				t.Errorf("%s, dry run %t: %s", tool.Name, dry, res.Meta.Result)
			}
		}
	}
	if seen != len(changes) {
		t.Errorf("%d of %d tools were offered", seen, len(changes))
	}
}

type listedTool struct {
	Name string
	Meta struct {
		Class string `json:"dev.postern/safety_class"`
	} `json:"_meta"`
}

func (s *session) tools() []listedTool {
	s.Helper()
	_, err := io.WriteString(s.in, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n")
	s.must(err)
	if !s.out.Scan() {
		s.Fatal("no answer")
	}
	var answer struct{ Result struct{ Tools []listedTool } }
	s.must(json.Unmarshal(s.out.Bytes(), &answer))
	return answer.Result.Tools
}

// saboteur disturbs an operation between its intent and its effect.
type saboteur struct {
	enforce.Decider
	intent func()
	denies string // once the intent is recorded
	armed  bool
}

func (s *saboteur) Record(e core.Event, _ bool) error {
	if e.Phase == core.PhaseIntent && s.intent != nil && !s.armed {
		s.intent()
	}
	s.armed = s.armed || e.Phase == core.PhaseIntent
	return nil
}

func (s *saboteur) Evaluate(q core.Request) core.Verdict {
	if s.armed && s.denies != "" && strings.HasSuffix(q.Resource.Name, s.denies) {
		return core.Verdict{}
	}
	return s.Decider.Evaluate(q)
}

// untilFewer is cancelled once the directory holds fewer entries.
type untilFewer struct {
	context.Context
	dir     string
	entries int
}

func (c untilFewer) Err() error {
	if entries, err := os.ReadDir(c.dir); err != nil || len(entries) < c.entries {
		return context.Canceled
	}
	return nil
}

// TestHalfFailed: a change that failed after a part of it, or at a moment when
// nobody can tell, says so.
func TestHalfFailed(t *testing.T) {
	_, r := resultSchema(t)
	for name, c := range map[string]struct {
		sabotage func(p *place, s *saboteur, o *enforce.Options)
		do       func(context.Context, *enforce.Gate) (enforce.Outcome, error)
		fields   []string
	}{
		"a parent that was moved away while its file was replaced": {
			func(p *place, s *saboteur, _ *enforce.Options) {
				// The new file is beside the old one by now.
				s.intent = func() { p.must(os.Rename(filepath.Join(p.dir, "d"), filepath.Join(p.home, "d"))) }
			},
			func(ctx context.Context, g *enforce.Gate) (enforce.Outcome, error) {
				return g.Write(ctx, "d/1", []byte("new"), enforce.Call{})
			},
			[]string{"may_have_applied"},
		},
		"a file that vanished while its directory was copied": {
			func(p *place, s *saboteur, _ *enforce.Options) {
				s.intent = func() { p.must(os.Remove(filepath.Join(p.dir, "d/2"))) }
			},
			func(ctx context.Context, g *enforce.Gate) (enforce.Outcome, error) {
				return g.Copy(ctx, "d", "copy", enforce.Call{})
			},
			[]string{"may_have_applied", "aborted_at", "skipped_count"},
		},
		"a call that was cancelled while its directory was deleted": {
			func(*place, *saboteur, *enforce.Options) {},
			func(ctx context.Context, g *enforce.Gate) (enforce.Outcome, error) {
				dir := g.Workspace().Roots()[0].Resolved() + "/d"
				return g.Delete(untilFewer{ctx, dir, 4}, "d", true, enforce.Call{Confirm: true}) //nolint:contextcheck // it stands on ctx
			},
			[]string{"may_have_applied"},
		},
		// Nothing was removed, and nothing is said to be.
		"an entry that was denied before its directory was deleted": {
			func(_ *place, s *saboteur, _ *enforce.Options) { s.denies = "d/2" },
			func(ctx context.Context, g *enforce.Gate) (enforce.Outcome, error) {
				return g.Delete(ctx, "d", true, enforce.Call{Confirm: true})
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"d/1": "1", "d/2": "2", "d/3": "3", "d/4": "4"})
			policy := filepath.Join(p.home, "policy.yaml")
			p.put(policy, "version: 1\nrules: { fs.delete: allow }\n")
			o := &options{policy: policy}
			env := p.env(strings.NewReader(""), io.Discard)
			w, err := o.load(&env, []string{p.dir})
			p.must(err)
			p.must(w.open(&env))
			s := &saboteur{Decider: w.live}
			parts := o.gate(w, s, unlocked{}, nil)
			parts.Decider = s
			c.sabotage(p, s, &parts)
			g, err := enforce.New(parts)
			p.must(err)
			outcome, err := c.do(t.Context(), g)
			if err == nil {
				t.Fatal("it succeeded")
			}
			got := marshalled(t, outcome)
			if err := r.Validate(got); err != nil {
				t.Error(err)
			}
			slices.Sort(c.fields)
			if diff := cmp.Diff(c.fields, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("%v (%s): %s", err, fault.CodeOf(err), diff)
			}
		})
	}
}
