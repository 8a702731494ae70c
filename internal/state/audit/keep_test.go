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
	"sync"
	"testing"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/state/audit/verify"
)

// TestRotation: several processes rotate one log, and it stays one tree.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range 4 {
		l := openWith(t, dir, Options{SegmentSize: 4 << 10})
		for w := range 4 {
			wg.Go(func() {
				for i := range 50 {
					if err := l.Record(named("f", fmt.Sprintf("%d.%d.%d", p, w, i)), i%3 != 0); err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := l.Anchor(); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	seen := map[string]int{}
	for _, c := range corrs(all(t, dir)) {
		seen[c]++
	}
	if len(seen) != 800 {
		t.Errorf("%d records of 800", len(seen))
	}
	r := sound(t, dir)
	if r.Segments < 20 || r.Records != 800 {
		t.Errorf("%d segments, %d records", r.Segments, r.Records)
	}
}

// TestOrder: what one writer records stays in its order, synced or not.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	var want []string
	for i := range 100 {
		must(t, l.Record(named("f", fmt.Sprint(i)), i%7 == 0))
		want = append(want, fmt.Sprint(i))
	}
	must(t, l.Close())
	if got := corrs(all(t, dir)); !slices.Equal(got, want) {
		t.Errorf("order %v", got)
	}
}

// TestSegmentTime: a quiet log begins a new segment each day.
func TestSegmentTime(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	now := time.Now()
	l.wall = func() time.Time { return now }
	for range 3 {
		record(t, l, "a")
		record(t, l, "b")
		now = now.Add(segmentTime + time.Second)
	}
	must(t, l.Close())
	if r := sound(t, dir); r.Segments != 3 || r.Records != 6 {
		t.Errorf("%d segments, %d records", r.Segments, r.Records)
	}
}

// grown is a log of several segments, the older ones ended before now.
func grown(t *testing.T) (dir string, l *Log, anchor string) {
	t.Helper()
	dir = t.TempDir()
	l = openWith(t, dir, Options{SegmentSize: 2 << 10})
	for i := range 30 {
		record(t, l, fmt.Sprint(i))
		if i == 4 {
			var err error
			anchor, err = l.Anchor()
			must(t, err)
		}
	}
	_, err := l.Anchor()
	must(t, err)
	return dir, l, anchor
}

// TestPrune: lines go, their hashes stay, and checkpoints and anchors of any
// age can still be checked.
func TestPrune(t *testing.T) {
	dir, l, anchor := grown(t)
	before := sound(t, dir)
	files := snapshot(t, dir)
	dry, err := l.Prune(0, true)
	must(t, err)
	if got := snapshot(t, dir); got != files {
		t.Fatal("a dry run changed something")
	}
	if none, err := l.Prune(time.Hour, false); err != nil || len(none) != 0 {
		t.Fatalf("pruned %v, %v although nothing is old", none, err)
	}
	done, err := l.Prune(0, false)
	must(t, err)
	if !slices.Equal(dry, done) || len(done) < before.Segments-1 {
		t.Errorf("a dry run says %v, %v was done", dry, done)
	}
	var gone int64
	for _, p := range done {
		gone += p.Records
		_, err := os.Lstat(segment.Path(filepath.Join(dir, segmentsDir), p.Number, segment.Lines))
		if !errors.Is(err, fs.ErrNotExist) || p.Bytes < 1000 {
			t.Errorf("%+v: %v", p, err)
		}
	}
	told := find(all(t, dir), Pruned)
	if len(told) != len(done) || gone == 0 {
		t.Errorf("%d events for %d segments", len(told), len(done))
	}
	after := sound(t, dir)
	if want := before.Records + int64(len(told)); after.Records != want {
		t.Errorf("%d records, want %d", after.Records, want)
	}
	checkAnchor(t, dir, anchor, true)
	flip(t, segment.Path(filepath.Join(dir, segmentsDir), 1, segment.Hashes), 33)
	checkAnchor(t, dir, anchor, false)
}

func checkAnchor(t *testing.T, dir, note string, good bool) {
	t.Helper()
	a, err := seal.Peek(note)
	must(t, err)
	line, err := VerifierLine(dir)
	must(t, err)
	v, err := seal.ParseVerifier(line)
	must(t, err)
	r, err := verify.Check(context.Background(), verify.Options{Dir: filepath.Join(dir, segmentsDir), Verifier: v, Anchor: &a})
	must(t, err)
	if (len(r.Problems) == 0) != good {
		t.Errorf("with the anchor: %+v", r.Problems)
	}
}

// TestPruneKeepsEvidence: a segment that was changed is not pruned.
func TestPruneKeepsEvidence(t *testing.T) {
	dir, l, _ := grown(t)
	path := segment.Path(filepath.Join(dir, segmentsDir), 2, segment.Lines)
	data, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Replace(data, []byte("codex"), []byte("someo"), 1), 0o600))
	done, err := l.Prune(0, false)
	if fault.CodeOf(err) != fault.AuditBroken || len(done) != 1 {
		t.Errorf("pruned %v, %v", done, err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

// TestRetention: what is older than Keep goes by itself.
func TestRetention(t *testing.T) {
	dir, l, _ := grown(t)
	must(t, l.Close())
	next := openWith(t, dir, Options{Keep: time.Millisecond})
	time.Sleep(2 * time.Millisecond)
	record(t, next, "more")
	next.tick()
	must(t, next.Close())
	files, err := segment.List(filepath.Join(dir, segmentsDir))
	must(t, err)
	for _, f := range files[:len(files)-1] {
		if !f.Pruned {
			t.Errorf("%s is still there", f.Path)
		}
	}
	sound(t, dir)
}

func outcome(corr string, phase core.Phase) core.Event {
	e := named("a.txt", corr)
	e.Phase = phase
	return e
}

// TestUnfinished: intents without an outcome are known, over segments,
// processes and with the memory of them lost.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	l := openWith(t, dir, Options{SegmentSize: 2 << 10})
	intent := outcome("open", core.PhaseIntent)
	intent.Was = "v1:2:3"
	must(t, l.Record(intent, true))
	for i := range 20 {
		corr := fmt.Sprint(i)
		must(t, l.Record(outcome(corr, core.PhaseIntent), true))
		must(t, l.Record(outcome(corr, core.PhaseOutcome), false))
	}
	must(t, l.Record(outcome("late", core.PhaseIntent), true))
	want := func(l *Log, want ...string) []Pending {
		t.Helper()
		all, err := l.Unfinished()
		must(t, err)
		var got []string
		for _, p := range all {
			got = append(got, p.Corr)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("unfinished %q, want %q", got, want)
		}
		return all
	}
	next := openAt(t, dir)
	all := want(next, "late", "open")
	for _, p := range all {
		if p.Corr == "open" && (p.Was != "v1:2:3" || p.Resource != "project://a.txt" || p.Op != "fs.write" || p.Agent != "codex") {
			t.Errorf("%+v", p)
		}
	}
	must(t, next.Record(outcome("open", core.PhaseUnknown), true))
	want(l, "late")
	failed := outcome("late", core.PhaseOutcome)
	failed.Code = fault.IOFailed.String()
	must(t, l.Record(failed, true))
	want(next)
}

// TestKept: what can't be told again is kept over a time in which nothing can
// be written, and calls that changed nothing are counted.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	record(t, l, "intent")
	unblock := block(t, dir)
	read := outcome("read", core.PhaseDecision)
	_ = l.Record(outcome("intent", core.PhaseOutcome), false)
	for range 3 {
		_ = l.Record(read, false)
	}
	if err := l.Record(named("x", "refused"), true); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Fatalf("recorded: %v", err)
	}
	if err := l.Record(read, false); fault.CodeOf(err) != fault.AuditUnwritable {
		t.Errorf("a read is not told: %v", err)
	}
	unblock()
	must(t, l.Record(named("x", "after"), true))
	must(t, l.Record(read, false))
	must(t, l.Close())
	records := all(t, dir)
	if got := corrs(records); !slices.Equal(got, []string{"intent", "intent", "read", "after", "read"}) {
		t.Errorf("records %q", got)
	}
	if told := find(records, ReadsUnrecorded); len(told) != 1 || told[0]["n"] != 3.0 {
		t.Errorf("told %v", told)
	}
	sound(t, dir)
}

// block makes the log unwritable: its lock is a folder.
func block(t *testing.T, dir string) (unblock func()) {
	t.Helper()
	path := filepath.Join(dir, lockName)
	must(t, os.Rename(path, path+".away"))
	must(t, os.Mkdir(path, 0o700))
	return func() {
		must(t, os.Remove(path))
		must(t, os.Rename(path+".away", path))
	}
}

// TestMostKept bounds what a log that can't be written holds in memory.
func TestMostKept(t *testing.T) {
	dir := t.TempDir()
	l := openAt(t, dir)
	record(t, l, "1")
	defer block(t, dir)()
	e := bulky("x")
	e.Phase = core.PhaseOutcome
	for range 1000 {
		_ = l.Record(e, false)
	}
	if n := len(l.pending.buf); n > keepAtMost+3*len(e.Policy) {
		t.Errorf("%d bytes are kept", n)
	}
	if l.lost == 0 {
		t.Error("what was given up is not counted")
	}
}
