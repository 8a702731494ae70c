// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
)

// began writes down a change that ended well, of a process and an agent.
func began(t *testing.T, l *Log, id, agent string, age time.Duration, change func(*line, *line)) {
	t.Helper()
	step := Step{Place: Place{"project", "/nowhere", id}, Do: Create}
	begin := line{Kind: kindBegin, ID: id, Time: time.Now().Add(-age), Agent: agent, Steps: []Step{step}}
	end := line{Kind: kindEnd, ID: id, State: Committed, Done: []Done{{Now: Facts{Ino: 1}}}}
	change(&begin, &end)
	_, err := l.write(appendLine(nil, begin))
	must(t, err)
	if end.State != Prepared {
		_, err = l.write(appendLine(nil, end))
		must(t, err)
	}
}

func plainly(*line, *line) {}

// withImage makes it one that displaced something.
func withImage(t *testing.T, l *Log) func(*line, *line) {
	return func(begin, _ *line) {
		s := &begin.Steps[0]
		s.Do, s.How, s.Image = Remove, Moved, stamp(begin.Time)+"-"+begin.ID+".0"
		must(t, os.WriteFile(l.join(imagesName, s.Image), []byte("x"), 0o600))
	}
}

func lost(begin, _ *line) { begin.Lost = "too large" }

func journalBytes(t *testing.T, l *Log) int64 {
	t.Helper()
	names, _, err := journals(l.join())
	must(t, err)
	return total(names)
}

func kept1(t *testing.T, l *Log, prefix string) (n int) {
	t.Helper()
	x, err := l.Read()
	must(t, err)
	for _, txn := range x.Txns {
		if strings.HasPrefix(txn.ID, prefix) {
			n++
		}
	}
	return n
}

// TestJournalsBounded: an agent that makes the journals grow loses its own oldest
// changes, and what can't be undone any more first; nobody else loses anything,
// nor does any process its newest change, and no image loses its lines.
func TestJournalsBounded(t *testing.T) {
	const bound = 256 << 10
	l := openLog(t, t.TempDir(), Options{Journals: bound, Keep: 30 * 24 * time.Hour, Total: 1 << 20}, "live", "idle")
	_, err := l.images()
	must(t, err)
	began(t, l, "victim-1", "a", 50*time.Hour, withImage(t, l))
	began(t, l, "victim-2", "a", 49*time.Hour, plainly)
	began(t, l, "idle-1", "b", 48*time.Hour, plainly)
	began(t, l, "open-1", "b", 47*time.Hour, func(_, end *line) { end.State = Prepared })
	began(t, l, "look-1", "b", 46*time.Hour, func(_, end *line) { end.State, end.Done = Attention, nil })
	for i := range 200 {
		began(t, l, fmt.Sprintf("lost-%d", i), "a", 2*time.Hour, lost)
	}
	for i := range 300 {
		began(t, l, fmt.Sprintf("image-%d", i), "b", 45*time.Hour-time.Duration(i)*time.Second, withImage(t, l))
	}
	most := int64(0)
	for i := range 3000 {
		began(t, l, fmt.Sprintf("live-%d", i), "b", time.Hour-time.Duration(i)*100*time.Millisecond, plainly)
		if i%100 == 0 {
			most = max(most, journalBytes(t, l))
		}
	}
	if most > bound*9/8 || most < bound/2 {
		t.Errorf("the journals grew to %d, bound %d", most, bound)
	}
	got := map[string]int{}
	for _, p := range []string{"victim", "idle", "open", "look", "lost", "image"} {
		got[p] = kept1(t, l, p)
	}
	want := map[string]int{"victim": 2, "idle": 1, "open": 1, "look": 1, "lost": 0, "image": 0}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	x, err := l.Read()
	must(t, err)
	if x.Damaged > 0 || x.Find("live-2999") == nil || x.Find("live-2900") == nil || x.Find("live-0") != nil {
		t.Errorf("%d damaged, not the newest of %d", x.Damaged, kept1(t, l, "live"))
	}
	known := map[string]bool{}
	for _, txn := range x.Txns {
		for _, e := range txn.Steps {
			known[e.Image] = true
			if e.Image != "" && !exists(l.join(imagesName, e.Image)) {
				t.Errorf("%s has lost its image", txn.ID)
			}
		}
	}
	found, err := os.ReadDir(l.join(imagesName))
	must(t, err)
	for _, f := range found {
		if !known[f.Name()] {
			t.Errorf("the image %s has lost its lines", f.Name())
		}
	}
}

// TestJournalsInUse: what a process still writes to stays as it is, whoever makes
// the journals smaller; once it let go, they can.
func TestJournalsInUse(t *testing.T) {
	dir := t.TempDir()
	writer := openLog(t, dir, Options{Journals: 64 << 20, Keep: time.Hour})
	for i := range 100 {
		began(t, writer, fmt.Sprintf("w-%d", i), "a", time.Minute, lost)
	}
	other := openLog(t, dir, Options{Journals: 4 << 10, Keep: time.Hour})
	began(t, other, "o-1", "b", 0, plainly)
	if n := kept1(t, other, "w"); n != 100 {
		t.Fatalf("%d are left of what is written", n)
	}
	writer.Close()
	other.bound()
	if n := kept1(t, other, "w"); n > 20 || journalBytes(t, other) > 4<<10 {
		t.Errorf("%d are left, %d bytes", n, journalBytes(t, other))
	}
}

// halfWay makes so many journals smaller.
func halfWay(t *testing.T, l *Log, steps int) {
	t.Helper()
	names, _, err := journals(l.join())
	must(t, err)
	x, err := l.Read()
	must(t, err)
	r := rewriting{l: l, index: x, begins: map[string]int{}}
	for _, txn := range x.Txns {
		r.begins[txn.ID] = txn.begins
	}
	for round := range steps {
		must(t, r.file(names[min(round, 1)]))
		if round == 1 { // the next time, what is left of the first
			x, err = l.Read()
			must(t, err)
			r = rewriting{l: l, index: x, begins: map[string]int{}}
			names[1] = names[0]
		}
	}
}

// TestJournalsHalfWay: whatever part of the journals was made smaller when a
// crash came, no change looks as if it never ended, and the rest is as it was.
// The end of one is in an older journal than its begin.
func TestJournalsHalfWay(t *testing.T) {
	for steps := range 4 {
		dir := t.TempDir()
		old := openLog(t, dir, Options{Journals: 64 << 20, Keep: time.Hour})
		began(t, old, "first-1", "a", time.Minute, plainly)
		crashed := openLog(t, dir, Options{Journals: 64 << 20, Keep: time.Hour})
		began(t, crashed, "crashed-1", "a", 50*time.Second, func(_, end *line) { end.State = Prepared })
		began(t, crashed, "crashed-2", "a", 40*time.Second, plainly)
		_, err := old.write(appendLine(nil, line{Kind: kindEnd, ID: "crashed-1", State: Committed}))
		must(t, err)
		old.Close()
		crashed.Close()
		l := openLog(t, dir, Options{Journals: 1, Keep: time.Hour})
		halfWay(t, l, steps)
		x, err := l.Read()
		must(t, err)
		for _, txn := range x.Txns {
			if txn.Steps[0].State != Committed {
				t.Errorf("after %d: %s is %s", steps, txn.ID, txn.Steps[0].State)
			}
		}
		if steps == 3 && len(x.Txns) > 0 {
			t.Errorf("%d changes are left", len(x.Txns))
		}
	}
}

// BenchmarkRead reads the journals of as many changes as there may be images.
func BenchmarkRead(b *testing.B) {
	l := Open(b.TempDir(), Options{}, func() (map[string]bool, error) { return nil, nil })
	b.Cleanup(l.Close)
	for i := range MaxImages {
		id := fmt.Sprintf("0123456789ab-%d", i)
		was := Facts{Ino: uint64(i), Mode: 0o100644, Size: 100, MTime: time.Now().UnixNano(), CTime: time.Now().UnixNano()}
		s := Step{Place: Place{"project", "/home/somebody/project", "src/internal/file.go"}, Do: Replace, How: Moved, Image: id, Was: was, Temp: ".postern-tmp-0123456789abcdef"}
		text := appendLine(nil, line{Kind: kindBegin, ID: id, Time: time.Now(), Agent: "agent", Session: "0123456789ab", Source: "mcp-stdio", Op: "fs.write", Steps: []Step{s}})
		text = appendLine(text, line{Kind: kindFile, ID: id, File: 1, Filled: was})
		text = appendLine(text, line{Kind: kindEnd, ID: id, State: Committed, Done: []Done{{Now: was, Image: was}}})
		_, err := l.write(text)
		must(b, err)
	}
	b.ResetTimer()
	for b.Loop() {
		x, err := l.Read()
		must(b, err)
		if len(x.Txns) != MaxImages {
			b.Fatal(len(x.Txns))
		}
	}
}
