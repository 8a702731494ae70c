// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/postern-gate/postern/core/fault"
	"github.com/postern-gate/postern/internal/fsserver/edit"
)

// texts are small texts over few characters, so that matches, ambiguous ones
// and all line endings are frequent.
func texts() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"a", "b", "ab", " ", "\t", "\n", "\r\n", "\r", "é", "\xe9", "\ufeff", "$&"})
	return rapid.Map(rapid.SliceOfN(piece, 0, 12), func(p []string) string { return strings.Join(p, "") })
}

// What is around the one match comes out byte for byte.
func TestBytesOutsideTheMatchStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := texts().Draw(t, "before"), texts().Draw(t, "after")
		put := texts().Draw(t, "put")
		src := []byte(before + "«x»" + after)
		got, err := edit.Apply(src, []edit.Edit{{OldText: "«x»", NewText: put}})
		if err != nil {
			var r *edit.Refusal
			if !errors.As(err, &r) || r.Code != fault.TextUnsafe {
				t.Fatalf("%q refused: %v", src, err)
			}
			return // a text that isn't UTF-8 takes ASCII only
		}
		inner, ok := bytes.CutPrefix(got, []byte(before))
		inner, ok2 := bytes.CutSuffix(inner, []byte(after))
		if !ok || !ok2 {
			t.Fatalf("%q became %q", src, got)
		}
		if same(string(inner)) != same(put) {
			t.Fatalf("put %q, got %q", put, inner)
		}
	})
}

// same is a text without the difference between LF and CR LF.
func same(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// The naive reading of the rules, for one edit, up to line endings.
func TestAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := texts().Draw(t, "src")
		e := edit.Edit{OldText: texts().Draw(t, "old"), NewText: texts().Draw(t, "new"), ReplaceAll: rapid.Bool().Draw(t, "all")}
		got, err := edit.Apply([]byte(src), []edit.Edit{e})
		if strings.Contains(e.OldText, "\r") {
			return // byte for byte first: the vectors have these
		}
		flat, count := same(src), 0
		for i := range flat {
			if e.OldText != "" && strings.HasPrefix(flat[i:], e.OldText) {
				count++
			}
		}
		if fits := count == 1 || (e.ReplaceAll && count > 0); !fits && err == nil {
			t.Fatalf("%d matches of %q in %q, and it became %q", count, e.OldText, src, got)
		}
		if err != nil {
			return
		}
		want := strings.ReplaceAll(flat, e.OldText, same(e.NewText))
		if same(string(got)) != want && !strings.Contains(e.NewText+src, "\r") {
			t.Fatalf("%q with %q for %q became %q", src, e.NewText, e.OldText, got)
		}
		if !strings.Contains(src+e.NewText, "\r\n") && strings.Contains(string(got), "\r\n") && !strings.Contains(src+e.NewText, "\r") {
			t.Fatalf("a CR came from nowhere: %q", got)
		}
	})
}

// An edit and its inverse give the text back, in any mixture of endings, when
// the edit keeps the number of lines.
func TestInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := texts().Draw(t, "before"), texts().Draw(t, "after")
		end := rapid.SampledFrom([]string{"\n", "\r\n"})
		src := before + "«x" + end.Draw(t, "first") + "y" + end.Draw(t, "second") + "z»" + after
		there := edit.Edit{OldText: "«x\ny\nz»", NewText: "(1\ny\n2)"}
		mid, err := edit.Apply([]byte(src), []edit.Edit{there})
		if err != nil {
			t.Fatalf("%q: %v", src, err)
		}
		back, err := edit.Apply(mid, []edit.Edit{{OldText: there.NewText, NewText: "«x\ny\nz»"}})
		if bytes.ContainsAny([]byte(before+after), "\xe9") && err != nil {
			return // « isn't ASCII
		}
		if err != nil || string(back) != src {
			t.Fatalf("%q, %q, %q: %v", src, mid, back, err)
		}
	})
}

func FuzzApply(f *testing.F) {
	for _, v := range vectors(f) {
		if v.Input.Fill == 0 && len(v.Input.Edits) > 0 {
			e := v.Input.Edits[0]
			f.Add(v.content(f), e.OldText, e.NewText, e.ReplaceAll)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, old, put string, all bool) {
		before := bytes.Clone(src)
		got, err := edit.Apply(src, []edit.Edit{{OldText: old, NewText: put, ReplaceAll: all}})
		if !bytes.Equal(before, src) {
			t.Fatal("the source was changed")
		}
		var r *edit.Refusal
		switch {
		case err == nil && bytes.Equal(got, src):
			t.Fatal("nothing changed, and no word of it")
		case err != nil && (!errors.As(err, &r) || got != nil || r.Because == "" || r.Next == ""):
			t.Fatalf("refused with %q, %+v", got, err)
		case r != nil && strings.ContainsFunc(r.Near, func(c rune) bool {
			return c < ' ' && c != '\n' || c == 0xFFFD && !strings.Contains(string(src)+old, "\uFFFD")
		}):
			t.Fatalf("not drawable: %q", r.Near)
		case err == nil:
			text, ok := edit.Diff("e", src, got)
			if back := patched(t, src, text); ok && !bytes.Equal(back, got) {
				t.Fatalf("the diff gives %q, the edit %q:\n%s", back, got, text)
			}
		}
	})
}
