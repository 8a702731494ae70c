// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/state/audit/seal"
)

// TestAnchors: all that were kept are compared, each once, and one that
// doesn't fit is enough.
func TestAnchors(t *testing.T) {
	key, other := fixedKey(t, 1), fixedKey(t, 2)
	b := full(t, key)
	forged := seal.Checkpoint{Note: fork(t, key)}
	foreign := *newBuilder(t, other).last
	for name, tt := range map[string]struct {
		anchors  []seal.Checkpoint
		want     Anchors
		problems []string
		code     fault.Code
	}{
		"all":           {b.notes, Anchors{Checked: len(b.notes), Newest: b.last.Size}, nil, fault.OK},
		"one twice":     {[]seal.Checkpoint{*b.last, *b.last}, Anchors{Checked: 1, Newest: b.last.Size}, nil, fault.OK},
		"one forged":    {append(slices.Clone(b.notes), forged), Anchors{Checked: len(b.notes), Newest: b.last.Size}, []string{"anchor "}, fault.AuditBroken},
		"one foreign":   {append(slices.Clone(b.notes), foreign), Anchors{Checked: len(b.notes), Newest: b.last.Size}, []string{"unknown_key "}, fault.ConfigInvalid},
		"both":          {[]seal.Checkpoint{foreign, forged}, Anchors{}, []string{"unknown_key ", "anchor "}, fault.AuditBroken},
		"none but that": {[]seal.Checkpoint{foreign}, Anchors{}, []string{"unknown_key "}, fault.ConfigInvalid},
	} {
		r := b.check(func(o *Options) { o.Anchors = tt.anchors })
		if d := cmp.Diff(&tt.want, r.Anchors); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(tt.problems, kinds(r.Problems)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if got := fault.CodeOf(r.Err()); got != tt.code {
			t.Errorf("%s: %v", name, r.Err())
		}
	}
}

// TestOnlyAtEnd: lines that the next writer names are told apart from damage to
// what was signed.
func TestOnlyAtEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		build func(b *builder)
		want  bool
	}{
		"nothing":           {func(*builder) {}, false},
		"at the end":        {func(b *builder) { b.call(); b.leaf("garbage"); b.leaf(`{"t":"x"}`) }, true},
		"sealed":            {func(b *builder) { b.leaf("garbage"); b.call(); b.seal() }, false},
		"sealed and at end": {func(b *builder) { b.leaf("garbage"); b.seal(); b.leaf("garbage") }, false},
		"in an old segment": {func(b *builder) { b.leaf("garbage"); b.rotate(); b.call() }, false},
	} {
		b := newBuilder(t, fixedKey(t, 1))
		b.call()
		b.seal()
		tt.build(b)
		if r := b.check(nil); r.OnlyAtEnd() != tt.want {
			t.Errorf("%s: %+v", name, r.Problems)
		}
	}
}

// TestSigner: both names are told where the key is not that of the log.
func TestSigner(t *testing.T) {
	key, other := fixedKey(t, 1), fixedKey(t, 2)
	r := full(t, key).check(func(o *Options) { o.Verifier = other.Verifier() })
	if r.Origin != other.Origin() || r.Signer != key.Origin() || r.Err() == nil {
		t.Errorf("%+v", r)
	}
	if r := full(t, key).check(nil); r.Signer != "" {
		t.Errorf("%+v", r)
	}
}
