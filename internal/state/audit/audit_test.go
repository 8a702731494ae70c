// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postern-gate/postern/core"
	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/secret"
)

func opened(t *testing.T) (*Log, string) {
	t.Helper()
	dir := t.TempDir()
	return openAt(t, dir), filepath.Join(dir, "audit", "000001.jsonl")
}

func openAt(t *testing.T, dir string) *Log {
	t.Helper()
	return openWith(t, dir, Options{})
}

func openWith(t *testing.T, dir string, o Options) *Log {
	t.Helper()
	if state.CheckVersion(dir) != nil { // others may be reading it
		must(t, replaceFile(filepath.Join(dir, "version"), []byte(state.Version)))
	}
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func lines(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	scan := bufio.NewScanner(bytes.NewReader(data))
	for scan.Scan() {
		if seal.KindOf(scan.Bytes()) != seal.KindLeaf {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(scan.Bytes(), &m); err != nil {
			t.Fatalf("line %q: %v", scan.Text(), err)
		}
		all = append(all, m)
	}
	return all
}

// bulky is an event whose line has 5,000 bytes more, as a long name no longer
// has.
func bulky(corr string) core.Event {
	e := named("f", corr)
	e.Policy = strings.Repeat("p", 5000)
	return e
}

func event(name string) core.Event {
	return core.Event{
		Time: time.Date(2026, 11, 30, 1, 2, 3, 4000, time.UTC), Phase: core.PhaseIntent,
		Subject: core.Subject{Agent: "codex", Session: "s1", Source: "serve", Level: core.LevelSDK},
		Action:  core.FSWrite, Resource: core.File("project", name), Corr: "c-1", Policy: "p-1",
		Verdict: core.Verdict{Decision: core.Allow, Reason: core.Reason{
			Decision: core.Allow, Step: core.StepRule, Rule: "allow fs.write", Pos: core.Position{File: "policy.yaml", Line: 7, Column: 3},
		}},
	}
}

// TestFolder: a folder is told as long as names are, in printable ASCII, and the
// beginning of a long one.
func TestFolder(t *testing.T) {
	long := "/" + strings.Repeat("d", 600)
	for _, tt := range []struct {
		hashed       bool
		folder, want string
	}{
		{false, "/home/u/p", `,"folder":"/home/u/p"}`},
		{false, "/\u00e4 \"\u202e", `,"folder":"/\u00e4 \"\u202e"}`},
		{false, long, `,"folder":"/` + strings.Repeat("d", longName-65) + "...#"},
		{false, "", `,"resource":"project://a"}`},
		{true, "/home/u/p", `"}`},
	} {
		e := event("a")
		e.Folder = tt.folder
		line := string(encoder{key: make([]byte, 32), hashed: tt.hashed}.append(nil, e))
		if !strings.Contains(line, tt.want) || tt.hashed && strings.Contains(line, "/home") {
			t.Errorf("%s", line)
		}
	}
}

// TestFields pins the names that every record has; a field that goes missing
// fails here.
func TestFields(t *testing.T) {
	l, file := opened(t)
	if err := l.Record(event("a.txt"), true); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"t": "2026-11-30T01:02:03.000004Z", "agent": "codex", "op": "fs.write", "decision": "allow",
		"reason": "allow fs.write (policy.yaml:7:3): the general rule", "source": "serve", "session": "s1",
		"corr": "c-1", "policy": "p-1", "level": "sdk", "event": "intent", "resource": "project://a.txt",
	}
	got := lines(t, file)[0]
	if len(got) != len(want) {
		t.Errorf("%d fields, want %d: %v", len(got), len(want), got)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %v, want %q", k, got[k], v)
		}
	}
}

// TestPrivateNames: a sensitive or outside name is a class and a hash that is
// the same each time and differs between names.
func TestPrivateNames(t *testing.T) {
	l, file := opened(t)
	secret := event("deploy/.env")
	secret.Class = "dotenv"
	outside := event("")
	outside.Resource = core.Resource{Name: "/home/u/private"}
	for _, e := range []core.Event{secret, secret, outside} {
		if err := l.Record(e, true); err != nil {
			t.Fatal(err)
		}
	}
	got := lines(t, file)
	name := func(i int) string { return fmt.Sprint(got[i]["resource"]) }
	if !strings.HasPrefix(name(0), "dotenv:") || name(0) != name(1) {
		t.Errorf("sensitive names %q, %q", name(0), name(1))
	}
	if !strings.HasPrefix(name(2), "outside:") || name(2)[8:] == name(0)[7:] {
		t.Errorf("outside name %q", name(2))
	}
	data, _ := os.ReadFile(file)
	for _, word := range []string{"deploy", "private", "/home"} {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("the log holds %q", word)
		}
	}
}

// TestLongNames: what an agent chooses is cut, and stays apart from others
// that begin the same.
func TestLongNames(t *testing.T) {
	l, file := opened(t)
	long := strings.Repeat("\u00e9", 2000)
	for _, name := range []string{long + "a", long + "b"} {
		if err := l.Record(event(name), true); err != nil {
			t.Fatal(err)
		}
	}
	got := lines(t, file)
	one, two := fmt.Sprint(got[0]["resource"]), fmt.Sprint(got[1]["resource"])
	if one == two || len(one) > longName || !strings.HasPrefix(one, "project://\u00e9") || !strings.Contains(one, "...#") {
		t.Errorf("%q, %q", one, two)
	}
}

// TestOneLineAnEvent: no byte of a name can forge or break a line.
func TestOneLineAnEvent(t *testing.T) {
	l, file := opened(t)
	hostile := "a\n{\"t\":\"forged\"}\n\x1b[2K\u202e\x00\xff\"\\ é 😀"
	if err := l.Record(event(hostile), true); err != nil {
		t.Fatal(err)
	}
	got := lines(t, file)
	if len(got) != 1 || got[0]["resource"] != "project://"+strings.ToValidUTF8(hostile, "\ufffd") {
		t.Errorf("%d lines, resource %q", len(got), got[0]["resource"])
	}
	data, _ := os.ReadFile(file)
	for _, c := range bytes.ReplaceAll(data, []byte("\n"), nil) {
		if c < 0x20 || c > 0x7e {
			t.Errorf("the line holds byte %#x", c)
		}
	}
}

// TestBuffered: an unsynced event is on disk after FlushAfter and not before;
// a synced one takes those before it along.
func TestBuffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, file := opened(t)
		if err := l.Problem(); err != nil { // makes the log
			t.Fatal(err)
		}
		if err := l.Record(event("read"), false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(FlushAfter - 1)
		synctest.Wait()
		if n := len(lines(t, file)); n != 0 {
			t.Errorf("%d lines before the time", n)
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if n := len(lines(t, file)); n != 1 {
			t.Errorf("%d lines after the time", n)
		}
		if err := errors.Join(l.Record(event("read"), false), l.Record(event("write"), true)); err != nil {
			t.Fatal(err)
		}
		if n := len(lines(t, file)); n != 3 {
			t.Errorf("%d lines after a synced one", n)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEarly: what was refused or failed is in the file at once, with what was
// read before it, and a flood of it is a write an interval.
func TestEarly(t *testing.T) {
	call := func(code fault.Code) core.Event {
		e := event("a")
		if e.Phase = core.PhaseDecision; code != fault.OK {
			e.Code = code.String()
		}
		return e
	}
	for name, tt := range map[string]struct {
		then []fault.Code
		want int
	}{
		"reads": {[]fault.Code{fault.OK, fault.OK}, 0}, "refused": {[]fault.Code{fault.OK, fault.PolicyDenied}, 2},
		"failed": {[]fault.Code{fault.PathMissing}, 1}, "a read after it": {[]fault.Code{fault.OK}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, file := opened(t)
				must(t, l.Problem()) // makes the log
				for _, code := range tt.then {
					must(t, l.Record(call(code), false))
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if n := len(lines(t, file)); n != tt.want {
					t.Errorf("%d lines, want %d", n, tt.want)
				}
				must(t, l.Close())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		l, file := opened(t)
		must(t, l.Problem())
		writes, seen := 0, 0
		for range 500 {
			must(t, l.Record(call(fault.PolicyDenied), false))
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if n := len(lines(t, file)); n != seen {
				writes, seen = writes+1, n
			}
		}
		if most := int(500 * time.Millisecond / earlyEvery); writes < most || writes > most+1 || seen < 450 {
			t.Errorf("%d lines in %d writes", seen, writes)
		}
		must(t, l.Close())
	})
}

// TestKilledWriters: four processes of four writers each record as fast as
// they can and are killed at random, 10,000 records in all. No record that was
// acknowledged is lost or doubled, and the log is sound.
func TestKilledWriters(t *testing.T) {
	if dir := os.Getenv("POSTERN_TEST_AUDIT"); dir != "" {
		writeUntilKilled(t, dir)
		return
	}
	dir := t.TempDir()
	want := int64(10_000)
	if raceDetector { // make bounds runs it whole
		want = 2_000
	}
	var total, kills atomic.Int64
	var mu sync.Mutex
	var acked []string
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for round := 0; total.Load() < want; round++ {
				ids := runWriter(t, dir, fmt.Sprintf("%d.%d", w, round), 1+rand.IntN(300))
				kills.Add(1)
				total.Add(int64(len(ids)))
				mu.Lock()
				acked = append(acked, ids...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, c := range corrs(all(t, dir)) {
		seen[c]++
	}
	for _, id := range acked {
		if seen[id] != 1 {
			t.Errorf("record %s was acknowledged and is %d times in the log", id, seen[id])
		}
	}
	last := openAt(t, dir)
	record(t, last, "last")
	must(t, last.Close())
	r := sound(t, dir)
	t.Logf("%d acknowledged, %d in the log, %d processes killed, %d torn lines, %d segments",
		len(acked), r.Records, kills.Load(), len(find(all(t, dir), TornTail)), r.Segments)
}

// runWriter kills a process when it has acknowledged so many records, while it
// writes on, and returns all that it acknowledged.
func runWriter(t *testing.T, dir, id string, until int) []string {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWriters$")
	cmd.Env = append(os.Environ(), "POSTERN_TEST_AUDIT="+dir, "POSTERN_TEST_ID="+id)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return nil
	}
	var ids []string
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		if id, ok := strings.CutPrefix(scan.Text(), "ack "); ok {
			ids = append(ids, id)
		}
		if len(ids) == until {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	return ids
}

// writeUntilKilled is the writing process.
func writeUntilKilled(t *testing.T, dir string) {
	l := openWith(t, dir, Options{SegmentSize: 256 << 10})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 1 << 20 {
				e := event(strings.Repeat("x", i%700))
				e.Corr = fmt.Sprintf("%s.%d.%d", os.Getenv("POSTERN_TEST_ID"), w, i)
				if err := l.Record(e, true); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				_, _ = os.Stdout.WriteString("ack " + e.Corr + "\n") // one write, so that it is whole
			}
		})
	}
	wg.Wait()
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "paths")
	var wg sync.WaitGroup
	keys := make([][]byte, 8)
	for i := range keys {
		wg.Add(1)
		go func() {
			defer wg.Done()
			keys[i], _ = secret.Load(path)
		}()
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != secret.Size || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x, %x", k, keys[0])
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secret.Load(path); err == nil {
		t.Error("a key of the wrong size was taken")
	}
}
