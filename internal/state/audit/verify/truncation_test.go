// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

// TestTruncation: with an anchor a log that was cut off at any line, rolled
// back or made anew is found; without one the same logs are sound, as the
// documents say.
func TestTruncation(t *testing.T) {
	key := fixedKey(t, 1)
	b := newBuilder(t, key)
	var older []map[string][]byte // the log at each of its checkpoints
	for range 4 {
		b.call()
		b.seal()
		older = append(older, b.clone().files)
		b.rotate()
	}
	b.call()
	b.seal()
	with := func(o *Options) { o.Anchor = b.last }
	if r := b.check(with); len(r.Problems) > 0 {
		t.Fatalf("the log itself: %+v", r.Problems)
	}
	found := func(name string, c *builder, code fault.Code, unseen bool) {
		t.Helper()
		r := c.check(with)
		if got := fault.CodeOf(r.Err()); got != code {
			t.Errorf("%s: %v, want %v: %+v", name, got, code, r.Problems)
		}
		if code == fault.AuditTruncated {
			want := fmt.Sprintf("the anchor is of %d records, and the log has %d", b.last.Size, r.Records)
			if !strings.Contains(r.Problems[len(r.Problems)-1].Text, want) {
				t.Errorf("%s: %+v does not say %q", name, r.Problems, want)
			}
		}
		if r := c.check(nil); unseen && len(r.Problems) > 0 {
			t.Errorf("%s: found without the anchor, which the documents don't promise: %+v", name, r.Problems)
		}
	}
	for i, files := range older {
		c := b.clone()
		c.files = files
		found(fmt.Sprintf("rolled back to checkpoint %d", i+1), c, fault.AuditTruncated, true)
	}
	for n := len(lines(b.files[b.name()])) - 2; n > 0; n-- {
		c := b.clone()
		c.cutLines(b.number, n)
		found(fmt.Sprintf("cut after line %d", n), c, fault.AuditTruncated, true)
	}
	c := b.clone()
	c.cutLines(b.number, len(lines(b.files[b.name()]))-1)
	found("without the newest checkpoint", c, fault.AuditBroken, true)
	c = newBuilder(t, key)
	c.calls = 100
	for range 10 {
		c.call()
	}
	c.seal()
	found("made anew with the same key", c, fault.AuditBroken, true)
	c = b.clone()
	clear(c.files)
	found("gone", c, fault.AuditTruncated, false)
}

// TestOddFolders is what no writer makes.
func TestOddFolders(t *testing.T) {
	key := fixedKey(t, 1)
	b := newBuilder(t, key)
	b.call()
	b.seal()
	b.call()
	b.rotate()
	b.call()
	b.rotate()
	b.call()
	b.seal()
	judge := func(name string, o Options, problems, notes []string) {
		t.Helper()
		r, err := Check(context.Background(), o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(problems, kinds(r.Problems)); d != "" {
			t.Errorf("%s: problems %s%+v", name, d, r.Problems)
		}
		if d := cmp.Diff(notes, kinds(r.Notes)); d != "" {
			t.Errorf("%s: notes %s%+v", name, d, r.Notes)
		}
	}
	dir := write(t, b.files)
	second := filepath.Join(dir, segment.Name(2))
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(second, 0o700); err != nil {
		t.Fatal(err)
	}
	judge("a folder for a segment", b.options(dir), []string{"missing_segment 000002.jsonl"}, nil)

	c := b.clone()
	delete(c.files, segment.Name(2))
	o := c.options(write(t, c.files))
	fork, err := key.Sign(grow(6), nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Anchor = &fork
	judge("an anchor where records are lost", o, []string{"missing_segment 000002.jsonl"}, []string{"unchecked "})

	o = b.options(write(t, b.files))
	o.Signed = &seal.Checkpoint{Note: "nonsense"}
	judge("a memory that is no checkpoint", o, []string{"remembered "}, nil)

	c = b.clone()
	c.files["000900.jsonl"] = b.files[segment.Name(3)]
	r := c.check(nil)
	if len(r.Problems) != Most || r.Problems[0].Place() != "000004.jsonl" || r.More == 0 {
		t.Errorf("a number far ahead: %d problems, %d more: %+v", len(r.Problems), r.More, r.Problems[0])
	}

	c = newBuilder(t, key)
	c.call()
	c.sign()
	first := seal.Head{Segment: 1, Time: c.tick(), Note: c.last.Note, Edge: c.edge.Clone()}
	c.files = map[string][]byte{segment.Name(1): append(first.Line(), '\n')}
	judge("a first segment that is not the first", c.options(write(t, c.files)), []string{"head 000001.jsonl:1"}, nil)
}

// grow returns a tree of n leaves that no log has.
func grow(n int) *seal.Edge {
	var e seal.Edge
	for i := range n {
		e.AddLine(fmt.Append(nil, i))
	}
	return &e
}

// big is a log of a few MiB in three segments, the first of which may be
// pruned: the record that says so is there.
func big(t *testing.T) (b *builder, hashes []byte) {
	b = newBuilder(t, fixedKey(t, 1))
	for range 3 {
		for range 2500 {
			b.call()
		}
		b.rotate()
	}
	c := b.clone()
	c.prune(1)
	hashes = c.files["000001.hashes"]
	b.own("pruned", segment.Name(1), int64(len(hashes)/seal.HashSize))
	b.seal()
	return b, hashes
}

// TestWhileItGrows: what is appended during the check isn't looked at.
func TestWhileItGrows(t *testing.T) {
	b, _ := big(t)
	o := b.options(write(t, b.files))
	told := 0
	o.Progress = func(done, total int64) {
		told++
		if done == total {
			return
		}
		f, err := os.OpenFile(filepath.Join(o.Dir, b.name()), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString("garbage\nand half a line"); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Check(context.Background(), o)
	if err != nil || len(r.Problems) > 0 || len(r.Notes) > 0 || r.Records != b.edge.Size() || told < 2 {
		t.Errorf("%v, %d times told, %+v", err, told, r)
	}
	o.Progress = nil
	if r, err := Check(context.Background(), o); err != nil || len(r.Problems) == 0 || len(r.Notes) == 0 {
		t.Errorf("the control: %v, %+v", err, r)
	}
}

// TestWhileItIsPruned: a segment whose lines go away during the check is read
// again as its hashes.
func TestWhileItIsPruned(t *testing.T) {
	b, hashes := big(t)
	o := b.options(write(t, b.files))
	c := b.clone()
	delete(c.files, segment.Name(1))
	c.files["000001.hashes"] = hashes
	if r := c.check(nil); len(r.Problems) > 0 || r.Pruned != 1 || r.Records != b.edge.Size() {
		t.Fatalf("as hashes: %+v", r)
	}
	done := false
	o.Progress = func(int64, int64) {
		if done {
			return
		}
		done = true
		for n := 1; n <= 3; n++ { // more than a writer would prune, so that one is not yet open
			name := strings.TrimSuffix(segment.Name(n), segment.Lines) + segment.Hashes
			if err := os.WriteFile(filepath.Join(o.Dir, name), leafHashes(b, n), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(o.Dir, segment.Name(n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := Check(context.Background(), o)
	if err != nil || r.Pruned != 3 || r.Records != b.edge.Size() {
		t.Errorf("%v, %+v", err, r)
	}
	// Only the event for the last of them is missing, which a writer records.
	if d := cmp.Diff([]string{"pruned 000003.hashes"}, kinds(r.Problems)); d != "" {
		t.Error(d)
	}
}

func leafHashes(b *builder, n int) []byte {
	var out bytes.Buffer
	for _, h := range b.leaves[n] {
		out.Write(h[:])
	}
	return out.Bytes()
}
