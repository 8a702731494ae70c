// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// cases are one of each kind of record.
func cases() map[string]records.Record {
	call := records.Record{
		Time: time.Date(2026, 11, 30, 1, 2, 3, 4567890, time.UTC), Agent: "codex", Decision: "allow", Reason: "the default",
		Source: "serve", Session: "s1", Corr: "c-1", Policy: "p-1", Level: "sdk",
	}
	with := func(op, event string, change func(*records.Record)) records.Record {
		r := call
		r.Op, r.Event = op, event
		change(&r)
		return r
	}
	file := func(r *records.Record) { r.Resource = "project://src/a.txt" }
	log := func(r *records.Record) {
		*r = records.Record{Time: r.Time, Op: "log", Decision: "none", Reason: "it happened", Source: "log", Level: "none", Event: r.Event}
	}
	return map[string]records.Record{
		"read":    with("fs.read", "decision", file),
		"list":    with("fs.list", "decision", func(r *records.Record) { r.Resource = "project://" }),
		"watch":   with("fs.watch", "decision", file),
		"intent":  with("fs.write", "intent", func(r *records.Record) { file(r); r.Was = "absent" }),
		"outcome": with("fs.create", "outcome", file),
		"preview": with("fs.rename", "preview", func(r *records.Record) { file(r); r.Code = "dry_run.preview" }),
		"failure": with("fs.delete", "failure", func(r *records.Record) { file(r); r.Code = "io.failed"; r.Decision = "ask" }),
		"approved": with("fs.delete", "outcome", func(r *records.Record) {
			file(r)
			r.Decision = "ask"
		}),
		"asked": with("fs.delete", "asked", func(r *records.Record) { file(r); r.Decision, r.Approval = "ask", "0123abcd" }),
		"answered": with("fs.delete", "approved", func(r *records.Record) {
			file(r)
			r.Approval, r.Kind, r.Approver, r.Shown, r.Source = "0123abcd", "once", "terminal", "0f", "terminal"
		}),
		"unknown": with("fs.write", "outcome_unknown", func(r *records.Record) { file(r); r.Was, r.Found = "e", "changed" }),
		"missing": with("fs.read", "refusal", func(r *records.Record) { file(r); r.Code = "path.missing" }),
		"refused": with("fs.read", "refusal", func(r *records.Record) {
			r.Resource, r.Code, r.Decision = "dotenv:0123456789abcdef01234567", "policy.denied", "deny"
			r.Agent, r.Session, r.Source = "", "", "hook"
		}),
		"tool": with("tool.call", "intent", func(r *records.Record) { r.Resource = "github://create_issue" }),
		"stranger": with("tool.call", "refusal", func(r *records.Record) {
			r.Resource, r.Code = "outside:0123456789abcdef01234567", "request.invalid"
			r.Decision = "deny"
		}),
		"program": with("proc.exec", "refusal", func(r *records.Record) {
			r.Resource, r.Code, r.Source, r.Decision = "/usr/bin/git", "policy.denied", "run", "deny"
		}),
		"outside": with("fs.write", "outside", func(r *records.Record) {
			file(r)
			r.Agent, r.Decision, r.Source, r.Level = "", "none", "watcher", "none"
		}),
		"full":      with("log", "audit_full", log),
		"unread":    with("log", "reads_unrecorded", func(r *records.Record) { log(r); r.N = 3 }),
		"vanished":  with("log", "segment_vanished", func(r *records.Record) { log(r); r.Resource = "000007.jsonl" }),
		"no fields": {Time: call.Time},
	}
}

// TestGolden compares every mapping with testdata, where a reader sees it.
func TestGolden(t *testing.T) {
	o := Origin{Host: "box", Version: "v1"}
	for name, r := range cases() {
		for format, got := range map[string]any{"ocsf": OCSF(&r, o), "otel": OTel(&r, o)} {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetIndent("", " ")
			if err := enc.Encode(got); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+"."+format+".json")
			if *update {
				if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("%s: %s", file, d)
			}
		}
	}
}

// TestEveryEvent: each code that the log can hold is mapped on purpose: to a
// status, and those about the log to its class.
func TestEveryEvent(t *testing.T) {
	names := map[string]bool{refusal: false, preview: false, intent: false, outcome: false, failure: false, outcomeUnknown: false}
	for _, x := range audit.Events() {
		event := string(x.Event)
		if _, ok := names[event]; ok {
			names[event] = true
		}
		r := records.Record{Op: "fs.write", Decision: "allow", Event: event}
		class := 100103
		if aboutApproval(&r) { // nothing was done to the file
			class = 600399
		}
		if e := OCSF(&r, Origin{}); e.Metadata.EventCode != event || e.TypeUID != class {
			t.Errorf("%s: %+v", event, e)
		}
		if event == "decision" || event == outcomeUnknown {
			continue
		}
		r.Op = "log"
		if e := OCSF(&r, Origin{}); e.ClassUID != 1008 || e.Status != event {
			t.Errorf("%s of the log: %+v", event, e)
		}
	}
	for name, found := range names {
		if !found {
			t.Errorf("no record has the event %s", name)
		}
	}
}

// TestEveryAction: each action has the class that the documentation says, and
// each of a file an activity of its own.
func TestEveryAction(t *testing.T) {
	for _, a := range core.Actions() {
		r := records.Record{Op: a.String(), Event: "intent", Resource: "project://a"}
		e := OCSF(&r, Origin{})
		want := 6003
		if a.IsFile() {
			want = 1001
		}
		if e.ClassUID != want || e.TypeUID != e.ClassUID*100+e.ActivityID {
			t.Errorf("%s: %+v", a, e)
		}
		if a.IsFile() && (e.File == nil || e.Device == nil || fileActivities[a.String()].id == 0) {
			t.Errorf("%s lacks what is required: %+v", a, e)
		}
		if !a.IsFile() && (e.API == nil || e.API.Operation == "" || e.SrcEndpoint == nil) {
			t.Errorf("%s lacks what is required: %+v", a, e)
		}
	}
}
