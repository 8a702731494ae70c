// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// hostile are inputs that a quadratic step would take minutes over.
func hostile() map[string]struct {
	src   string
	edits []edit.Edit
} {
	mega := strings.Repeat("a", 1<<20)
	numbered := func(n int, form string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, form, i)
		}
		return b.String()
	}
	type c = struct {
		src   string
		edits []edit.Edit
	}
	return map[string]c{
		"half of one long run":    {mega, []edit.Edit{{OldText: mega[:len(mega)/2], NewText: "b"}}},
		"almost there":            {mega, []edit.Edit{{OldText: mega[:len(mega)/2] + "b", NewText: "c"}}},
		"every byte":              {mega, []edit.Edit{{OldText: "a", NewText: "bb", ReplaceAll: true}}},
		"every line end":          {strings.Repeat("\r\n", 1<<19), []edit.Edit{{OldText: "\n", NewText: "\n\n", ReplaceAll: true}}},
		"20,000 lines not there":  {numbered(20000, "the line %d of many words in a row\n"), []edit.Edit{{OldText: numbered(20000, "a line %d of many words in a rwo\n"), NewText: "x"}}},
		"20,000 equal lines":      {strings.Repeat("x y\n", 20000), []edit.Edit{{OldText: strings.Repeat("x  y\n", 20000), NewText: "x"}}},
		"one line of words":       {strings.Repeat("w ", 1<<19), []edit.Edit{{OldText: strings.Repeat("w ", 1<<18) + "x", NewText: "x"}}},
		"20,000 lines replaced":   {numbered(20000, "a%d\n"), []edit.Edit{{OldText: "a", NewText: "b", ReplaceAll: true}}},
		"10,000 shuffled lines":   {numbered(5000, "a%d\nb\n"), []edit.Edit{{OldText: numbered(5000, "a%d\nb\n"), NewText: numbered(5000, "b\nc%d\n")}}},
		"every second line":       {numbered(9000, "a%d\nkeep\n"), []edit.Edit{{OldText: "a", NewText: "z", ReplaceAll: true}}},
		"the text a million fold": {mega, []edit.Edit{{OldText: "a", NewText: mega, ReplaceAll: true}}},
		"more edits than work":    {mega, slicesRepeat([]edit.Edit{{OldText: mega, NewText: mega + "b"}, {OldText: mega + "b", NewText: mega}}, 4000)},
	}
}

func slicesRepeat(edits []edit.Edit, n int) []edit.Edit {
	var out []edit.Edit
	for range n {
		out = append(out, edits...)
	}
	return out
}

// It ends, within the limits: the test's own deadline judges a quadratic step,
// the benchmark below measures.
func TestHostile(t *testing.T) {
	for name, tt := range hostile() {
		t.Run(name, func(t *testing.T) {
			got, err := edit.Apply([]byte(tt.src), tt.edits)
			if err == nil {
				if text, ok := edit.Diff("e", []byte(tt.src), got); ok && string(patched(t, []byte(tt.src), text)) != string(got) {
					t.Error("the diff gives another text")
				}
				return
			}
			var r *edit.Refusal
			if !errors.As(err, &r) || len(r.Because)+len(r.Near) > 64<<10 ||
				(name == "more edits than work" && r.Code != fault.LimitExceeded) {
				t.Errorf("%.200v", err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	for name, code := range map[string]fault.Code{
		"the text a million fold": fault.LimitExceeded,
		"half of one long run":    fault.PreconditionFailed,
	} {
		tt := hostile()[name]
		_, err := edit.Apply([]byte(tt.src), tt.edits)
		var r *edit.Refusal
		if !errors.As(err, &r) || r.Code != code {
			t.Errorf("%s: %v", name, err)
		}
	}
	var r *edit.Refusal
	_, err := edit.Apply(bytes.Repeat([]byte("a"), edit.MaxText+1), []edit.Edit{{OldText: "a", NewText: "b"}})
	if !errors.As(err, &r) || r.Code != fault.LimitExceeded {
		t.Errorf("a text over the limit: %v", err)
	}
}

func BenchmarkHostile(b *testing.B) {
	for name, tt := range hostile() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			src := []byte(tt.src)
			for b.Loop() {
				if got, err := edit.Apply(src, tt.edits); err == nil {
					edit.Diff("e", src, got)
				}
			}
		})
	}
}

// One line of 20,000 changes: what an edit usually is.
func BenchmarkEdit(b *testing.B) {
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, "line %d of a file of ordinary size\n", i)
	}
	src := []byte(text.String())
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		got, err := edit.Apply(src, []edit.Edit{{OldText: "line 10000 of", NewText: "line ten thousand of"}})
		if err != nil {
			b.Fatal(err)
		}
		edit.Diff("e", src, got)
	}
}
