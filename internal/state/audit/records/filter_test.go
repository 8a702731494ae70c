// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"
	"time"
)

func about(t *testing.T, pattern string) Resource {
	t.Helper()
	r, err := ParseResource(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestFilter(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	record := Record{
		Time: at, Agent: "codex", Op: "fs.write", Decision: "deny", Event: "refusal", Corr: "c", Session: "s", Source: "serve",
		Code: "policy.denied", Resource: "project://src/Main.go",
	}
	named := func(name string) Record { r := record; r.Resource = name; return r }
	tests := map[string]struct {
		f    Filter
		r    Record
		want bool
	}{
		"none":             {Filter{}, record, true},
		"agent":            {Filter{Agent: "codex"}, record, true},
		"another agent":    {Filter{Agent: "code"}, record, false},
		"op":               {Filter{Op: "fs.write"}, record, true},
		"op by its start":  {Filter{Op: "fs.*"}, record, true},
		"op, not a prefix": {Filter{Op: "fs."}, record, false},
		"another op":       {Filter{Op: "tool.*"}, record, false},
		"decision":         {Filter{Decision: "allow"}, record, false},
		"event":            {Filter{Event: "refusal"}, record, true},
		"another event":    {Filter{Event: "intent"}, record, false},
		"code":             {Filter{Code: "policy.*"}, record, true},
		"another code":     {Filter{Code: "path.*"}, record, false},
		"corr":             {Filter{Corr: "d"}, record, false},
		"session":          {Filter{Session: "t"}, record, false},
		"a text":           {Filter{Text: "SRC/main"}, record, true},
		"a text nowhere":   {Filter{Text: "src/other"}, record, false},
		"source":           {Filter{Source: "hook"}, record, false},
		"all must fit":     {Filter{Agent: "codex", Op: "fs.read"}, record, false},
		"since is in":      {Filter{Since: at}, record, true},
		"before since":     {Filter{Since: at.Add(1)}, record, false},
		"until is out":     {Filter{Until: at}, record, false},
		"before until":     {Filter{Until: at.Add(1)}, record, true},

		"a name":              {Filter{Resource: about(t, "src/Main.go")}, record, true},
		"another spelling":    {Filter{Resource: about(t, "SRC/main.go")}, record, true},
		"a folder":            {Filter{Resource: about(t, "src")}, record, true},
		"a folder with slash": {Filter{Resource: about(t, "src/")}, record, true},
		"a name like it":      {Filter{Resource: about(t, "sr")}, record, false},
		"a pattern":           {Filter{Resource: about(t, "**/*.go")}, record, true},
		"a root":              {Filter{Resource: about(t, "project://")}, record, true},
		"another root":        {Filter{Resource: about(t, "notes://")}, record, false},
		"in a root":           {Filter{Resource: about(t, "project://src/**")}, record, true},
		"in another root":     {Filter{Resource: about(t, "notes://src/**")}, record, false},
		"no resource":         {Filter{Resource: about(t, "**")}, named(""), false},
		"a tool":              {Filter{Resource: about(t, "github://create_*")}, named("github://create_issue"), true},
		"a server":            {Filter{Resource: about(t, "github://")}, named("github://create_issue"), true},
		"a tool of any":       {Filter{Resource: about(t, "create_issue")}, named("github://create_issue"), true},
		"a root of none":      {Filter{Resource: about(t, "github://")}, named("github"), false},
		"a private name":      {Filter{Resource: about(t, "dotenv:*")}, named("dotenv:0123456789abcdef01234567"), true},
		"a file of the log":   {Filter{Resource: about(t, "000001.jsonl")}, named("000001.jsonl"), true},
	}
	for name, c := range tests {
		if got := c.f.Match(&Entry{Record: c.r}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	garbage := &Entry{Err: ErrNotRecord}
	if f := (Filter{}); !f.Match(garbage) {
		t.Error("garbage is not shown without a filter")
	}
	if f := (Filter{Agent: "codex"}); f.Match(garbage) {
		t.Error("garbage fits a filter")
	}
	if _, err := ParseResource("a{b,c}"); err == nil {
		t.Error("a pattern that the policy refuses was taken")
	}
}

func TestParseTime(t *testing.T) {
	here := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, here)
	for s, want := range map[string]time.Time{
		"2026-11-29":                     time.Date(2026, 11, 29, 0, 0, 0, 0, here),
		"2026-11-29 14:05":               time.Date(2026, 11, 29, 14, 5, 0, 0, here),
		"2026-11-29 14:05:06":            time.Date(2026, 11, 29, 14, 5, 6, 0, here),
		"2026-11-29T14:05:06Z":           time.Date(2026, 11, 29, 14, 5, 6, 0, time.UTC),
		"2026-11-29T14:05:06.5+01:00":    time.Date(2026, 11, 29, 13, 5, 6, 5e8, time.UTC),
		"2h":                             now.Add(-2 * time.Hour),
		"1h30m":                          now.Add(-90 * time.Minute),
		"3d":                             now.Add(-72 * time.Hour),
		"0s":                             now,
		"2026-11-29T14:05:06.000000004Z": time.Date(2026, 11, 29, 14, 5, 6, 4, time.UTC),
	} {
		if got, err := ParseTime(s, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "yesterday", "-2h", "-3d", "2026-13-01", "12", "d", "3.5d", "99999d"} {
		if got, err := ParseTime(s, now); err == nil {
			t.Errorf("%q is %v", s, got)
		}
	}
}
