// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/segment"
)

func kinds(all []Finding) (out []string) {
	for _, f := range all {
		out = append(out, string(f.Kind)+" "+f.Place())
	}
	return out
}

func TestWholeLog(t *testing.T) {
	b := full(t, fixedKey(t, 1))
	var done, total int64
	r := b.check(func(o *Options) {
		o.Signed = b.last
		o.Anchor = &b.notes[3]
		o.Progress = func(d, n int64) { done, total = d, n }
	})
	want := Report{
		Origin: b.key.Origin(), Records: b.edge.Size(), Sealed: b.last.Size, Unsealed: 2, Root: b.last.Root.String(),
		Segments: 5, Pruned: 1, Newest: b.last.Note, Problems: []Finding{}, Notes: r.Notes,
		Anchors: &Anchors{Checked: 1, Newest: b.notes[3].Size},
	}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"given_up 000003.jsonl:10", "unsealed_tail 000005.jsonl:7"}, kinds(r.Notes)); d != "" {
		t.Error(d)
	}
	if r.Err() != nil || done != total || total == 0 {
		t.Errorf("%v, %d of %d bytes", r.Err(), done, total)
	}
}

// TestCheck: each case is what the writer of a log can do or what can happen
// to it, with the exact finding.
func TestCheck(t *testing.T) {
	key, other := fixedKey(t, 1), fixedKey(t, 2)
	for _, tt := range []struct {
		name     string
		build    func(b *builder)
		options  func(b *builder, o *Options)
		problems []string
		notes    []string
		code     fault.Code
	}{
		{name: "a fresh log", build: func(*builder) {}, notes: []string{"unsealed_tail 000001.jsonl:1"}},
		{
			name:  "a torn tail in the newest segment",
			build: func(b *builder) { b.seal(); b.files[b.name()] = append(b.files[b.name()], `{"t":"20`...) },
			notes: []string{"torn_tail 000001.jsonl:4"},
		},
		{
			name: "a torn tail in an old segment",
			build: func(b *builder) {
				b.seal()
				b.files[b.name()] = append(b.files[b.name()], `{"t":"20`...)
				b.rotate()
			},
			problems: []string{"torn 000001.jsonl:4"}, code: fault.AuditBroken,
		},
		{
			name: "a torn tail in a segment that was given up",
			build: func(b *builder) {
				b.seal()
				b.files[b.name()] = append(b.files[b.name()], `{"t":"20`...)
				b.rotate()
				b.own("segment_abandoned", segment.Name(1), 0)
				b.seal()
			},
			notes: []string{"given_up 000001.jsonl:3"},
		},
		{
			name: "a segment given up that nobody says was",
			build: func(b *builder) {
				b.seal()
				b.line([]byte(b.record("intent", "fs.write", "")))
				b.begin(2)
				b.call()
				b.seal()
			},
			problems: []string{"unsealed 000001.jsonl:4"}, code: fault.AuditBroken,
		},
		{
			name: "the event that excuses a segment must itself count",
			build: func(b *builder) {
				b.seal()
				b.line([]byte(b.record("segment_abandoned", "log", `,"resource":"000001.jsonl"`)))
				b.begin(2)
				b.call()
				b.seal()
			},
			problems: []string{"unsealed 000001.jsonl:4"}, code: fault.AuditBroken,
		},
		{
			name: "garbage that no event names",
			build: func(b *builder) {
				b.leaf("what is this")
				b.leaf(`{"segment":7}`)
				b.own("garbage", "000001.jsonl:3", 0)
				b.seal()
			},
			problems: []string{"garbage 000001.jsonl:4"}, code: fault.AuditBroken,
		},
		{
			name:     "garbage that nobody could name yet",
			build:    func(b *builder) { b.seal(); b.call(); b.leaf("\x00\x00") },
			problems: []string{"garbage 000001.jsonl:6"}, notes: []string{"unsealed_tail 000001.jsonl:3"}, code: fault.AuditBroken,
		},
		{
			name: "the disk failed with a checkpoint",
			build: func(b *builder) {
				b.call()
				b.seal()
				base, last := b.base.Clone(), b.last
				b.call()
				b.seal()
				b.call()
				b.base, b.last = base, last
				b.begin(2)
				b.own("segment_abandoned", segment.Name(1), 0)
				b.seal()
			},
			notes: []string{"given_up 000001.jsonl:5"},
		},
		{
			name: "a head that goes back to a checkpoint before the last one",
			build: func(b *builder) {
				b.call()
				b.seal()
				base, last := b.base.Clone(), b.last
				b.call()
				b.seal()
				b.base, b.last = base, last
				b.begin(2)
				b.call()
				b.seal()
			},
			problems: []string{"unsealed 000001.jsonl:6"}, code: fault.AuditBroken,
		},
		{
			name: "a head that goes back further",
			build: func(b *builder) {
				b.seal()
				base, last := b.base.Clone(), b.last
				b.call()
				b.seal()
				b.call()
				b.seal()
				b.base, b.last = base, last
				b.begin(2)
				b.own("segment_abandoned", segment.Name(1), 0)
				b.seal()
			},
			problems: []string{"head 000002.jsonl:1"}, code: fault.AuditBroken,
		},
		{
			name: "a record without a field",
			build: func(b *builder) {
				b.leaf(`{"t":"2026-03-04T05:06:07Z","agent":"","op":"fs.read"}`)
				b.seal()
			},
			problems: []string{"record 000001.jsonl:3"}, code: fault.AuditBroken,
		},
		{
			name: "a vanished segment",
			build: func(b *builder) {
				b.rotate()
				b.call()
				b.rotate()
				delete(b.files, segment.Name(2))
				b.own("segment_vanished", segment.Name(2), 0)
				b.call()
				b.seal()
			},
			problems: []string{"missing_segment 000002.jsonl"}, code: fault.AuditBroken,
		},
		{
			name: "a segment that another file took the place of",
			build: func(b *builder) {
				b.rotate()
				b.call()
				b.rotate()
				b.files[segment.Name(2)] = []byte("x\n")
				b.own("segment_replaced", segment.Name(2), 0)
				b.call()
				b.seal()
			},
			problems: []string{"head 000002.jsonl:1", "garbage 000002.jsonl:1", "head 000003.jsonl:1"}, code: fault.AuditBroken,
		},
		{
			name: "a lost segment that is there again",
			build: func(b *builder) {
				b.rotate()
				b.own("segment_vanished", segment.Name(1), 0)
				b.seal()
			},
			notes: []string{"recovered 000002.jsonl:2"},
		},
		{
			name: "the clock goes back",
			build: func(b *builder) {
				b.now = b.now.Add(-2 * clockStep)
				b.call()
				b.now = b.now.Add(-2 * clockStep)
				b.own("clock_back", "", 7_200_000)
				b.call()
				b.seal()
			},
			notes: []string{"clock_back 000001.jsonl:3"},
		},
		{
			name:     "hashes without an event",
			build:    func(b *builder) { b.rotate(); c := b.clone(); c.prune(1); b.files = c.files; b.cutLines(2, 1) },
			problems: []string{"pruned 000001.hashes"}, code: fault.AuditBroken,
		},
		{
			name: "several pruned segments",
			build: func(b *builder) {
				b.rotate()
				b.call()
				b.rotate()
				b.prune(1)
				b.prune(2)
				b.seal()
			},
		},
		{
			name: "hashes after a segment with lines",
			build: func(b *builder) {
				b.rotate()
				b.call()
				b.rotate()
				b.prune(2)
				b.seal()
			},
			problems: []string{"pruned 000002.hashes"}, code: fault.AuditBroken,
		},
		{
			name:     "only hashes",
			build:    func(b *builder) { b.rotate(); b.prune(1); delete(b.files, segment.Name(2)) },
			problems: []string{"missing_segment 000001.hashes", "pruned 000001.hashes"}, code: fault.AuditBroken,
		},
		{
			name: "another log", build: func(b *builder) { b.call(); b.seal() },
			options:  func(_ *builder, o *Options) { o.Verifier = other.Verifier() },
			problems: []string{"unknown_key "}, code: fault.ConfigInvalid,
		},
		{
			name: "an anchor of another log", build: func(b *builder) { b.call(); b.seal() },
			options:  func(_ *builder, o *Options) { o.Anchor = newBuilder(t, other).last },
			problems: []string{"unknown_key "}, code: fault.ConfigInvalid,
		},
		{
			name: "an anchor that was changed", build: func(b *builder) { b.call(); b.seal() },
			options: func(b *builder, o *Options) {
				c := *b.last
				c.Note = c.Note[:60] + "x" + c.Note[61:]
				o.Anchor = &c
			},
			problems: []string{"bad_anchor "}, code: fault.ConfigInvalid,
		},
		{
			name: "an anchor of a fork", build: func(b *builder) { b.call(); b.seal() },
			options: func(b *builder, o *Options) {
				c := newBuilder(t, key)
				c.now = c.now.Add(clockStep)
				c.call()
				c.seal()
				o.Anchor = c.last
			},
			problems: []string{"anchor "}, code: fault.AuditBroken,
		},
		{
			name: "a memory of a fork", build: func(b *builder) { b.call(); b.seal() },
			options: func(b *builder, o *Options) {
				c := newBuilder(t, key)
				c.now = c.now.Add(clockStep)
				c.call()
				c.seal()
				o.Signed = c.last
			},
			problems: []string{"remembered "}, code: fault.AuditBroken,
		},
		{
			name: "an anchor that is no checkpoint of the log", build: func(b *builder) { b.call(); b.seal() },
			options: func(b *builder, o *Options) {
				c, err := key.Sign(&b.edge, b.last)
				if err != nil {
					t.Fatal(err)
				}
				o.Anchor = &c
			},
			problems: []string{"checkpoint "}, code: fault.AuditBroken,
		},
		{
			name: "an anchor where only hashes are left", build: func(b *builder) {
				b.seal()
				b.call()
				b.rotate()
				b.prune(1)
				b.seal()
			},
			options: func(b *builder, o *Options) { o.Anchor = &b.notes[1] },
		},
		{
			name: "a log that is gone", build: func(b *builder) { b.call(); b.seal(); clear(b.files) },
			options:  func(b *builder, o *Options) { o.Anchor = b.last },
			problems: []string{"truncated "}, code: fault.AuditTruncated,
		},
		{name: "no log", build: func(b *builder) { clear(b.files) }, problems: []string{"truncated "}, code: fault.AuditTruncated},
		{
			name: "no folder", build: func(*builder) {},
			options:  func(_ *builder, o *Options) { o.Dir += "/none" },
			problems: []string{"truncated "}, code: fault.AuditTruncated,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBuilder(t, key)
			b.t = t
			tt.build(b)
			r := b.check(func(o *Options) {
				if tt.options != nil {
					tt.options(b, o)
				}
			})
			if d := cmp.Diff(tt.problems, kinds(r.Problems)); d != "" {
				t.Errorf("problems: %s%+v", d, r.Problems)
			}
			if d := cmp.Diff(tt.notes, kinds(r.Notes)); d != "" {
				t.Errorf("notes: %s%+v", d, r.Notes)
			}
			want := tt.code
			if tt.problems == nil {
				want = fault.OK
			}
			if got := fault.CodeOf(r.Err()); got != want {
				t.Errorf("code %v, want %v", got, want)
			}
		})
	}
}

// TestTexts: what a person has to know is in the words.
func TestTexts(t *testing.T) {
	b := newBuilder(t, fixedKey(t, 1))
	b.call()
	b.seal()
	b.call()
	b.rotate()
	b.call()
	b.rotate()
	b.own("segment_vanished", segment.Name(2), 0)
	b.seal()
	texts := func(r Report) (out []string) {
		for _, f := range r.Problems {
			out = append(out, f.Place()+" "+f.Text)
		}
		return out
	}
	c := b.clone()
	delete(c.files, segment.Name(2))
	if d := cmp.Diff([]string{
		"000002.jsonl the segment is missing, and with it the records 6 to 7; segment_vanished was recorded at 000003.jsonl:2",
	}, texts(c.check(nil))); d != "" {
		t.Error(d)
	}
	c = b.clone()
	c.files[segment.Name(1)][len(lines(c.files[segment.Name(1)])[0])+12] ^= 1
	if d := cmp.Diff([]string{
		"000001.jsonl:5 the records 1 to 3, between 000001.jsonl:1 and this line, are not those that were signed",
	}, texts(c.check(nil))); d != "" {
		t.Error(d)
	}
	c = b.clone()
	clear(c.files)
	if d := cmp.Diff([]string{" the anchor is of 8 records, and the log has 0"},
		texts(c.check(func(o *Options) { o.Anchor = b.last }))); d != "" {
		t.Error(d)
	}
}

func TestMostProblems(t *testing.T) {
	b := newBuilder(t, fixedKey(t, 1))
	for range 50 {
		b.leaf("garbage")
	}
	b.seal()
	if r := b.check(nil); len(r.Problems) != Most || r.More != 30 {
		t.Errorf("%d problems and %d more", len(r.Problems), r.More)
	}
}

func TestCancelled(t *testing.T) {
	b := newBuilder(t, fixedKey(t, 1))
	for range 2000 {
		b.call()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Check(ctx, b.options(write(t, b.files))); err == nil {
		t.Error("goes on after it was cancelled")
	}
	if _, err := Check(context.Background(), b.options(write(t, b.files))); err != nil {
		t.Error(err)
	}
}
