// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
	"github.com/postern-gate/postern/internal/testenv"
)

var update = flag.Bool("update", false, "write vectors/audit")

const (
	vectorsDir = "../../../../vectors/audit"
	script     = "../../../../examples/verify-log.mjs"
)

// vector is a line of vectors/audit/cases.jsonl.
type vector struct {
	ID       string   `json:"id"`
	About    string   `json:"about"`
	Log      string   `json:"log"` // a folder beside the file; one that is not there is a log that is gone
	Verifier string   `json:"verifier"`
	Anchor   string   `json:"anchor,omitempty"` // a note
	Exit     int      `json:"exit"`
	Code     string   `json:"code,omitempty"`
	Problems []string `json:"problems,omitempty"` // kind and place
	Notes    []string `json:"notes,omitempty"`
	Records  int64    `json:"records"`
	Sealed   int64    `json:"sealed"`
	Root     string   `json:"root,omitempty"` // of the newest checkpoint
}

// TestVectors: the committed logs, broken in each main way, with the findings.
func TestVectors(t *testing.T) {
	if *update {
		writeVectors(t)
	}
	all := readVectors(t)
	if len(all) < 15 {
		t.Errorf("only %d cases", len(all))
	}
	for _, v := range all {
		if d := cmp.Diff(v, judged(t, v)); d != "" {
			t.Errorf("%s: %s", v.ID, d)
		}
	}
}

// judged fills in what Check finds.
func judged(t *testing.T, v vector) vector {
	t.Helper()
	verifier, err := seal.ParseVerifier(v.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(vectorsDir, v.Log), Verifier: verifier}
	if v.Anchor != "" {
		o.Anchor = &seal.Checkpoint{Note: v.Anchor}
	}
	r, err := Check(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	v.Problems, v.Notes = kinds(r.Problems), kinds(r.Notes)
	v.Records, v.Sealed, v.Root = r.Records, r.Sealed, r.Root
	v.Exit, v.Code = 0, ""
	if err := r.Err(); err != nil {
		code := fault.CodeOf(err)
		v.Exit, v.Code = code.Exit(), code.String()
	}
	return v
}

func readVectors(t *testing.T) (all []vector) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(vectorsDir, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var v vector
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func writeVectors(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(vectorsDir); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, m := range vectorLogs(t) {
		dir := filepath.Join(vectorsDir, m.ID)
		if m.Log == "" {
			m.Log = m.ID
			for name, content := range m.files {
				if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), content, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := enc.Encode(judged(t, m.vector)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(vectorsDir, "cases.jsonl"), out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// vectorLog is a case with its log.
type vectorLog struct {
	vector
	files map[string][]byte
}

func vectorLogs(t *testing.T) (all []vectorLog) {
	key, other := fixedKey(t, 1), fixedKey(t, 2)
	b, another := full(t, key), full(t, other)
	add := func(id, about, log, anchor string, change func(b *builder)) {
		c := b.clone()
		if change != nil {
			change(c)
		}
		all = append(all, vectorLog{vector{ID: id, About: about, Log: log, Anchor: anchor, Verifier: key.Line()}, c.files})
	}
	edit := func(number, line int, change func([]byte) []byte) func(*builder) {
		return func(b *builder) {
			name := segment.Name(number)
			all := lines(b.files[name])
			all[line-1] = change(bytes.Clone(all[line-1]))
			b.files[name] = bytes.Join(all, nil)
		}
	}
	gone := func([]byte) []byte { return nil }
	before := func(line []byte) func([]byte) []byte {
		return func(at []byte) []byte { return slices.Concat(line, []byte("\n"), at) }
	}
	newest := b.last.Note
	add("whole", "a log with every kind of line", "", "", nil)
	add("anchor", "checked against its newest checkpoint", "whole", newest, nil)
	add("anchor-pruned", "checked against a checkpoint in a segment of which only hashes are left", "whole", b.notes[1].Note, nil)
	add("record-changed", "one letter of a sealed record", "", "", edit(2, 3, func(l []byte) []byte {
		return bytes.Replace(l, []byte(`"codex"`), []byte(`"codey"`), 1)
	}))
	add("record-dropped", "a sealed record is gone", "", "", edit(2, 2, gone))
	add("record-forged", "a record more among sealed ones", "", "", edit(4, 3, before([]byte(b.record("decision", "fs.read", "")))))
	add("records-swapped", "two sealed records changed places", "", "", func(b *builder) {
		all := lines(b.files[segment.Name(5)])
		all[1], all[2] = all[2], all[1]
		b.files[segment.Name(5)] = bytes.Join(all, nil)
	})
	add("checkpoint-dropped", "a checkpoint between others is gone", "", "", edit(5, 4, gone))
	add("checkpoint-replayed", "an old checkpoint at a later place", "", "", edit(5, 7, before(b.notes[3].Line())))
	add("checkpoint-foreign", "a checkpoint of another log", "", "", edit(5, 7, before(another.last.Line())))
	add("signature-changed", "one bit of a signature", "", "", edit(5, 4, func(l []byte) []byte {
		l[len(l)-20] ^= 1
		return l
	}))
	add("signature-stray-bits", "the newest signature in base64 with stray bits: the same signature in another form", "", "", edit(5, 7, func(l []byte) []byte {
		l[bytes.LastIndex(l, []byte("=\\n"))-1]++
		return l
	}))
	add("head-changed", "a head with another edge", "", "", edit(4, 1, func(l []byte) []byte {
		l[len(l)-10] ^= 1
		return l
	}))
	add("segment-missing", "a segment is gone", "", "", func(b *builder) { delete(b.files, segment.Name(3)) })
	add("segments-swapped", "two segments changed places", "", "", func(b *builder) {
		x, y := segment.Name(2), segment.Name(3)
		b.files[x], b.files[y] = b.files[y], b.files[x]
	})
	add("hashes-changed", "one bit of a hash of a pruned segment", "", "", func(b *builder) { b.files["000001.hashes"][40] ^= 1 })
	add("garbage", "a line that is no record and that no event names", "", "", func(b *builder) {
		b.leaf("what is this")
		b.seal()
	})
	add("tail-unsaid", "lines after the last checkpoint of an old segment, and no event", "", "", func(b *builder) {
		b.line([]byte(b.record("intent", "fs.write", "")))
		b.begin(6)
		b.call()
		b.seal()
	})
	failedWithCheckpoint := func(say bool) func(*builder) {
		return func(b *builder) {
			base, last := b.base.Clone(), b.last
			b.seal()
			b.base, b.last = base, last
			b.begin(6)
			if say {
				b.own("segment_abandoned", segment.Name(5), 0)
			}
			b.call()
			b.seal()
		}
	}
	add("given-up-checkpoint", "the disk failed with a checkpoint; the log goes on from the one before and says so: no problem", "", "", failedWithCheckpoint(true))
	add("given-up-unsaid", "the same, and nothing says so", "", "", failedWithCheckpoint(false))
	add("torn", "a crash left half a line: no problem", "", "", edit(5, 9, func(l []byte) []byte { return l[:len(l)-9] }))
	cut := func(b *builder) { b.cutLines(5, 4) }
	add("cut", "the newest records and checkpoints were cut off: without an anchor nobody can tell", "", "", cut)
	add("cut-anchor", "the same, with an anchor", "cut", newest, nil)
	add("gone", "the log is gone", "gone", newest, nil)
	add("another-key", "the verifier's line of another log", "whole", "", nil)
	all[len(all)-1].Verifier = other.Line()
	add("anchor-foreign", "an anchor of another log", "whole", another.last.Note, nil)
	add("anchor-fork", "an anchor that was signed by this key, for other records", "whole", fork(t, key), nil)
	return all
}

// fork returns a checkpoint by the same key of records that full does not have.
func fork(t *testing.T, key seal.Key) string {
	b := newBuilder(t, key)
	b.calls = 100
	b.call()
	b.seal()
	return b.last.Note
}

// node runs the script, which shares no line with this package.
func node(t *testing.T, dir, verifier, anchor string) (exit int, out string) {
	t.Helper()
	bin, err := exec.LookPath("node")
	if err != nil {
		testenv.Missing(t, "node")
	}
	args := []string{script, dir, verifier}
	if anchor != "" {
		path := filepath.Join(t.TempDir(), "anchor")
		if err := os.WriteFile(path, []byte(anchor), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	b, err := exec.Command(bin, args...).CombinedOutput()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), string(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(b)
}

// TestIndependent: somebody else's reading of docs/audit-log.md comes to the
// same end for each of the committed logs.
func TestIndependent(t *testing.T) {
	for _, v := range readVectors(t) {
		exit, out := node(t, filepath.Join(vectorsDir, v.Log), v.Verifier, v.Anchor)
		if exit != v.Exit {
			t.Errorf("%s: exit %d, want %d: %s", v.ID, exit, v.Exit, out)
		}
		if want := "root " + v.Root; exit == 0 && !bytes.Contains([]byte(out), []byte(want)) {
			t.Errorf("%s: %q does not say %q", v.ID, out, want)
		}
	}
}

// TestIndependentKept: it takes what was kept as Check does: a key as a file, and
// a file of many anchors.
func TestIndependentKept(t *testing.T) {
	b := full(t, fixedKey(t, 1))
	dir, kept := write(t, b.files), ""
	for _, n := range append(slices.Clone(b.notes), b.notes[2]) {
		kept += n.Note + "\n"
	}
	foreign := newBuilder(t, fixedKey(t, 2)).last.Note
	bare := t.TempDir()
	key := filepath.Join(bare, "key")
	if err := os.WriteFile(key, b.key.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir, key, anchors string
		exit              int
		says              string
	}{
		"line":             {dir, b.key.Line(), kept, 0, "anchors: 11 fit, the newest of 27 records"},
		"file":             {dir, key, kept, 0, "anchors: 11 fit"},
		"CRLF":             {dir, key, "\r\n" + string(bytes.ReplaceAll([]byte(kept), []byte("\n"), []byte("\r\n"))), 0, "anchors: 11 fit"},
		"one forged":       {dir, key, kept + fork(t, b.key), 8, "not those of the anchor"},
		"one foreign":      {dir, key, foreign + kept, 5, "1 anchors are not of this log"},
		"other text":       {dir, key, kept + "no note\n", 2, "not a file of anchors"},
		"half of one":      {dir, key, kept[:bytes.LastIndex([]byte(kept), []byte("\u2014"))], 2, "not a file of anchors"},
		"nothing":          {dir, key, "\n", 2, "not a file of anchors"},
		"no key":           {dir, dir + "/000002.jsonl", kept, 2, "verifier's line"},
		"no segment":       {bare, key, kept, 8, "cut off"},
		"no folder":        {bare + "/none", key, kept, 8, "cut off"},
		"foreign, changed": {filepath.Join(vectorsDir, "record-changed"), key, foreign, 8, "000002.jsonl"},
	} {
		if exit, out := node(t, c.dir, c.key, c.anchors); exit != c.exit || !bytes.Contains([]byte(out), []byte(c.says)) {
			t.Errorf("%s: exit %d: %s", name, exit, out)
		}
	}
	if script, err := os.ReadFile(script); err != nil || bytes.Count(script, []byte("\n")) > 150 {
		t.Errorf("%v, %d lines: docs/audit-log.md says 150", err, bytes.Count(script, []byte("\n")))
	}
}

// TestIndependentMutants: and for some of what TestMutants makes.
func TestIndependentMutants(t *testing.T) {
	b := full(t, fixedKey(t, 1))
	b.sample = 211
	c := &checked{t: t, b: b, dir: write(t, b.files)}
	if exit, out := node(t, c.dir, b.key.Line(), b.last.Note); exit != 0 {
		t.Fatalf("the log itself: exit %d: %s", exit, out)
	}
	var some []mutant
	mutants(b, func(m mutant) {
		if !m.tail {
			some = append(some, m)
		}
	})
	slices.SortFunc(some, func(a, b mutant) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
	const most = 100
	for i := 0; i < len(some); i += max(1, len(some)/most) {
		m := some[i]
		c.put(m.files)
		anchor := ""
		if m.cut {
			anchor = b.last.Note
		}
		if exit, out := node(t, c.dir, b.key.Line(), anchor); exit != 8 && exit != 5 {
			t.Errorf("%s: exit %d: %s", m.name, exit, out)
		}
		for name := range m.files {
			c.put(map[string][]byte{name: b.files[name]})
		}
	}
}
