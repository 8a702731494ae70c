// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
)

var update = flag.Bool("update", false, "rewrite docs/events.md from the table")

// eventsPage is docs/events.md. The table is its only source.
func eventsPage() string {
	var b strings.Builder
	b.WriteString(`# Event codes

<!-- Generated from internal/state/audit/events.go by: go generate ./internal/state/audit -->

The **event** of a record in the audit log says what it tells. It never changes its meaning, and a
code that is no longer written is never used for anything else. [schema/event.schema.json](../schema/event.schema.json)
is what a record looks like; ` + "`code`" + ` is one of [errors.md](errors.md).

The records of one call share their ` + "`corr`" + `: a change has an ` + "`intent`" + ` and then an ` + "`outcome`" + `, a
` + "`failure`" + ` or, if its process was killed, an ` + "`outcome_unknown`" + `; anything else is told by one record
for each name that it is about.

| event | what it tells | on disk |
|---|---|---|
`)
	for _, e := range Events() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Event, e.Meaning, e.Synced)
	}
	b.WriteString(`
` + "`found`" + ` of an ` + "`outcome_unknown`" + ` compares what is there at the next start with ` + "`was`" + ` of its intent:
` + "`unchanged`" + `, ` + "`changed`" + `, ` + "`absent`" + ` (it was there and is not), or ` + "`unreadable`" + `, where nobody can tell:
a name that is only a hash, a tool, a root that is gone. A change by somebody else in between reads
the same as one by the call.
`)
	return b.String()
}

func TestEventsPage(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "events.md")
	if *update {
		if err := os.WriteFile(path, []byte(eventsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(eventsPage(), string(got)); diff != "" {
		t.Errorf("docs/events.md is not what the table says; go generate ./internal/state/audit rewrites it:\n%s", diff)
	}
}

// lost are the codes that were given out once and are not in the table, and
// those that were never given out.
func lost(given []string, table []Explained) (gone, fresh []string) {
	var now []string
	for _, e := range table {
		now = append(now, string(e.Event))
	}
	for _, code := range given {
		if !slices.Contains(now, code) {
			gone = append(gone, code)
		}
	}
	for i, code := range now {
		if !slices.Contains(given, code) || slices.Contains(now[:i], code) {
			fresh = append(fresh, code)
		}
	}
	return gone, fresh
}

// TestCodesAreForever: testdata/events is every code that was ever given out,
// one a line, and only grows.
func TestCodesAreForever(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "events"))
	if err != nil {
		t.Fatal(err)
	}
	given := strings.Fields(string(data))
	if gone, fresh := lost(given, Events()); len(gone)+len(fresh) > 0 {
		t.Errorf("codes that are gone: %v; new or double ones, which belong into testdata/events: %v", gone, fresh)
	}
	if gone, _ := lost(given, Events()[1:]); len(gone) != 1 { // control
		t.Errorf("a code that is taken away: %v", gone)
	}
	if _, fresh := lost(given[1:], append(Events(), Events()[2])); len(fresh) != 2 {
		t.Errorf("a new one and a double one: %v", fresh)
	}
	for _, e := range Events() {
		if e.Meaning == "" || e.Synced == "" || bytes.ContainsAny([]byte(e.Meaning+e.Synced), "|\n") {
			t.Errorf("%s has no row of a table: %q, %q", e.Event, e.Meaning, e.Synced)
		}
	}
}

// TestEventOf: every fault that ends a call is a refusal when the gate said no
// and a failure when something could not be done.
func TestEventOf(t *testing.T) {
	for _, c := range fault.Codes() {
		want := Failure
		switch {
		case c == fault.OK:
			continue
		case c == fault.DryRunPreview:
			want = Preview
		case c.Kind() == fault.KindDenial:
			want = Refusal
		}
		if got := eventOf(core.Event{Code: c.String()}); got != want {
			t.Errorf("%s is a %s, want %s", c, got, want)
		}
		if got := eventOf(core.Event{Phase: core.PhaseOutcome, Code: c.String()}); got != Failure {
			t.Errorf("%s as an outcome is a %s", c, got)
		}
	}
	for phase, want := range map[core.Phase]Event{
		core.PhaseDecision: Decision, core.PhaseIntent: Intent, core.PhaseOutcome: Outcome, core.PhaseUnknown: OutcomeUnknown,
	} {
		if got := eventOf(core.Event{Phase: phase}); got != want {
			t.Errorf("phase %d is a %s, want %s", phase, got, want)
		}
	}
	if got := eventOf(core.Event{Code: "no.such"}); got != Failure {
		t.Errorf("a code that nobody knows is a %s", got)
	}
}
