// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit"
	"github.com/postern-gate/postern/internal/state/audit/records"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// said is what a command printed; it may still run.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func logEnv(stateDir string) (*said, *said, Env) {
	var out, err said
	return &out, &err, Env{
		In: strings.NewReader(""), Out: &out, Err: &err, Getwd: os.Getwd,
		Getenv: func(name string) string {
			if name == "POSTERN_STATE" {
				return stateDir
			}
			return ""
		},
	}
}

const asLogWriter = "POSTERN_TEST_LOG_WRITER"

const followed = 60

// TestLogFollow: what another process records while the log is followed is
// printed once and in order, over segments, and the follower waits for a log
// that is not there yet.
func TestLogFollow(t *testing.T) {
	if dir := os.Getenv(asLogWriter); dir != "" {
		writeRecords(t, dir, followed)
		return
	}
	dir := filepath.Join(t.TempDir(), "state")
	out, stderr, env := logEnv(dir)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"log", "--follow", "--all", "--op", "fs.*", "--json"}, env) }()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLogFollow$")
	cmd.Env = append(os.Environ(), asLogWriter+"="+dir)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for over := time.Now().Add(30 * time.Second); strings.Count(out.String(), "\n") < followed && time.Now().Before(over); {
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	if code := <-ended; code != fault.ExitInterrupted {
		t.Errorf("exit %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != followed {
		t.Fatalf("%d lines, want %d: %s", len(lines), followed, stderr)
	}
	for i, line := range lines {
		if r, err := records.Parse([]byte(line)); err != nil || r.Corr != strconv.Itoa(i) {
			t.Errorf("line %d: %v: %s", i, err, line)
		}
	}
	if files, err := segment.List(filepath.Join(dir, "audit")); err != nil || len(files) < 3 {
		t.Errorf("%d segments, %v: this run proves nothing about rotations", len(files), err)
	}
}

func event(corr string, at time.Time) core.Event {
	return core.Event{
		Time: at, Phase: core.PhaseIntent, Subject: core.Subject{Agent: "codex", Source: "serve"},
		Action: core.FSWrite, Resource: core.File("project", "a.txt"), Corr: corr, Policy: "p",
		Verdict: core.Verdict{Decision: core.Allow, Reason: core.Reason{Decision: core.Allow, Step: core.StepRule, Rule: "allow"}},
	}
}

// writeRecords makes a log with small segments, and records at once, later,
// synced and not.
func writeRecords(t *testing.T, dir string, n int) {
	made, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.Open(made.Path(), audit.Options{SegmentSize: 4 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := l.Record(event(strconv.Itoa(i), time.Now()), i%3 != 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestLogPrunes: records that are old enough go, the rest and an older anchor
// stay verifiable, and the show goes on from what is left.
func TestLogPrunes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	writeRecords(t, dir, followed)
	do := func(args ...string) (int, string, string) {
		out, stderr, env := logEnv(dir)
		code := run(t.Context(), args, env)
		return code, out.String(), stderr.String()
	}
	_, anchor, _ := do("log", "anchor")
	kept := filepath.Join(t.TempDir(), "anchor")
	if err := os.WriteFile(kept, []byte(anchor), 0o600); err != nil {
		t.Fatal(err)
	}
	code, would, stderr := do("log", "prune", "--keep", "0s", "--dry-run")
	if code != 0 || !strings.Contains(would, "would be removed: 000001.jsonl, ") {
		t.Fatalf("exit %d: %s%s", code, would, stderr)
	}
	if _, all, _ := do("log", "--op", "fs.*"); strings.Count(all, "\n") != followed {
		t.Errorf("a dry run removed something: %s", all)
	}
	code, done, stderr := do("log", "prune", "--keep", "0s")
	if want := strings.ReplaceAll(would, "would be removed", "removed"); code != 0 || done != want {
		t.Errorf("exit %d: %s%s, want %s", code, done, stderr, want)
	}
	if _, all, _ := do("log", "--op", "fs.*"); strings.Count(all, "\n") >= followed || all == "" {
		t.Errorf("nothing was removed: %s", all)
	}
	code, said, stderr := do("log", "verify", "--anchor", kept)
	if code != 0 || !regexp.MustCompile(`^ok: [0-9]+ records in [0-9]+ segments, of [0-9]+ only the hashes\n`).MatchString(said) {
		t.Errorf("exit %d: %s%s", code, said, stderr)
	}
	if _, events, _ := do("log", "--event", "pruned"); strings.Count(events, " pruned ") != strings.Count(done, "removed: ") {
		t.Errorf("recorded: %s", events)
	}
	if code, _, stderr := do("log", "prune", "--keep", "0s", "--json"); code != 0 {
		t.Errorf("again: exit %d: %s", code, stderr)
	}
}

// TestLogLong draws every field, with hostile text in each.
func TestLogLong(t *testing.T) {
	hostile := "a\x1b]0;x\x07\n\u202e\u2028\xff"
	e := records.Entry{Segment: 1, Line: 2, Record: records.Record{
		Agent: hostile, Op: hostile, Decision: hostile, Reason: hostile, Source: hostile, Session: hostile, Corr: hostile, Policy: hostile,
		Level: hostile, Event: hostile, Resource: hostile, Code: hostile, Was: hostile, Found: hostile, N: 7,
	}}
	var b bytes.Buffer
	if err := (&logPrinter{long: true}).text(&b, &e); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(b.Bytes(), "\x1b\x07\u202e\u2028") || bytes.Count(b.Bytes(), []byte("\n")) != 14 {
		t.Errorf("%d lines: %q", bytes.Count(b.Bytes(), []byte("\n")), b.String())
	}
	b.Reset()
	e.Err, e.Text = records.ErrNotRecord, []byte(strings.Repeat("\x1b", garbageMost+3))
	for _, print := range []func() error{
		func() error { return (&logPrinter{}).text(&b, &e) }, func() error { return printJSON(&b, &e) },
	} {
		if err := print(); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(b.String(), "\x1b") || strings.Count(b.String(), " and 3 bytes more") != 2 {
		t.Errorf("%.200s", b.String())
	}
}

func TestNotes(t *testing.T) {
	note := func(n int) string {
		return fmt.Sprintf("postern/x\n%d\nroot\n\n\u2014 postern/x sig%d\n", n, n)
	}
	for text, want := range map[string][]string{
		"":                                nil,
		"\n\n":                            nil,
		note(1):                           {note(1)},
		"\n\n" + note(1) + "\n":           {note(1)},
		note(1) + note(2):                 {note(1), note(2)},
		note(1) + "\n\n" + note(2):        {note(1), note(2)},
		strings.TrimSpace(note(1)):        {note(1)},
		"no note":                         {"no note\n"},
		"a\r\nb\r\n\r\n\u2014 c d\r\n":    {"a\nb\n\n\u2014 c d\n"},
		note(1) + "# torn" + note(2)[:20]: {note(1), "# torn" + note(2)[:20] + "\n"},
	} {
		if got := notes(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestLogRewritten: somebody with the key writes the log anew, and an anchor of
// the new one is appended to the file of anchors. The older one tells.
func TestLogRewritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	kept := filepath.Join(t.TempDir(), "anchors")
	do := func(args ...string) (int, string) {
		out, stderr, env := logEnv(dir)
		code := run(t.Context(), append([]string{"log"}, args...), env)
		return code, out.String() + stderr.String()
	}
	anchor := func() {
		out, _, env := logEnv(dir)
		if code := run(t.Context(), []string{"log", "anchor"}, env); code != 0 {
			t.Fatalf("exit %d", code)
		}
		f, err := os.OpenFile(kept, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(out.String())
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	writeRecords(t, dir, 3)
	key, err := os.ReadFile(filepath.Join(dir, "keys", "log"))
	if err != nil {
		t.Fatal(err)
	}
	anchor()
	writeRecords(t, dir, 3)
	anchor()
	if code, said := do("verify", "--anchor", kept); code != 0 {
		t.Fatalf("as it was written: exit %d: %s", code, said)
	}
	if err := forge(dir, key); err != nil {
		t.Fatal(err)
	}
	anchor()
	if code, said := do("verify"); code != 0 {
		t.Fatalf("the forgery has to be whole: exit %d: %s", code, said)
	}
	code, said := do("verify", "--anchor", kept)
	if code != fault.ExitAudit || strings.Count(said, "broken: anchor: the first ") != 2 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// forge writes a log of other records with the same key.
func forge(dir string, secret []byte) error {
	key, err := seal.ParseKey(secret)
	if err != nil {
		return err
	}
	var edge seal.Edge
	first, err := key.Sign(&edge, nil)
	if err != nil {
		return err
	}
	text := string(seal.Head{Segment: 1, Time: time.Now(), Note: first.Note}.Line()) + "\n"
	for i := range 9 {
		line := fmt.Sprintf(`{"t":"2026-11-30T01:02:03Z","agent":"","op":"fs.read","decision":"allow","reason":"","source":"","session":"","corr":"%d",`+
			`"policy":"","level":"sdk","event":"decision"}`, i)
		edge.AddLine([]byte(line))
		text += line + "\n"
	}
	last, err := key.Sign(&edge, &first)
	if err != nil {
		return err
	}
	return errors.Join(
		os.Remove(filepath.Join(dir, "checkpoint")),
		os.WriteFile(segment.Path(filepath.Join(dir, "audit"), 1, segment.Lines), []byte(text+string(last.Line())+"\n"), 0o600))
}

// TestLogFlags: each flag of a filter is one that can't be meant wrongly, and
// the events offered are those that the log has.
func TestLogFlags(t *testing.T) {
	now := time.Now()
	for name, f := range map[string]logFilter{
		"op": {op: "fs.reed"}, "op prefix": {op: "x*"}, "code": {code: "policy"}, "code prefix": {code: "polici.*"},
		"since": {since: "soon"}, "until": {until: "-1h"}, "resource": {resource: "a//b"},
	} {
		if _, err := f.parse("postern log", now); fault.CodeOf(err) != fault.RequestInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, f := range []logFilter{{}, {op: "*"}, {op: "log"}, {op: "fs.*"}, {code: "path.*"}, {code: "policy.denied"}, {since: "1h", until: "0s"}} {
		if _, err := f.parse("postern log", now); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
