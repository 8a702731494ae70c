// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// checked verifies the log of a state directory.
func checked(t *testing.T, dir string) verify.Report {
	t.Helper()
	last, err := LastSigned(dir)
	must(t, err)
	line, err := VerifierLine(dir)
	must(t, err)
	v, err := seal.ParseVerifier(line)
	must(t, err)
	r, err := verify.Check(context.Background(), verify.Options{Dir: filepath.Join(dir, segmentsDir), Verifier: v, Signed: last})
	must(t, err)
	return r
}

func sound(t *testing.T, dir string) verify.Report {
	t.Helper()
	r := checked(t, dir)
	if len(r.Problems) > 0 {
		t.Fatalf("not sound: %+v", r.Problems)
	}
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func record(t *testing.T, l *Log, corr string) {
	t.Helper()
	must(t, l.Record(named("a.txt", corr), true))
}

func named(name, corr string) core.Event {
	e := event(name)
	e.Corr = corr
	return e
}

// all returns the records of every segment, in order.
func all(t *testing.T, dir string) []map[string]any {
	t.Helper()
	files, err := segment.List(filepath.Join(dir, segmentsDir))
	must(t, err)
	var out []map[string]any
	for _, f := range files {
		if !f.Pruned {
			out = append(out, lines(t, f.Path)...)
		}
	}
	return out
}

func corrs(records []map[string]any) []string {
	var out []string
	for _, r := range records {
		if r["op"] != "log" {
			out = append(out, fmt.Sprint(r["corr"]))
		}
	}
	return out
}

func find(records []map[string]any, e Event) []map[string]any {
	var out []map[string]any
	for _, r := range records {
		if r["event"] == string(e) {
			out = append(out, r)
		}
	}
	return out
}

func newest(t *testing.T, dir string) string {
	t.Helper()
	files, err := segment.List(filepath.Join(dir, segmentsDir))
	must(t, err)
	return files[len(files)-1].Path
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// TestTornTail: what a crash left is moved aside and told, and is never glued
// to the next record. Another process finds it.
func TestTornTail(t *testing.T) {
	for name, fragment := range map[string]string{
		"half a record":     `{"t":"2026-11-30T01:02:03Z","agent":"co`,
		"zeros":             strings.Repeat("\x00", 100),
		"long":              strings.Repeat("x", 200<<10),
		"half a checkpoint": `{"checkpoint":"postern/`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := openAt(t, dir)
			record(t, l, "before")
			must(t, l.Close())
			add(t, newest(t, dir), fragment)
			next := openAt(t, dir)
			record(t, next, "after")
			must(t, next.Close())

			records := all(t, dir)
			if got := corrs(records); !slices.Equal(got, []string{"before", "after"}) {
				t.Errorf("records %q", got)
			}
			told := find(records, TornTail)
			if len(told) != 1 || told[0]["n"] != float64(len(fragment)) {
				t.Fatalf("told: %v", told)
			}
			aside, err := os.ReadFile(filepath.Join(dir, segmentsDir, fmt.Sprint(told[0]["resource"])))
			if err != nil || string(aside) != fragment {
				t.Errorf("aside: %d bytes, %v", len(aside), err)
			}
			sound(t, dir)
		})
	}
}

// TestGarbage: whole lines that are no records stay, and are named once.
func TestGarbage(t *testing.T) {
	dir := t.TempDir()
	one, two := openAt(t, dir), openAt(t, dir)
	record(t, one, "1")
	add(t, newest(t, dir), "\x00\x00\x00\n{\"t\":\"half\n{}\n")
	record(t, two, "2")
	for _, l := range []*Log{one, two, one} {
		_, err := l.Anchor()
		must(t, err)
	}
	var places []string
	raw, err := os.ReadFile(newest(t, dir))
	must(t, err)
	for line := range bytes.Lines(raw) {
		if eventIn(line) == Garbage {
			_, rest, _ := bytes.Cut(line, []byte(`"resource":"`))
			place, _, _ := bytes.Cut(rest, []byte(`"`))
			places = append(places, string(place))
		}
	}
	if want := []string{"000001.jsonl:3", "000001.jsonl:4", "000001.jsonl:5"}; !slices.Equal(places, want) {
		t.Errorf("named %q, want %q", places, want)
	}
	sound(t, dir)
}

// TestMuchGarbage: many such lines are all named before they are signed, and
// more than a crash leaves are a broken log.
func TestMuchGarbage(t *testing.T) {
	for _, n := range []int{500, mostGarbage + 1} {
		dir := t.TempDir()
		l := openAt(t, dir)
		record(t, l, "1")
		add(t, newest(t, dir), strings.Repeat("x\n", n))
		_, err := l.Anchor()
		if n > mostGarbage {
			if fault.CodeOf(err) != fault.AuditBroken {
				t.Errorf("%d lines: %v", n, err)
			}
			continue
		}
		must(t, err)
		must(t, l.Close())
		sound(t, dir)
	}
}

// TestLostSegment: a segment that is removed or replaced while it is in use is
// left alone, and every process goes on in one that can be read.
func TestLostSegment(t *testing.T) {
	for name, tc := range map[string]struct {
		lose  func(t *testing.T, path string)
		event Event
	}{
		"removed":        {func(t *testing.T, path string) { must(t, os.Remove(path)) }, SegmentVanished},
		"replaced":       {replace, SegmentReplaced},
		"folder removed": {func(t *testing.T, path string) { must(t, os.RemoveAll(filepath.Dir(path))) }, SegmentVanished},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			one, two := openAt(t, dir), openAt(t, dir)
			record(t, one, "lost")
			record(t, two, "lost too")
			_, err := one.Anchor()
			must(t, err)
			path := newest(t, dir)
			tc.lose(t, path)
			record(t, two, "a")
			record(t, one, "b")
			for _, l := range []*Log{one, two} {
				_, err := l.Anchor()
				must(t, err)
			}
			if got := newest(t, dir); filepath.Base(got) != "000002.jsonl" {
				t.Fatalf("newest is %s", got)
			}
			records := lines(t, newest(t, dir))
			if got := corrs(records); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("records %q", got)
			}
			if records[0]["event"] != string(tc.event) || records[0]["resource"] != "000001.jsonl" {
				t.Errorf("first record %v", records[0])
			}
			if r := checked(t, dir); len(r.Problems) == 0 {
				t.Error("the loss is not found by verify")
			}
			record(t, openAt(t, dir), "c") // a new process goes on too
		})
	}
}

func replace(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".tmp", data[:len(data)/2], 0o600))
	must(t, os.Rename(path+".tmp", path))
}

// breaks are ways in which a log stops being the one that was signed.
var breaks = map[string]struct {
	do   func(t *testing.T, dir string)
	code fault.Code
}{
	"cut to two records": {func(t *testing.T, dir string) {
		path := newest(t, dir)
		data, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, bytes.Join(bytes.SplitAfter(data, []byte("\n"))[:3], nil), 0o600))
	}, fault.AuditTruncated},
	"emptied":      {func(t *testing.T, dir string) { must(t, os.Truncate(newest(t, dir), 0)) }, fault.AuditTruncated},
	"segment gone": {func(t *testing.T, dir string) { must(t, os.Remove(newest(t, dir))) }, fault.AuditTruncated},
	"folder gone":  {func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, segmentsDir))) }, fault.AuditTruncated},
	"key gone":     {func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "keys", logKey))) }, fault.AuditBroken},
	"all but the key gone": {func(t *testing.T, dir string) {
		must(t, os.RemoveAll(filepath.Join(dir, segmentsDir)))
		must(t, os.Remove(filepath.Join(dir, signedFile)))
	}, fault.AuditTruncated},
	"checkpoint changed": {func(t *testing.T, dir string) { flip(t, newest(t, dir), -20) }, fault.AuditBroken},
	"older copy put back": {func(t *testing.T, dir string) {
		path := newest(t, dir)
		data, err := os.ReadFile(path)
		must(t, err)
		all := bytes.SplitAfter(data, []byte("\n"))
		cut := slices.IndexFunc(all, func(l []byte) bool { return seal.KindOf(l) == seal.KindCheckpoint })
		must(t, os.WriteFile(path, bytes.Join(all[:cut+1], nil), 0o600))
	}, fault.AuditTruncated},
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	if at < 0 {
		at += info.Size()
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	must(t, err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], at)
	must(t, err)
}

// TestBroken: a log that isn't what was signed gets no new record and no new
// checkpoint, until a person renews it. What is there stays as it is.
func TestBroken(t *testing.T) {
	for name, tc := range breaks {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := openAt(t, dir)
			for i := range 5 {
				record(t, l, fmt.Sprint(i))
				if i == 2 {
					_, err := l.Anchor()
					must(t, err)
				}
			}
			must(t, l.Close())
			control := openAt(t, dir) // unbroken it goes on
			record(t, control, "control")
			must(t, control.Close())
			tc.do(t, dir)
			before := snapshot(t, dir)

			next := openAt(t, dir)
			for range 2 {
				err := next.Record(event("refused"), true)
				if fault.CodeOf(err) != tc.code || !strings.Contains(fault.As(err).Next(), "anchor --renew") {
					t.Fatalf("recorded: %v", err)
				}
			}
			if fault.CodeOf(next.Problem()) != tc.code {
				t.Errorf("problem: %v", next.Problem())
			}
			if after := snapshot(t, dir); after != before {
				t.Errorf("the log was touched:\n%s\n%s", before, after)
			}
			renewed, err := Renew(dir)
			must(t, err)
			record(t, next, "after") // without a new start
			must(t, next.Close())
			records := all(t, dir)
			if got := corrs(records); !slices.Equal(got, []string{"after"}) {
				t.Errorf("records %q", got)
			}
			if r := find(records, Renewed); len(r) != 1 || !strings.Contains(fmt.Sprint(r[0]["reason"]), renewed.OldOrigin) {
				t.Errorf("renewed: %v", r)
			}
			sound(t, dir)
		})
	}
}

// snapshot is every segment's name and content.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(filepath.Join(dir, segmentsDir), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %q\n", path, data)
		return err
	})
	must(t, err)
	return b.String()
}

// TestBrokenWhileOpen: the same, noticed by a process that has the log open.
func TestBrokenWhileOpen(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	for i := range 5 {
		record(t, l, fmt.Sprint(i))
	}
	_, err := l.Anchor()
	must(t, err)
	must(t, os.Truncate(newest(t, dir), 700))
	if err := l.Record(event("a"), true); fault.CodeOf(err) != fault.AuditTruncated {
		t.Errorf("recorded: %v", err)
	}
	// Even when the memory of the last checkpoint is rolled back with it.
	must(t, os.Remove(filepath.Join(dir, signedFile)))
	if err := l.Record(event("a"), true); fault.CodeOf(err) != fault.AuditTruncated {
		t.Errorf("recorded: %v", err)
	}
}

// TestExamine: a change inside the newest segment is found by the look that a
// process takes after its start, and stops it until a person renews the log.
func TestExamine(t *testing.T) {
	for name, at := range map[string]int64{"first record": 700, "last record": -900, "head": 60} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := openAt(t, dir)
			for i := range 5 {
				record(t, l, fmt.Sprint(i))
			}
			must(t, l.Close())
			sane := openAt(t, dir)
			must(t, sane.Examine(t.Context()))
			record(t, sane, "control")
			must(t, sane.Close())
			must(t, Inspect(t.Context(), dir))

			flip(t, newest(t, dir), at)
			if err := Inspect(t.Context(), dir); fault.CodeOf(err) != fault.AuditBroken {
				t.Errorf("inspected: %v", err)
			}
			next := openAt(t, dir)
			if err := next.Examine(t.Context()); fault.CodeOf(err) != fault.AuditBroken {
				t.Fatalf("examined: %v", err)
			}
			if err := next.Record(event("refused"), true); fault.CodeOf(err) != fault.AuditBroken {
				t.Errorf("recorded: %v", err)
			}
			if checked(t, dir).Problems == nil {
				t.Error("verify finds nothing")
			}
			_, err := Renew(dir)
			must(t, err)
			record(t, next, "after")
			must(t, next.Close())
			sound(t, dir)
		})
	}
	must(t, openAt(t, t.TempDir()).Examine(t.Context())) // no log yet
}

// TestExamineBesideRenewal: the look goes on beside commits and renewals, which
// take the log from under it.
func TestExamineBesideRenewal(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	for i := range 300 {
		record(t, l, fmt.Sprint(i))
	}
	_, err := l.Anchor()
	must(t, err)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = l.Examine(context.Background()) // what it says is another test's
			}
		}
	}()
	for i := range 5 {
		_, err := Renew(dir)
		must(t, err)
		record(t, l, fmt.Sprint("renewed", i))
	}
	close(stop)
	<-done
	record(t, l, "last")
	must(t, l.Close())
	sound(t, dir)
}

// TestLook: what a start would meet is known without one, and nothing is made.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	must(t, Look(dir))
	must(t, Inspect(t.Context(), dir))
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("made %v, %v", entries, err)
	}
	for name, tc := range breaks {
		dir := t.TempDir()
		l := openAt(t, dir)
		for i := range 5 {
			record(t, l, fmt.Sprint(i))
			if i == 2 {
				_, err := l.Anchor()
				must(t, err)
			}
		}
		must(t, l.Close())
		must(t, Look(dir))
		must(t, Inspect(t.Context(), dir))
		tc.do(t, dir)
		if err := Look(dir); fault.CodeOf(err) != tc.code {
			t.Errorf("%s: %v", name, err)
		}
		if err := Inspect(t.Context(), dir); fault.CodeOf(err) != tc.code {
			t.Errorf("%s, inspected: %v", name, err)
		}
	}
}

// TestRenewWithoutKeys: a renewal needs nothing of the old log, and one that
// was cut short asks for another.
func TestRenewWithoutKeys(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	record(t, l, "1")
	must(t, l.Close())
	must(t, os.RemoveAll(filepath.Join(dir, "keys")))
	_, err := Renew(dir)
	must(t, err)
	record(t, openAt(t, dir), "2")
	sound(t, dir)

	must(t, os.Remove(filepath.Join(dir, "keys", logKey)))
	must(t, os.Remove(filepath.Join(dir, signedFile)))
	must(t, os.Remove(newest(t, dir)))
	if err := openAt(t, dir).Record(event("x"), true); fault.CodeOf(err) != fault.AuditTruncated {
		t.Errorf("after half a renewal: %v", err)
	}
	_, err = Renew(dir)
	must(t, err)
	if r := find(all(t, dir), Renewed); len(r) != 1 {
		t.Errorf("renewed: %v", r)
	}
}

// TestLeftovers: what killed processes left is removed, what is new is not.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	record(t, l, "1")
	old := time.Now().Add(-2 * leftover)
	for _, name := range []string{".new-1", ".version-1", "keys/.key-1", "audit/.new-1"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, name+"fresh"), []byte("x"), 0o600))
		must(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	l.removeLeftovers()
	for _, name := range []string{".new-1", ".version-1", "keys/.key-1", "audit/.new-1"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, name+"fresh")); err != nil {
			t.Error(err)
		}
	}
	sound(t, dir)
}

// TestForgotten: what is remembered of the log can be lost, and is made again
// from the log.
func TestForgotten(t *testing.T) {
	for name, do := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.Truncate(path, 0) },
		"garbage": func(path string) error { return os.WriteFile(path, []byte("{}x"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := openWith(t, dir, Options{SegmentSize: 2 << 10})
			for i := range 20 {
				record(t, l, fmt.Sprint(i))
			}
			must(t, l.Close())
			must(t, do(filepath.Join(dir, signedFile)))
			next := openAt(t, dir)
			record(t, next, "20")
			must(t, next.Close())
			if got := corrs(all(t, dir)); len(got) != 21 {
				t.Errorf("%d records", len(got))
			}
			sound(t, dir)
			if last, err := LastSigned(dir); err != nil || last == nil || last.Size != 21 {
				t.Errorf("remembered %v, %v", last, err)
			}
		})
	}
}

// TestUnfinishedBirth: what a crash left of the very first start is no log.
func TestUnfinishedBirth(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	must(t, l.Problem()) // makes the log and records nothing
	must(t, l.Close())
	must(t, os.Remove(filepath.Join(dir, "keys", logKey)))
	next := openAt(t, dir)
	record(t, next, "first")
	must(t, next.Close())
	sound(t, dir)
}

// TestRenewedWhileOpen: a process that is in a late segment goes on with the
// log that a person has begun meanwhile, however far that one has come.
func TestRenewedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	l := openWith(t, dir, Options{SegmentSize: 2 << 10})
	other := openWith(t, dir, Options{SegmentSize: 2 << 10})
	for i := range 20 {
		record(t, l, fmt.Sprint(i))
	}
	_, err := Renew(dir)
	must(t, err)
	for i := range 40 {
		record(t, other, fmt.Sprint("new", i))
	}
	record(t, l, "late")
	_, err = l.Anchor()
	must(t, err)
	if got := corrs(all(t, dir)); len(got) != 41 || got[40] != "late" {
		t.Errorf("records %q", got)
	}
	sound(t, dir)
}

func TestTwoVersions(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	record(t, l, "old")
	must(t, os.WriteFile(filepath.Join(dir, "version"), []byte("99\n"), 0o600))
	must(t, os.Rename(newest(t, dir), filepath.Join(dir, "moved-by-the-newer-one")))
	err := l.Record(event("a"), true)
	if fault.CodeOf(err) != fault.AuditUnwritable || !strings.Contains(err.Error(), "another version") {
		t.Errorf("recorded: %v", err)
	}
}

// TestClockBack: a clock that went back is told, in a running process and
// against the newest record of another one.
func TestClockBack(t *testing.T) {
	var d drift
	start := time.Now()
	for i, step := range []struct {
		wall, mono time.Duration
		want       time.Duration
	}{
		{0, 0, 0},
		{time.Minute, time.Minute, 0},
		{time.Hour, 2 * time.Minute, 0}, // forward is nothing to tell
		{time.Minute, 3 * time.Minute, 60 * time.Minute},
		{2 * time.Minute, 4 * time.Minute, 0},
		{2*time.Minute - time.Second, 4 * time.Minute, 0},
	} {
		if got := d.step(start.Add(step.wall), step.mono, time.Time{}); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	dir := t.TempDir()
	l := openAt(t, dir)
	e := event("a")
	e.Time = time.Now().Add(time.Hour)
	must(t, l.Record(e, true))
	must(t, l.Close())
	next := openAt(t, dir)
	record(t, next, "b")
	record(t, next, "c")
	must(t, next.Close())
	told := find(all(t, dir), ClockBack)
	if len(told) != 1 || told[0]["n"].(float64) < 3_500_000 || told[0]["n"].(float64) > 3_600_000 {
		t.Errorf("told %v", told)
	}
}

// TestLockRemoved: a lock whose file was removed keeps nobody out, so each
// process takes the one that has the name.
func TestLockRemoved(t *testing.T) {
	dir := t.TempDir()
	one, two := openAt(t, dir), openAt(t, dir)
	record(t, one, "1")
	must(t, os.Remove(filepath.Join(dir, lockName)))
	record(t, two, "2")
	must(t, one.acquire())
	if held, err := two.tryLock(filepath.Join(dir, lockName)); held || err != nil {
		t.Errorf("two processes hold the lock: %v, %v", held, err)
	}
	unlockFile(one.lock)
}

// TestStateGone: a log is never made again where the state directory, and its
// keys with it, are gone.
func TestStateGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	l := openAt(t, dir)
	record(t, l, "1")
	must(t, os.RemoveAll(dir))
	if err := l.Record(event("a"), true); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Errorf("recorded: %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there again: %v", err)
	}
}
