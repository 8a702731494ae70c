// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

// always are the fields of every record, in their order; some, those that
// follow where there is something to say.
var (
	always = []string{"t", "agent", "op", "decision", "reason", "source", "session", "corr", "policy", "level", "event"}
	some   = []string{"resource", "code", "was", "found", "approval", "kind", "approver", "shown", "undoes", "folder", "n"}
)

func eventSchema(t *testing.T) (*jsonschema.Schema, *jsonschema.Resolved) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "..", "..", "schema", "event.schema.json"))
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

// written are lines of every event code, with all that each can hold.
func written() map[Event][]byte {
	enc := encoder{key: make([]byte, 32)}
	e := event("a")
	e.Folder, e.Undoes = "/home/u/p", "c-0"
	all := map[Event][]byte{}
	add := func(change func(*core.Event)) {
		c := e
		change(&c)
		all[eventOf(c)] = enc.append(nil, c)
	}
	add(func(c *core.Event) { c.Was = "absent" })
	add(func(c *core.Event) { c.Phase = core.PhaseOutcome })
	add(func(c *core.Event) { c.Phase, c.Code = core.PhaseOutcome, fault.IOFailed.String() })
	add(func(c *core.Event) { c.Phase, c.Code = core.PhaseDecision, fault.PolicyDenied.String() })
	add(func(c *core.Event) { c.Phase, c.Code = core.PhaseDecision, fault.DryRunPreview.String() })
	add(func(c *core.Event) { c.Phase, c.Resource = core.PhaseDecision, core.Resource{} })
	add(func(c *core.Event) {
		c.Phase, c.Found, c.Subject.Level = core.PhaseUnknown, "unreadable", core.LevelNone
	})
	for _, x := range []Event{Asked, Approved, Denied, Withdrawn, Spent, Revoked, Expired, Paused, Resumed} {
		add(func(c *core.Event) {
			c.Phase = core.PhaseApproval
			c.Approval = core.Approval{Event: string(x), ID: "0123abcd", Kind: "once", Approver: "terminal", Shown: strings.Repeat("0f", 32)}
		})
	}
	for _, x := range []Event{Watching, Outside, OutsideMissed} {
		add(func(c *core.Event) {
			c.Phase, c.Outside = core.PhaseOutside, core.Outside{Event: string(x), N: 3}
			c.Subject = core.Subject{Source: "watcher"}
		})
	}
	for _, x := range Events() {
		if all[x.Event] == nil {
			all[x.Event] = enc.appendOwn(nil, time.Unix(0, 0), own{event: x.Event, reason: "why", resource: "000001.jsonl:7", n: -3})
		}
	}
	return all
}

// TestSchema: every record is as schema/event.schema.json says, has the eleven
// fields in their order, and one that lacks any of them or has another is not.
func TestSchema(t *testing.T) {
	_, schema := eventSchema(t)
	for code, line := range written() {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := schema.Validate(m); err != nil {
			t.Errorf("%s: %v", code, err)
		}
		if got := names(t, line); !slices.Equal(got[:len(always)], always) || !inOrder(got[len(always):]) {
			t.Errorf("%s: fields %v", code, got)
		}
		for name, v := range m {
			delete(m, name)
			if got := schema.Validate(m) == nil; got && slices.Contains(always, name) {
				t.Errorf("%s without %s is valid", code, name)
			}
			m[name] = []any{v}
			if schema.Validate(m) == nil {
				t.Errorf("%s with a list as %s is valid", code, name)
			}
			m[name] = v
		}
		m["content"] = "x"
		if schema.Validate(m) == nil {
			t.Errorf("%s with a field that nobody knows is valid", code)
		}
	}
}

// names are the keys of a line as they stand there.
func names(t *testing.T, line []byte) (all []string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(line)))
	for key := true; ; key = !key {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := tok.(json.Delim); ok {
			if d == '}' {
				return all
			}
			key = false // the next one is
		} else if key {
			all = append(all, tok.(string))
		}
	}
}

func inOrder(names []string) bool {
	last := -1
	for _, n := range names {
		i := slices.Index(some, n)
		if i <= last {
			return false
		}
		last = i
	}
	return true
}

// TestSchemaCombinations: a field that only some events have is refused in the
// others, and asked for where it must be.
func TestSchemaCombinations(t *testing.T) {
	_, schema := eventSchema(t)
	refused := map[Event]map[string]any{
		Decision: {"was": "absent"}, Outcome: {"code": "io.failed"}, Refusal: {"code": nil}, Failure: {"code": nil},
		OutcomeUnknown: {"found": nil}, Intent: {"found": "absent"}, Garbage: {"corr": nil, "decision": "allow"},
		Preview: {"corr": ""}, Pruned: {"event": "decision"}, Renewed: {"op": "fs.read"},
		Asked: {"approval": "0123"}, Approved: {"kind": "forever"}, Spent: {"shown": "0f"}, Denied: {"code": "policy.denied"}, Expired: {"was": "absent"},
	}
	lines := written()
	for code, change := range refused {
		var m map[string]any
		if err := json.Unmarshal(lines[code], &m); err != nil {
			t.Fatal(err)
		}
		for name, v := range change {
			if m[name] = v; v == nil {
				delete(m, name)
			}
		}
		if schema.Validate(m) == nil {
			t.Errorf("%s with %v is valid", code, change)
		}
	}
}

// TestSchemaEnumerations: what the schema lists is what the code has.
func TestSchemaEnumerations(t *testing.T) {
	s, _ := eventSchema(t)
	var events, ops, decisions, levels []any
	for _, e := range Events() {
		events = append(events, string(e.Event))
	}
	for _, a := range core.Actions() {
		ops = append(ops, a.String())
	}
	ops = append(ops, core.ActionUnknown.String(), "log")
	for _, d := range []core.Decision{core.Allow, core.Ask, core.Deny} {
		decisions = append(decisions, d.String())
	}
	decisions = append(decisions, "none")
	for l := core.LevelNone; l <= core.LevelOS; l++ {
		levels = append(levels, l.String())
	}
	for name, want := range map[string][]any{"event": events, "op": ops, "decision": decisions, "level": levels} {
		if d := cmp.Diff(want, s.Properties[name].Enum); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if d := cmp.Diff(always, s.Required); d != "" {
		t.Error(d)
	}
	if len(s.Properties) != len(always)+len(some) {
		t.Errorf("%d properties", len(s.Properties))
	}
}
