// SPDX-License-Identifier: Apache-2.0

package undo

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/pathguard"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openLog(t *testing.T, dir string, o Options, alive ...string) *Log {
	t.Helper()
	l := Open(dir, o, func() (map[string]bool, error) {
		m := map[string]bool{}
		for _, p := range alive {
			m[p] = true
		}
		return m, nil
	})
	t.Cleanup(l.Close)
	return l
}

// image makes one as a change of that age would have.
func image(t *testing.T, l *Log, id string, age time.Duration, size int) string {
	t.Helper()
	_, err := l.images()
	must(t, err)
	path := l.join(imagesName, stamp(time.Now().Add(-age))+"-"+id+".0")
	must(t, os.WriteFile(path, make([]byte, size), 0o600))
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestRoom: the oldest are out first, the newest of a live process never, and
// a dry question changes nothing.
func TestRoom(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{Total: 100, Keep: time.Hour}, "live")
	oldest := image(t, l, "live-1", 4*time.Minute, 30)
	dead := image(t, l, "dead-1", 3*time.Minute, 30)
	newest := image(t, l, "live-2", 2*time.Minute, 30)
	for _, dry := range []bool{true, false} {
		if why, err := l.reserve(claim{owner: "", need: counters{30, 1}, dry: dry}); why != "" || err != nil {
			t.Fatalf("%q %v", why, err)
		}
		if exists(oldest) != dry || !exists(dead) || !exists(newest) {
			t.Errorf("dry %t: %t %t %t", dry, exists(oldest), exists(dead), exists(newest))
		}
	}
	image(t, l, "live-0", time.Hour, 30) // what was reserved: it is another's newest no more
	if why, err := l.reserve(claim{owner: "", need: counters{71, 1}, dry: false}); !strings.Contains(why, "undo.total (100 bytes)") || err != nil {
		t.Errorf("%q %v", why, err)
	}
	if !exists(newest) {
		t.Error("the newest of a live process is gone")
	}
	l = openLog(t, l.dir, Options{Total: 100})
	if why, err := l.reserve(claim{owner: "", need: counters{100, 1}, dry: false}); why != "" || err != nil || exists(newest) {
		t.Errorf("of no live process: %q %v %t", why, err, exists(newest))
	}
}

// TestRoomEntries: many small ones are bounded too.
func TestRoomEntries(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{Total: 1 << 20, MaxImages: 40})
	_, err := l.images()
	must(t, err)
	for i := range 100 {
		if why, err := l.reserve(claim{owner: "", need: counters{1, 1}, dry: false}); why != "" || err != nil {
			t.Fatalf("%d: %q %v", i, why, err)
		}
		image(t, l, fmt.Sprintf("p-%d", i), time.Hour-time.Duration(i)*time.Second, 1)
		if found, _ := os.ReadDir(l.join(imagesName)); len(found) > 40 {
			t.Fatalf("%d images", len(found))
		}
	}
}

// TestRoomShared: processes together keep to one bound.
func TestRoomShared(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range 4 {
		l := openLog(t, dir, Options{Total: 1000, Keep: time.Hour})
		_, err := l.images()
		must(t, err)
		wg.Go(func() {
			for i := range 50 {
				why, err := l.reserve(claim{owner: "", need: counters{20, 1}, dry: false})
				if why != "" || err != nil {
					t.Errorf("%q %v", why, err)
					return
				}
				image(t, l, fmt.Sprintf("p%d-%d", p, i), 0, 20)
			}
		})
	}
	wg.Wait()
	found, err := os.ReadDir(filepath.Join(dir, "undo", imagesName))
	must(t, err)
	// One that was counted before it was made may have been overlooked by a count.
	if len(found) > 50+4 {
		t.Errorf("%d images of 20 bytes", len(found))
	}
}

// TestTidy: what is too old goes at a start, whether or not a journal knows it,
// and nothing else; where somebody only looks, nothing goes.
func TestTidy(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{Total: 1000, Keep: 14 * 24 * time.Hour})
	young := image(t, l, "p-1", time.Minute, 1)
	orphan := image(t, l, "p-2", 2*time.Hour, 1)
	old := image(t, l, "p-3", 15*24*time.Hour, 1)
	known := image(t, l, "p-4", 2*time.Hour, 1)
	step := Step{Place: Place{"project", "/nowhere", "f"}, Do: Remove, How: Moved, Image: filepath.Base(known)}
	_, err := l.write(appendLine(nil, line{Kind: kindBegin, ID: "p-4", Time: time.Now().Add(-2 * time.Hour), Steps: []Step{step}}))
	must(t, err)
	oldJournal := l.join("0000000000000000-1" + journalSuffix)
	must(t, os.WriteFile(oldJournal, nil, 0o600))
	must(t, os.Chtimes(oldJournal, time.Time{}, time.Now().Add(-15*24*time.Hour)))
	all := func() (there []bool) {
		for _, path := range []string{young, orphan, known, old, oldJournal} {
			there = append(there, exists(path))
		}
		return there
	}
	away := func(string, string, []string) (pathguard.Name, bool) { return pathguard.Name{}, false }
	must(t, l.Settle(t.Context(), away))
	if there := all(); slices.Contains(there, false) {
		t.Error("who looks:", there)
	}
	must(t, l.Recover(t.Context(), away))
	if there := all(); !slices.Equal(there, []bool{true, true, true, false, false}) {
		t.Error("a start:", there)
	}
	if have, ok := l.readRoom(); !ok || have != (counters{3, 3}) {
		t.Errorf("%+v %t", have, ok)
	}
	x, err := l.Read()
	must(t, err)
	if e := x.Find("p-4").Steps[0]; e.State != Prepared {
		t.Errorf("%+v", e)
	}
}

// TestNothingMade: a log that no change went through leaves no trace.
func TestNothingMade(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir, Options{})
	must(t, l.Recover(t.Context(), nil))
	x, err := l.Read()
	must(t, err)
	if len(x.Txns) != 0 || exists(filepath.Join(dir, "undo")) {
		t.Error("something was made")
	}
}

// TestRotate: a journal that is large is followed by another, and both are read.
func TestRotate(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{Journals: rotateParts * 4 << 20})
	step := Step{Place: Place{"project", "/nowhere", strings.Repeat("f", 1<<20)}, Do: Create}
	for i := range 6 {
		_, err := l.write(appendLine(nil, line{Kind: kindBegin, ID: fmt.Sprintf("p-%d", i), Time: time.Now(), Steps: []Step{step}}))
		must(t, err)
	}
	names, _, err := journals(l.join())
	must(t, err)
	x, err := l.Read()
	must(t, err)
	if len(names) != 2 || len(x.Txns) != 6 {
		t.Errorf("%d journals, %d changes", len(names), len(x.Txns))
	}
}

// TestDamaged: a line that was cut or changed is counted, and tells nothing.
func TestDamaged(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{})
	step := Step{Place: Place{"project", "/nowhere", "f"}, Do: Create}
	f, err := l.write(appendLine(nil, line{Kind: kindBegin, ID: "p-1", Steps: []Step{step}}))
	must(t, err)
	whole, err := os.ReadFile(f.Name())
	must(t, err)
	for i := range len(whole) - 1 {
		changed := append([]byte{}, whole...)
		changed[i] ^= 1
		for name, text := range map[string][]byte{"cut": whole[:i+1], "changed": changed} {
			if name == "cut" && i == len(whole)-2 {
				continue // only the end of the line is missing
			}
			must(t, os.WriteFile(f.Name(), text, 0o600))
			x, err := l.Read()
			must(t, err)
			if x.Damaged == 0 || len(x.Txns) != 0 {
				t.Fatalf("%s at %d: %d damaged, %d changes", name, i, x.Damaged, len(x.Txns))
			}
		}
	}
	for _, bad := range []Step{
		{Place: step.Place, Do: Replace, Image: "../../keys/log"},
		{Place: step.Place, Do: Remove, Temp: "a/b"},
		{Place: step.Place, Do: "chmod"},
		{Do: Create},
		{Place: step.Place, Do: Rename},
		{Place: step.Place, Do: Create, Image: ".."},
		{Place: step.Place, Do: Append, Was: Facts{Size: -1}},
		{Place: step.Place, Do: Replace, Held: Facts{Size: -1}},
		{Place: step.Place, Do: Create, Of: &Ref{"p\x1b[2J", 0}},
	} {
		if _, ok := parseLine(strip(appendLine(nil, line{Kind: kindBegin, ID: "p-1", Steps: []Step{bad}}))); ok {
			t.Errorf("%+v passes", bad)
		}
	}
}

// TestForgedLine: what no process writes is not read, and no id or operation
// draws on a terminal.
func TestForgedLine(t *testing.T) {
	for name, bad := range map[string]line{
		"id":        {Kind: kindBegin, ID: "p\x1b[2J"},
		"long id":   {Kind: kindBegin, ID: strings.Repeat("p", maxWord+1)},
		"corr":      {Kind: kindEnd, ID: "p-1", Corr: "\u202egnp"},
		"operation": {Kind: kindBegin, ID: "p-1", Op: "fs.write\n"},
		"size":      {Kind: kindEnd, ID: "p-1", Done: []Done{{Now: Facts{Size: -1}}}},
	} {
		if _, ok := parseLine(strip(appendLine(nil, bad))); ok {
			t.Errorf("%s passes", name)
		}
	}
	l := openLog(t, t.TempDir(), Options{})
	for i, s := range []Step{{Do: Append, Was: Facts{Size: 1000}}, {Do: Truncate, Was: Facts{Size: 3}}} {
		s.Place = Place{"project", "/nowhere", "f"}
		id := fmt.Sprintf("p-%d", i)
		lines := appendLine(nil, line{Kind: kindBegin, ID: id, Steps: []Step{s}})
		_, err := l.write(appendLine(lines, line{Kind: kindEnd, ID: id, State: Committed, Done: []Done{{Now: Facts{Ino: 1, Size: 10}}}}))
		must(t, err)
	}
	x, err := l.Read()
	must(t, err)
	for _, txn := range x.Txns {
		if e := txn.Steps[0]; !none(e.Now) {
			t.Errorf("%s left %+v", e.Do, e.Now)
		}
	}
}

func strip(b []byte) []byte { return b[:len(b)-1] }

func TestSize(t *testing.T) {
	got := []string{size(0), size(1023), size(1 << 10), size(1536), size(1 << 20), size(64 << 20), size(1 << 30), size(3 << 29)}
	want := []string{"0 bytes", "1023 bytes", "1KiB", "1.5KiB", "1MiB", "64MiB", "1GiB", "1.5GiB"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// FuzzJournal: whatever a journal holds is read without a panic, and what is
// written is read as it was.
func FuzzJournal(f *testing.F) {
	step := Step{Place: Place{"project", "/nowhere", "f"}, Do: Replace, How: Moved, Image: "i"}
	f.Add(appendLine(nil, line{Kind: kindBegin, ID: "p-1", Steps: []Step{step}}))
	f.Add(appendLine(appendLine(nil, line{Kind: kindBegin, ID: "p-1", Steps: []Step{step}}), line{Kind: kindEnd, ID: "p-1", State: Committed, Done: []Done{{}}}))
	f.Add(appendLine(nil, line{Kind: kindEnd, ID: "p-1", First: 3, State: Attention, N: -1}))
	of := step
	of.Of = &Ref{"p-1", 0}
	f.Add(appendLine(appendLine(nil, line{Kind: kindBegin, ID: "p-1", Steps: []Step{of}}), line{Kind: kindEnd, ID: "p-1", State: Committed}))
	f.Add([]byte("00000000 {}\n"))
	dir := f.TempDir()
	must(f, os.MkdirAll(filepath.Join(dir, dirName), 0o700))
	name := filepath.Join(dir, dirName, "0000000000000001-1"+journalSuffix)
	f.Fuzz(func(t *testing.T, text []byte) {
		must(t, os.WriteFile(name, text, 0o600))
		x, err := Read(dir)
		must(t, err)
		for _, txn := range x.Txns {
			for _, e := range txn.Steps {
				_ = e.Current()
				x.Canonical(e.Was)
			}
		}
		for b := range strings.Lines(string(text)) {
			l, ok := parseLine([]byte(strings.TrimSuffix(b, "\n")))
			if !ok {
				continue
			}
			again, ok := parseLine(strip(appendLine(nil, l)))
			if d := cmp.Diff(l, again); !ok || d != "" {
				t.Errorf("%t %s", ok, d)
			}
		}
	})
}

// owned makes an image of an agent, of one name.
func owned(t *testing.T, l *Log, agent, id, name string, age time.Duration, size int) string {
	t.Helper()
	path := image(t, l, id, age, size)
	to := path + "." + (&Change{Agent: agent}).owner() + "." + digest(name)
	must(t, os.Rename(path, to))
	return to
}

// TestRoomOfOthers: an agent that fills the room puts out its own images, the
// middle of a run first, and no young one of others; and one that had all of it
// gives half to a newcomer.
func TestRoomOfOthers(t *testing.T) {
	l := openLog(t, t.TempDir(), Options{Total: 100, Keep: 30 * 24 * time.Hour}, "a")
	b := (&Change{Agent: "b"}).owner()
	victim := owned(t, l, "a", "a-1", "victim", time.Hour, 20)
	first := owned(t, l, "b", "b-1", "f", 50*time.Minute, 10)
	middle := owned(t, l, "b", "b-2", "f", 40*time.Minute, 20)
	last := owned(t, l, "b", "b-3", "f", 30*time.Minute, 10)
	aged := owned(t, l, "c", "c-1", "g", 25*time.Hour, 40)
	if why, err := l.reserve(claim{owner: b, need: counters{20, 1}, dry: false}); why != "" || err != nil {
		t.Fatalf("%q %v", why, err)
	}
	if !exists(victim) || !exists(first) || exists(middle) || !exists(last) || !exists(aged) {
		t.Error(exists(victim), exists(first), exists(middle), exists(last), exists(aged))
	}
	if why, err := l.reserve(claim{owner: b, need: counters{60, 1}, dry: false}); why == "" || err != nil || !exists(victim) {
		t.Errorf("more than its half: %q %v", why, err)
	}
	l = openLog(t, t.TempDir(), Options{Total: 100}, "a")
	all := owned(t, l, "a", "a-1", "f", time.Hour, 50)
	rest := owned(t, l, "a", "a-2", "g", time.Minute, 50)
	if why, err := l.reserve(claim{owner: b, need: counters{20, 1}, dry: false}); why != "" || err != nil || exists(all) || !exists(rest) {
		t.Errorf("a newcomer: %q %v %t %t", why, err, exists(all), exists(rest))
	}
}
